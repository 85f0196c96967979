#include "io/batches/stream.h"

#include <kj/debug.h>

#include <utility>

#include "configs/language/random.h"

namespace io {

Stream::Stream(const DataConfig& config, uint64_t stored, uint64_t seed, uint workers, uint rank)
    : first(config.heldOut),
      records(stored - config.heldOut),
      seed(seed),
      shuffled(config.order == RecordOrder::SHUFFLED),
      drawnFor(config.part == TrainingPart::WHOLE ? rank : 0),
      begin(config.part == TrainingPart::SPLIT ? uint64_t(rank) * config.batchSize : 0),
      stride(uint64_t(config.batchSize) * workers / config.readings(workers)),
      batchSize(config.batchSize),
      rank(rank) {
  KJ_REQUIRE(config.heldOut < stored && stored < (uint64_t(1) << 32), config.heldOut, stored);
  KJ_REQUIRE(rank < workers && batchSize > 0, rank, workers, batchSize);
}

void Stream::divideBy(kj::Own<const Division> newDivision) {
  division = kj::mv(newDivision);
  places = kj::heapArray<uint64_t>(batchSize);
}

void Stream::samples(uint64_t step, kj::ArrayPtr<Sample> out) {
  KJ_REQUIRE(out.size() == batchSize);
  KJ_IF_MAYBE(own, division) {
    (*own)->places(step, rank, places);
    for (auto i: kj::indices(out)) {
      uint64_t pass = places[i] / records;
      out[i] = {first + permutation(pass)[places[i] % records], pass};
    }
    return;
  }
  uint64_t position = begin + step * stride;
  uint64_t pass = position / records;
  uint64_t index = position % records;
  auto order = permutation(pass);
  for (auto& sample: out) {
    if (index == records) {
      index = 0;
      order = permutation(++pass);
    }
    sample = {first + order[index++], pass};
  }
}

uint64_t Stream::stepsUntilEndOf(
    uint64_t epoch, const DataConfig& config, uint64_t trained, uint workers) {
  return epoch * trained * config.readings(workers) / (uint64_t(workers) * config.batchSize);
}

kj::ArrayPtr<const uint32_t> Stream::permutation(uint64_t pass) {
  auto& permutation = permutations[pass % 2];
  if (permutation.records.size() == 0 || permutation.pass != pass) {
    if (permutation.records.size() == 0) permutation.records = kj::heapArray<uint32_t>(records);
    permutation.pass = pass;
    auto& order = permutation.records;
    for (uint32_t i = 0; i < records; ++i) order[i] = i;
    if (shuffled) {
      configs::Random random(seed, configs::Purpose::ORDER, pass, drawnFor);
      for (uint32_t i = records - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
    }
  }
  return permutation.records;
}

}  // namespace io
