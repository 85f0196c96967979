// runner/experiment/sweep.h: the section [sweep]: one file that stands for many runs, and the list
// of these runs.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>
#include <kj/string.h>

#include "configs/language/document.h"
#include "configs/language/reader.h"
#include "runner/experiment/asha.h"

namespace runner {

using kj::uint;

// The most runs that a sweep may have.
constexpr uint64_t RUNS_MAX = 10000;

// Numbers between two ends. Both ends may occur.
struct SweptRange {
  double from;
  double to;
  bool isLog;    // equal ratios instead of equal differences
  bool isWhole;  // both ends are integers, and all values between are too
  configs::Span span;
};

// A swept key of the experiment with its possible values.
struct SweptKey {
  kj::String key;  // dotted
  configs::Span span;
  // In the order of the file. The span of a value is its place in the file, or that of the range
  // that it comes from.
  kj::Array<kj::Own<const configs::Value>> values;
  // For `draw`: replaces `values`.
  kj::Maybe<SweptRange> range;
};

// [sweep]
struct SweepConfig {
  kj::Array<SweptKey> grid;
  kj::Array<SweptKey> zip;
  kj::Array<SweptKey> draw;
  uint draws = 1;  // runs that differ only in drawn values
  uint64_t seed = 1;
  kj::Maybe<uint> parallelRuns;
  kj::Maybe<AshaConfig> stop;

  // Returns all keys, in the order of a run's settings.
  kj::Array<const SweptKey*> keys() const;

  static SweepConfig read(configs::Reader& reader);
};

// A value that one run sets in the file. Points into the SweepConfig.
struct Setting {
  const SweptKey* key;
  kj::Own<const configs::Value> value;
  // The value in a folder's name and in progress lines: a number with its fewest digits, or a word.
  // For a table or a list, its place (from 1) among the key's values.
  kj::String name;
};
using Settings = kj::Array<Setting>;

// Returns the settings of every run: grid (the first key changes slowest) × zip × draws. A drawn
// value is a function of (seed, number of the draw, key). Another key or draw therefore changes no
// other value. Numbers of ranges and draws are rounded to 4 significant digits, or to as many as
// distinguish the numbers of a range. The value used is the one in the name.
kj::Array<Settings> listRuns(const SweepConfig& config);

// Returns `batch_size=128,learning_rate=0.05`: at most 180 bytes of letters, digits and `._+=,-`.
// The rest is cut off.
kj::String nameOf(kj::ArrayPtr<const Setting> settings, kj::ArrayPtr<const kj::String> shortKeys);

}  // namespace runner
