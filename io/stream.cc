#include "io/stream.h"

#include <kj/debug.h>

#include <utility>

#include "configs/language/random.h"

namespace io {

Stream::Stream(uint64_t records, uint64_t seed, uint workers, uint rank, uint batchSize)
    : records(records), seed(seed), workers(workers), rank(rank), batchSize(batchSize) {
  KJ_REQUIRE(records > 0 && records < (uint64_t(1) << 32), records);
  KJ_REQUIRE(rank < workers && batchSize > 0, rank, workers, batchSize);
}

void Stream::places(uint64_t step, kj::ArrayPtr<Place> out) {
  KJ_REQUIRE(out.size() == batchSize);
  uint64_t position = (step * workers + rank) * batchSize;
  uint64_t pass = position / records;
  uint64_t index = position % records;
  auto order = permutation(pass);
  for (auto& place: out) {
    if (index == records) {
      index = 0;
      order = permutation(++pass);
    }
    place = {order[index++], pass};
  }
}

uint64_t Stream::stepsUntilEndOf(uint64_t epoch, uint64_t records, uint workers, uint batchSize) {
  return epoch * records / (uint64_t(workers) * batchSize);
}

kj::ArrayPtr<const uint32_t> Stream::permutation(uint64_t pass) {
  auto& permutation = permutations[pass % 2];
  if (permutation.records.size() == 0 || permutation.pass != pass) {
    if (permutation.records.size() == 0) permutation.records = kj::heapArray<uint32_t>(records);
    permutation.pass = pass;
    auto& order = permutation.records;
    for (uint32_t i = 0; i < records; ++i) order[i] = i;
    configs::Random random(seed, configs::Purpose::ORDER, pass);
    for (uint32_t i = records - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
  }
  return permutation.records;
}

}  // namespace io
