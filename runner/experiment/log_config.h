// runner/experiment/log_config.h: the section [log].
#pragma once

#include "configs/language/reader.h"
#include "runner/logs/log_styles.h"

namespace runner {

using kj::uint;

// [log]
struct LogConfig {
  const LogStyle* style;
  uint every;  // steps between two speed lines of a worker
  bool tensorboard;
  uint topK;               // 0: not counted
  configs::Span topKSpan;  // of top_k's value, or of [log] if the key is absent

  static LogConfig read(configs::Reader& reader);
};

}  // namespace runner
