#include "nn/cpu/plan_builder.h"

#include <kj/debug.h>

#include "nn/cpu/copies.h"

namespace nn::cpu {

PlanBuilder::PlanBuilder(const Graph& graph, Phase phase, uint images, uint lanes,
    const Kernels& kernels, Element element, FlatArrays arrays)
    : graph(graph),
      phase(phase),
      batch{images, kernels.group},
      lanes(lanes),
      block(kernels.block),
      amx(kernels.amx),
      element(element),
      arrays(arrays),
      stages(stagesOf(graph, phase)),
      plan(kj::heap<ProgramPlan>()),
      storage(kj::heapArray<Storage>(stages.units.size())) {
  uint count = stages.forward.back().end;
  for (auto& range: stages.backward) count = kj::max(count, uint(range.end));
  for (uint p = 0; p < count; ++p) plan->stages.add(kj::heap<StagePlan>());
  plan->segments = kj::heapArray<SegmentPlan>(graph.segments.size());
  for (uint s = 0; s < graph.segments.size(); ++s) {
    plan->segments[s].forward = stages.forward[s];
    plan->segments[s].backward = stages.backward[s];
  }
  plan->verdicts.losses = kj::heapArray<double>(images);
  plan->verdicts.correct = kj::heapArray<int8_t>(images);
  auto& input = batchBuffer(graph.inputShape().size() * batch.group);
  input.home = Buffer::PIXELS;
  pixels = &input;
}

Convolution& PlanBuilder::convolutionOf(const StagedUnit& unit) {
  return KJ_ASSERT_NONNULL(storage[unit.id].convolution);
}
DenseLayer& PlanBuilder::denseOf(const StagedUnit& unit) {
  return KJ_ASSERT_NONNULL(storage[unit.id].dense);
}
Norm& PlanBuilder::normOf(const StagedUnit& unit) {
  return KJ_ASSERT_NONNULL(storage[unit.id].norm);
}

float* PlanBuilder::parameterAt(const StagedUnit& unit, uint key) {
  return arrays.parameters.begin() + graph.keys[unit.node->keys.begin + key].offset;
}
float* PlanBuilder::gradientAt(const StagedUnit& unit, uint key) {
  return arrays.gradients.begin() + graph.keys[unit.node->keys.begin + key].offset;
}

Buffer& PlanBuilder::batchBuffer(size_t imageValues, Element element) {
  auto& buffer = *plan->buffers.add(kj::heap<Buffer>());
  buffer.home = Buffer::BATCH;
  buffer.element = element;
  buffer.imageValues = imageValues;
  buffer.values = batch.groups() * imageValues;
  return buffer;
}

Buffer& PlanBuilder::scratchBuffer(uint p, size_t imageValues, Element element) {
  auto& buffer = *stageAt(p).scratch.add(kj::heap<Buffer>());
  buffer.home = Buffer::SCRATCH;
  buffer.element = element;
  buffer.imageValues = imageValues;
  return buffer;
}

Buffer& PlanBuilder::bufferFor(const StagedUnit& unit, size_t imageValues, Element element) {
  bool isKept = phase == Phase::TRAIN && isReadBackward(unit);
  bool isScratch = !isKept && lastReadOf(unit) == unit.at;
  return isScratch ? scratchBuffer(unit.at, imageValues, element)
                   : batchBuffer(imageValues, element);
}

bool PlanBuilder::isReadBackward(const StagedUnit& unit) const {
  // An activation's slope is computed from its output.
  if (unit.activation != nullptr || unit.is<Activation>()) return true;
  for (auto& use: unit.uses) {
    auto& user = stages.units[use.unit];
    // A max pool keeps the places of its maxima instead.
    bool isLinear = user.is<Pool>() || user.is<Add>() || user.is<Scale>() || user.is<Dropout>();
    if (!isLinear) return true;
  }
  return false;
}

uint PlanBuilder::lastReadOf(const StagedUnit& unit) const {
  uint last = unit.at;
  for (auto& use: unit.uses) {
    auto& user = stages.units[use.unit];
    last = kj::max(last, user.recomputed ? lastReadOf(user) : user.at);
  }
  return last;
}

Buffer& PlanBuilder::workspace(uint p) {
  auto& buffer = scratchBuffer(p, 0);
  buffer.use(stageAt(p).tasks.size());
  return buffer;
}

void PlanBuilder::add(uint p, kj::Own<Task> task, std::initializer_list<Place> places) {
  auto& to = stageAt(p);
  for (auto& place: places) {
    if (place.buffer == nullptr) continue;
    place.buffer->use(place.buffer->home == Buffer::SCRATCH ? to.tasks.size() : p);
    to.imageValuesMax = kj::max(to.imageValuesMax, place.stride());
  }
  to.tasks.add(timed(p, kj::mv(task)));
}

void PlanBuilder::setProfile(Profile& profile) {
  this->profile = profile;
  firstLane = profile.addLanes(lanes, graph);
}

Account PlanBuilder::account(Profile& profile, uint p) const {
  bool isForward = p < stages.forward.back().end;
  return {.profile = profile,
      .firstLane = firstLane,
      .node = current->nodeId,
      .direction = isForward ? Profile::FORWARD : Profile::BACKWARD};
}

kj::Own<Task> PlanBuilder::timed(uint p, kj::Own<Task> task) {
  KJ_IF_MAYBE(to, profile) return cpu::timed(kj::mv(task), account(*to, p));
  return task;
}

kj::Own<BatchTask> PlanBuilder::timed(uint p, kj::Own<BatchTask> task) {
  KJ_IF_MAYBE(to, profile) return cpu::timed(kj::mv(task), account(*to, p));
  return task;
}

Place PlanBuilder::valueOf(const StagedUnit& unit, uint p, Layout layout) {
  if (layout == Layout::PLAIN) return plainOf(unit, p, elementOf(unit));
  KJ_IF_MAYBE(buffer, storage[unit.id].value) return {buffer};
  KJ_IF_MAYBE(buffer, find(p, unit.id, Layout::BLOCKED, elementOf(unit))) return {buffer};
  Place place = {&scratchBuffer(p, extentOf(unit).values(), elementOf(unit))};
  fill(unit, p, place);
  made.add(Made{p, unit.id, Layout::BLOCKED, place.buffer});
  return place;
}

kj::Maybe<Buffer&> PlanBuilder::find(uint p, UnitId unit, Layout layout, Element element) {
  for (auto& entry: made) {
    if (entry.stage == p && entry.unit == unit && entry.layout == layout &&
        entry.buffer->element == element) {
      return *entry.buffer;
    }
  }
  return nullptr;
}

Place PlanBuilder::plainOf(const StagedUnit& unit, uint p, Element as) {
  // Values that are already plain floats.
  kj::Maybe<Buffer&> rows = storage[unit.id].rows;
  if (unit.is<Input>()) rows = *pixels;
  if (as == Element::FLOAT32)
    KJ_IF_MAYBE(buffer, rows) return {buffer};

  Place blocked;
  if (rows == nullptr) blocked = valueOf(unit, p);
  KJ_IF_MAYBE(buffer, find(p, unit.id, Layout::PLAIN, as)) {
    return {buffer};
  }
  size_t size = unit.node->shape.size();
  // The following code copies as many images as a group has.
  KJ_REQUIRE(batch.group == 1);
  Place plain = {&scratchBuffer(p, size, as)};
  KJ_IF_MAYBE(buffer, rows) {
    add(p, copy(size, {buffer}, plain, Write::SET), {{buffer}, plain});
  } else {
    add(p, unblock(extentOf(unit), batch, blocked, plain), {blocked, plain});
  }
  made.add(Made{p, unit.id, Layout::PLAIN, plain.buffer});
  return plain;
}

Place PlanBuilder::inputOf(const StagedUnit& unit, uint p, Layout layout) {
  bool isFloats = layout == Layout::PLAIN && amx != nullptr;
  return isFloats ? plainOf(unit, p, Element::FLOAT32) : valueOf(unit, p, layout);
}

Place PlanBuilder::rowsOf(const StagedUnit& unit, uint p) {
  // The rows of vectors are already plain, with padding.
  auto extent = extentOf(unit);
  if (extent.pixels != 1 || isPlain(unit)) return plainOf(unit, p, Element::FLOAT32);
  KJ_IF_MAYBE(buffer, find(p, unit.id, Layout::BLOCKED, Element::FLOAT32)) return {buffer};
  auto value = valueOf(unit, p);
  auto rows = floatsOf(value, extent.values(), p);
  if (value.element() != Element::FLOAT32) {
    made.add(Made{p, unit.id, Layout::BLOCKED, rows.buffer});
  }
  return rows;
}

Place PlanBuilder::floatsOf(Place place, size_t values, uint p) {
  if (place.element() == Element::FLOAT32) return place;
  Place floats = {&scratchBuffer(p, values)};
  add(p, copy(values, place, floats, Write::SET), {place, floats});
  return floats;
}

void PlanBuilder::fill(const StagedUnit& unit, uint p, Place to) {
  Scope scope(*this, unit);
  if (unit.is<Input>()) {
    add(p, cpu::block(extentOf(unit), batch, {pixels}, to, Write::SET), {{pixels}, to});
  } else if (unit.is<Dropout>()) {
    Place rows = {&KJ_ASSERT_NONNULL(storage[unit.id].rows)};
    add(p, cpu::block(extentOf(unit), batch, rows, to, Write::SET), {rows, to});
  } else if (unit.is<BatchNorm>()) {
    auto y = valueOf(before(unit), p);
    add(p, normalise(normOf(unit), y, to), {y, to});
  } else if (unit.is<Activation>()) {
    auto x = valueOf(before(unit), p);
    add(p, gelu(extentOf(unit), x, to), {x, to});
  } else {
    KJ_ASSERT(unit.is<Concat>());
    for (uint i = 0; i < unit.inputs.size(); ++i) fillChannels(unit, i, p, to);
  }
}

void PlanBuilder::fillChannels(const StagedUnit& concat, uint input, uint p, Place to) {
  auto& part = stages.units[concat.inputs[input]];
  auto extent = extentOf(part);
  uint channel = channelOf(concat, input);
  if (!fitsBlocks(concat, part, channel)) {
    auto from = valueOf(part, p);
    add(p,
        copyChannels(extent, from, 0, extentOf(concat), to, channel, extent.channels, Write::SET),
        {from, to});
    return;
  }
  Place view = {to.buffer, to.shift + channel * extent.runs()};
  fillFrom(part, p, view);
}

void PlanBuilder::fillFrom(const StagedUnit& unit, uint p, Place to) {
  bool isThere = storage[unit.id].value != nullptr ||
                 find(p, unit.id, Layout::BLOCKED, elementOf(unit)) != nullptr;
  if (!isThere && to.element() == elementOf(unit)) return fill(unit, p, to);
  auto from = valueOf(unit, p);
  add(p, copy(extentOf(unit), from, to, Write::SET), {from, to});
}

bool PlanBuilder::fitsBlocks(const StagedUnit& concat, const StagedUnit& part, uint channel) const {
  uint channels = part.node->shape.channels;
  bool isLast = channel + channels == concat.node->shape.channels;
  return channel % block == 0 && (channels % block == 0 || isLast);
}

uint PlanBuilder::channelOf(const StagedUnit& concat, uint input) const {
  uint channel = 0;
  for (uint i = 0; i < input; ++i) channel += stages.units[concat.inputs[i]].node->shape.channels;
  return channel;
}

}  // namespace nn::cpu
