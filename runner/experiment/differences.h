// runner/experiment/differences.h: what tells runs from each other: the values in which their
// experiments differ.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "configs/language/document.h"

namespace runner {

// What tables and folders call dotted keys: the last word, or the whole where two end alike.
kj::Array<kj::String> shortKeys(kj::ArrayPtr<const kj::StringPtr> keys);

// What tables and folders call a value: a text without its quotes, a whole real without `.0`.
kj::String shortValue(const configs::Value& value);

// The places of `keys` in the order in which `label` names them, such as
// `mnist/momentum=0,seed=1-1f00cafe` of a sweep's run. Keys that the label does not name come last,
// in their own order.
kj::Array<size_t> orderIn(kj::StringPtr label, kj::ArrayPtr<const kj::String> keys);

struct Differences {
  kj::Array<kj::String> keys;  // short, in the order of the first text that has them
  // Of each text, a value a key; empty where it lacks the key. None of a text that was not looked
  // at. Lists too long for a cell are numbered instead: 1, 2, … in the order of their appearance.
  kj::Array<kj::Array<kj::String>> values;
};

// `experiments` are texts of experiment.toml. What does not change a run ([expect], [published]) is
// not looked at, nor is a text that is empty or cannot be read.
Differences differencesOf(kj::ArrayPtr<const kj::StringPtr> experiments);

}  // namespace runner
