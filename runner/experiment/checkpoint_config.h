// runner/experiment/checkpoint_config.h: the section [checkpoint].
#pragma once

#include "configs/language/reader.h"

namespace runner {

using kj::uint;

// When a run is saved, so that it can be continued after a break.
struct CheckpointConfig {
  double every_s;                   // seconds between two checkpoints. 0: none by time
  kj::Maybe<uint64_t> every_steps;  // steps of a worker between two checkpoints
  uint keep;                        // how many stay on disk
  bool keepBest;                    // whether the weights of the best epoch stay

  static CheckpointConfig read(configs::Reader& reader);

  // Whether there are any checkpoints.
  bool isOn() const { return every_s > 0 || every_steps != nullptr; }
};

}  // namespace runner
