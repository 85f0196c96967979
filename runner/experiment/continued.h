// runner/experiment/continued.h: where a run was when it continued with another number of workers.
#pragma once

#include <kj/string.h>

#include "configs/language/reader.h"
#include "io/batches/division.h"

namespace runner {

// [continued]: at the end of an epoch. `runner run --resume` writes it into the experiment.toml of
// a run that continues one with another number of workers.
struct Continued {
  uint64_t epoch = 0;    // how many epochs were trained before
  uint64_t step = 0;     // how many steps each worker had made. The run continues this count
  uint64_t records = 0;  // how many records of the stream all workers together had read
  uint64_t updates = 0;  // how many updates each parameter had received

  // Reads the section. Reports wrong values.
  static Continued read(configs::Reader& reader);

  // Returns the section as a value for --set: `continued={ … }`.
  kj::String setting() const;
  // Returns where the division of the records begins.
  io::DivisionStart start() const { return {epoch, step, records}; }
};

}  // namespace runner
