// runner/experiment/sweep.h: [sweep]: one file that stands for many runs, and what they are.
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

// Numbers between two ends, both of which may come up.
struct SweptRange {
  double from;
  double to;
  bool isLog;    // equal ratios in place of equal differences
  bool isWhole;  // both ends are written as integers: so is what lies between
  configs::Span span;
};

// A key of the experiment with what it may be.
struct SweptKey {
  kj::String key;  // dotted
  configs::Span span;
  // In the order of the file; each in its place there, or in that of the range it comes from.
  kj::Array<kj::Own<const configs::Value>> values;
  // In `draw`, in place of values.
  kj::Maybe<SweptRange> range;
};

// [sweep]
struct SweepConfig {
  kj::Array<SweptKey> grid;
  kj::Array<SweptKey> zip;
  kj::Array<SweptKey> draw;
  uint draws = 1;  // runs that differ in what is drawn alone
  uint64_t seed = 1;
  kj::Maybe<uint> parallelRuns;
  kj::Maybe<AshaConfig> stop;

  // All keys, in the order of a run's settings.
  kj::Array<const SweptKey*> keys() const;

  static SweepConfig read(configs::Reader& reader);
};

// What one run lays over the file. Points into the SweepConfig.
struct Setting {
  const SweptKey* key;
  kj::Own<const configs::Value> value;
  // The value in a folder's name and in progress lines: a number in its fewest digits, a word, or
  // the place (from 1) of a table or a list among the key's values.
  kj::String name;
};
using Settings = kj::Array<Setting>;

// The settings of every run: grid (the first key changes slowest) × zip × draws. What is drawn is a
// function of (seed, number of the draw, key), so that a key or a draw more changes no other.
// Numbers of ranges and draws are rounded to 4 significant digits, or as many as it takes to tell
// the numbers of a range apart: the value used is the one named.
kj::Array<Settings> listRuns(const SweepConfig& config);

// `batch_size=128,learning_rate=0.05`: at most 180 bytes of letters, digits and `._+=,-`; what
// does not fit is cut.
kj::String nameOf(kj::ArrayPtr<const Setting> settings, kj::ArrayPtr<const kj::String> shortKeys);

}  // namespace runner
