#include "io/batches/stream.h"

#include <kj/debug.h>

#include <utility>

#include "configs/language/random.h"

namespace io {

Stream::Stream(const DataConfig& config, uint64_t stored, uint64_t seed, uint workers, uint rank)
    : first(config.heldOut),
      records(stored - config.heldOut),
      length(passLength(config, records, workers)),
      seed(seed),
      order(config.order),
      chunks(config.chunks),
      drawnFor(config.part == TrainingPart::WHOLE ? rank : 0),
      begin(config.part == TrainingPart::SPLIT ? uint64_t(rank) * config.batchSize : 0),
      stride(uint64_t(config.batchSize) * workers / config.readings(workers)),
      batchSize(config.batchSize),
      rank(rank) {
  KJ_REQUIRE(config.heldOut < stored && stored < (uint64_t(1) << 32), config.heldOut, stored);
  KJ_REQUIRE(rank < workers && batchSize > 0, rank, workers, batchSize);
  KJ_REQUIRE(length > 0, "no batch is full", records);
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
      uint64_t pass = places[i] / length;
      out[i] = {first + orderOf(pass).at(places[i] % length % records), pass};
    }
    return;
  }
  uint64_t position = begin + step * stride;
  uint64_t pass = position / length;
  uint64_t index = position % length;
  auto order = &orderOf(pass);
  for (auto& sample: out) {
    if (index == length) {
      index = 0;
      order = &orderOf(++pass);
    }
    sample = {first + order->at(index++ % records), pass};
  }
}

uint64_t Stream::passLength(const DataConfig& config, uint64_t trained, uint workers) {
  uint64_t step = uint64_t(config.batchSize) * workers / config.readings(workers);
  switch (config.lastBatch) {
    case LastBatch::ROLL_OVER:
      return trained;
    case LastBatch::DISCARD:
      return trained / step * step;
    case LastBatch::PAD:
      return (trained + step - 1) / step * step;
  }
  KJ_UNREACHABLE;
}

uint64_t Stream::stepsUntilEndOf(
    uint64_t epoch, const DataConfig& config, uint64_t length, uint workers) {
  return epoch * length * config.readings(workers) / (uint64_t(workers) * config.batchSize);
}

Stream::Order& Stream::orderOf(uint64_t pass) {
  auto& kept = orders[pass % 2];
  KJ_IF_MAYBE(order, kept) {
    if (order->pass == pass) return *order;
  }
  if (order == RecordOrder::STORED) return kept.emplace(Order{pass});
  if (order == RecordOrder::CHUNKS) {
    return kept.emplace(
        Order{pass, nullptr, nullptr, ChunkOrder(records, chunks, seed, pass, drawnFor)});
  }
  if (records > LISTED_MAX) {
    return kept.emplace(Order{pass, nullptr, Permutation(records, seed, pass, drawnFor)});
  }
  kj::Array<uint32_t> list;
  KJ_IF_MAYBE(order, kept) list = kj::mv(order->list);
  if (list == nullptr) list = kj::heapArray<uint32_t>(records);
  for (uint32_t i = 0; i < records; ++i) list[i] = i;
  configs::Random random(seed, configs::Purpose::ORDER, pass, drawnFor);
  for (uint32_t i = records - 1; i > 0; --i) std::swap(list[i], list[random.below(i + 1)]);
  return kept.emplace(Order{pass, kj::mv(list)});
}

}  // namespace io
