// nn/confusion.h: counts which classes a network confuses.
#pragma once

#include <kj/array.h>
#include <kj/map.h>
#include <stdint.h>

namespace nn {

using kj::uint;

// How many images of the class `label` have their largest logit at the class `predicted`.
struct ConfusionCell {
  uint label;
  uint predicted;
  uint64_t images;
};

// A confusion matrix. It holds only the cells that have images, because there may be thousands of
// classes.
class Confusion {
public:
  // Adds the rows of a batch: see eachRow(). Of equal logits the first is the prediction, as in
  // BatchResult::correct.
  void add(kj::ArrayPtr<const float> logits, kj::ArrayPtr<const int32_t> labels);
  void add(const ConfusionCell& cell);
  // Does not use the map's clear(), which hands a null pointer to memset() if the map never had an
  // entry.
  void clear() { counts = {}; }

  // Returns the cells that have images, ordered by label, then by prediction.
  kj::Array<ConfusionCell> cells() const;

private:
  kj::HashMap<uint64_t, uint64_t> counts;  // the key has `label` in its upper half
};

}  // namespace nn
