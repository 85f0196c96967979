#include "runner/experiment/checkpoint_config.h"

namespace runner {

CheckpointConfig CheckpointConfig::read(configs::Reader& reader) {
  CheckpointConfig config;
  constexpr double SHORTEST_S = 0.1;
  config.every_s = reader.real("every_s",
      "Seconds between two checkpoints, at least 0.1. With 0, no checkpoints are made at time "
      "intervals.",
      {.atLeast = 0, .atMost = 86400}, 60);
  if (config.every_s > 0 && config.every_s < SHORTEST_S) {
    reader.error("every_s", "the shortest time between two checkpoints is 0.1 s",
        "write 0.1 or more, or 0 for no checkpoints at time intervals");
  }
  auto steps = reader.maybeInteger("every_steps",
      "Steps of each worker between two checkpoints. These checkpoints are written in addition to "
      "those of `every_s`. By default, there are no such checkpoints.",
      {.atLeast = 1, .atMost = 1ll << 40});
  config.every_steps = steps.map([](int64_t n) { return uint64_t(n); });
  config.keep = uint(reader.integer("keep",
      "How many of the newest checkpoints stay on the disk. The newest checkpoint that was made at "
      "the end of an epoch stays, too. If the newest one is damaged, `--resume` uses the one "
      "before it.",
      {.atLeast = 1, .atMost = 1000}, 2));
  config.keepBest = reader.flag("keep_best",
      "Keeps the weights of the epoch with the best validation accuracy as best.safetensors in the "
      "run's folder, in addition to those of the last epoch. Of several equally good epochs, the "
      "first one counts. With several `data.validation_views`, `data.validation_views_at` must be "
      "`every`.",
      false);
  return config;
}

}  // namespace runner
