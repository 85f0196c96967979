#include "nn/confusion.h"

#include <kj/vector.h>

#include <algorithm>

#include "nn/softmax.h"

namespace nn {

void Confusion::add(kj::ArrayPtr<const float> logits, kj::ArrayPtr<const int32_t> labels) {
  eachRow(logits, labels, [&](kj::ArrayPtr<const float> row, uint label) {
    add(ConfusionCell{label, largestOf(row), 1});
  });
}

void Confusion::add(const ConfusionCell& cell) {
  uint64_t key = uint64_t(cell.label) << 32 | cell.predicted;
  counts.upsert(key, cell.images, [](uint64_t& sum, uint64_t images) { sum += images; });
}

kj::Array<ConfusionCell> Confusion::cells() const {
  kj::Vector<ConfusionCell> all(counts.size());
  for (auto& entry: counts)
    all.add(ConfusionCell{uint(entry.key >> 32), uint(entry.key), entry.value});
  std::sort(all.begin(), all.end(), [](const ConfusionCell& a, const ConfusionCell& b) {
    return a.label != b.label ? a.label < b.label : a.predicted < b.predicted;
  });
  return all.releaseAsArray();
}

}  // namespace nn
