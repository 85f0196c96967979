#include "runner/experiment/log_config.h"

namespace runner {

LogConfig LogConfig::read(configs::Reader& reader) {
  LogConfig config;
  config.style = &reader.choose(
      "style", "The format of the lines in log.txt.", LOG_STYLES, kj::StringPtr("mxnet"));
  config.every = reader.integer("every",
      "Number of steps between two speed lines of a worker. By default, as many as in the system "
      "whose lines `style` imitates.",
      {.atLeast = 1, .atMost = 1000000000}, config.style->every);
  config.tensorboard = reader.flag("tensorboard",
      "Writes loss, accuracy, images/s and learning rate for TensorBoard into the run's folder.",
      true);
  config.topK = 0;
  config.topKSpan = reader.span("top_k");
  // The resolved experiment leaves the key out if the file does not have it.
  if (reader.isManual() || reader.has("top_k")) {
    config.topK = reader.integer("top_k",
        "Each validation also counts the images whose label is among the `top_k` largest logits. "
        "Must be below the number of classes. 0 = does not count them.",
        {.atLeast = 0, .atMost = 100}, 0);
  }
  return config;
}

}  // namespace runner
