// tests/comparable_events.h: the events of a run, in a form in which two runs can be compared.
#pragma once

#include <capnp/common.h>
#include <kj/array.h>
#include <kj/string.h>
#include <kj/vector.h>

#include "runner/logs/run_folder.h"

namespace tests {

// The events of a run, without the parts that differ from run to run: times, process ids,
// checkpoints. Those of each role follow one another.
class ComparableEvents {
public:
  // Holds no events.
  ComparableEvents() = default;
  // Reads the events of the run in `folder`.
  explicit ComparableEvents(const runner::RunFolder& folder);

  bool operator==(const ComparableEvents& other) const;
  // Returns the events in JSON, one line each. This takes longer than to read them.
  kj::String text() const;

private:
  kj::Vector<kj::Array<capnp::word>> events;  // each in its canonical form
};

// Returns the text of the run in `folder`.
kj::String comparableEvents(const runner::RunFolder& folder);

}  // namespace tests
