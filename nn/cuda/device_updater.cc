#include "nn/cuda/device_updater.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include "nn/loops/floats.h"

namespace nn::cuda {

namespace {

void cut(Range range, uint rule, kj::Vector<UpdatePiece>& pieces) {
  for (uint64_t at = range.begin; at < range.end; at += MOST_OF_PIECE) {
    uint32_t size = kj::min(uint64_t(MOST_OF_PIECE), range.end - at);
    pieces.add(UpdatePiece{at, size, rule});
  }
}

template <typename T>
T* in(kj::Own<Memory>& memory) {
  return reinterpret_cast<T*>(memory->begin());
}

}  // namespace

DeviceUpdater::DeviceUpdater(Device& device, const ValueRules& rules, const UpdatedArrays& arrays)
    : device(device), rules(rules), arrays(arrays) {
  kj::Vector<UpdatePiece> all;
  for (auto& piece: rules.pieces()) cut(piece.range, piece.rule, all);
  parameterPieces = all.size();
  bool looksBack = rules.looksBack();
  if (looksBack) cut({0, arrays.statisticsSize}, ValueRules::OF_STATISTICS, all);
  statisticsPieces = all.size() - parameterPieces;
  pieces = room<UpdatePiece>(all.size());
  device.upload(pieces->begin(), all.asPtr().asConst().asBytes());
  told = room<ValueRule>(rules.rules());
  size_t told_bytes = rules.rules() * sizeof(ValueRule);
  toTell = device.allocateOnHost(told_bytes);
  // Zeros, so that work that runs during a recording changes nothing.
  device.upload(told->begin(), kj::arrayPtr(toTell->begin(), told_bytes));
  device.finish();  // before `all` is freed
  wasTold = device.newMark();
  states = room<float>(rules.states() * arrays.parametersSize);
  // Nothing else writes the states of parameters that never change, but checkpoints contain them.
  auto zeros = nn::zeros(rules.states() * arrays.parametersSize);
  if (zeros.size() > 0) device.upload(states->begin(), zeros.asPtr().asConst().asBytes());
  device.finish();  // before `zeros` is freed
  slowParameters = room<float>(looksBack ? arrays.parametersSize : 0);
  slowStatistics = room<float>(looksBack ? arrays.statisticsSize : 0);
}

template <typename T>
kj::Own<Memory> DeviceUpdater::room(size_t count) {
  bytes += count * sizeof(T);
  return device.allocate(count * sizeof(T));
}

void DeviceUpdater::begin(
    kj::ArrayPtr<const float> parameters, kj::ArrayPtr<const float> statistics) {
  if (!rules.looksBack()) return;
  device.upload(slowParameters->begin(), parameters.asBytes());
  device.upload(slowStatistics->begin(), statistics.asBytes());
}

void DeviceUpdater::visitState(configs::StateVisitor& visitor) {
  bool looksBack = rules.looksBack();
  visit(visitor, "program.optimizer", states, rules.states() * arrays.parametersSize);
  visit(visitor, "program.slow_parameters", slowParameters, looksBack ? arrays.parametersSize : 0);
  visit(visitor, "program.slow_statistics", slowStatistics, looksBack ? arrays.statisticsSize : 0);
}

void DeviceUpdater::visit(
    configs::StateVisitor& visitor, kj::StringPtr name, kj::Own<Memory>& memory, size_t count) {
  auto here = kj::heapArray<float>(count);
  if (count > 0 && !visitor.restores()) {
    device.download(here.asBytes(), memory->begin());
    device.finish();
  }
  visitor.floats(name, here);
  if (count > 0 && visitor.restores()) {
    device.upload(memory->begin(), here.asPtr().asConst().asBytes());
    device.finish();
  }
}

void DeviceUpdater::prepare(uint64_t number) {
  device.wait(*wasTold);
  auto next = kj::arrayPtr(in<ValueRule>(toTell), rules.rules());
  rules.tell(number, next);
  device.upload(told->begin(), next.asConst().asBytes());
  device.set(*wasTold);
}

void DeviceUpdater::ask() {
  UpdateParameters update{.pieces = in<UpdatePiece>(pieces),
      .count = parameterPieces,
      .rules = in<ValueRule>(told),
      .values = arrays.parameters,
      .gradients = arrays.gradients,
      .states = in<float>(states),
      .stride = arrays.parametersSize,
      .slow = in<float>(slowParameters)};
  if (parameterPieces > 0) device.run(update);
  if (statisticsPieces == 0) return;
  update.pieces += parameterPieces;
  update.count = statisticsPieces;
  update.values = arrays.statistics;
  update.slow = in<float>(slowStatistics);
  device.run(update);
}

}  // namespace nn::cuda
