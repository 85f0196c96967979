// runner/experiment/continued.h: where a run stood when it went on with another number of workers.
#pragma once

#include <kj/string.h>

#include "configs/language/reader.h"
#include "io/batches/division.h"

namespace runner {

// [continued]: at the end of an epoch. `runner run --resume` writes it into the experiment.toml of
// a run that goes on from one with another number of workers.
struct Continued {
  uint64_t epoch = 0;    // so many were trained before
  uint64_t step = 0;     // steps of each worker. Those of the run that goes on count from there
  uint64_t records = 0;  // records of the stream that all workers have used
  uint64_t updates = 0;  // updates of each parameter

  static Continued read(configs::Reader& reader);

  // Returns it as a setting of the file: `continued={ … }`.
  kj::String setting() const;
  io::DivisionStart start() const { return {epoch, step, records}; }
};

}  // namespace runner
