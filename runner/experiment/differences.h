// runner/experiment/differences.h: finds the values in which the experiments of runs differ.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "configs/language/document.h"

namespace runner {

// Returns the names of dotted keys in tables and folders: the last word, or the whole key if two
// have the same last word.
kj::Array<kj::String> shortKeys(kj::ArrayPtr<const kj::StringPtr> keys);

// Returns the text of a value in tables and folders: a text without its quotes, a whole real
// without `.0`.
kj::String shortValue(const configs::Value& value);

// Returns the indices of `keys` in the order in which `label` names them. A label is, for example,
// `mnist/momentum=0,seed=1-1f00cafe` of a sweep's run. Keys that the label does not name come last,
// in their own order.
kj::Array<size_t> orderIn(kj::StringPtr label, kj::ArrayPtr<const kj::String> keys);

// The values in which texts differ.
struct Differences {
  kj::Array<kj::String> keys;  // short keys, in the order of the first text that has them
  // For each text, one value per key, empty if the text lacks the key. A text that was skipped has
  // no values. Lists that are too long for a cell are numbered instead: 1, 2, … in the order of
  // their appearance.
  kj::Array<kj::Array<kj::String>> values;
};

// Returns the first keys whose values differ, with their values in `there` and `here`, for
// messages: `train.seed is 2, not 1`. Counts further keys. Empty if none differs, or if one of the
// texts, which are like those of differencesOf(), is empty or cannot be read.
kj::String firstDifferences(kj::StringPtr there, kj::StringPtr here);

// `experiments` are texts of experiment.toml. Skips sections that do not change a run ([expect],
// [published]), and texts that are empty or cannot be read.
Differences differencesOf(kj::ArrayPtr<const kj::StringPtr> experiments);

}  // namespace runner
