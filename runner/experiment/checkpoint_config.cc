#include "runner/experiment/checkpoint_config.h"

namespace runner {

CheckpointConfig CheckpointConfig::read(configs::Reader& reader) {
  CheckpointConfig config;
  config.every_s = uint(reader.integer("every_s",
      "Seconds between two checkpoints. 0: none by time.", {.atLeast = 0, .atMost = 86400}, 60));
  auto steps = reader.maybeInteger("every_steps",
      "Steps of each worker between two checkpoints, beside those by time. Absent: none by steps.",
      {.atLeast = 1, .atMost = 1ll << 40});
  config.every_steps = steps.map([](int64_t n) { return uint64_t(n); });
  config.keep = uint(reader.integer("keep",
      "How many checkpoints stay on disk. If the newest one is damaged, the one before is used.",
      {.atLeast = 1, .atMost = 1000}, 2));
  return config;
}

}  // namespace runner
