#include "nn/cuda/input.h"

#include <kj/debug.h>
#include <string.h>

#include "configs/language/failure.h"
#include "nn/cuda/lowering.h"
#include "nn/dropout.h"
#include "nn/loops/floats.h"

namespace nn::cuda {

namespace {

constexpr size_t ALIGNMENT_BYTES = 16;

size_t aligned(size_t bytes) {
  return (bytes + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
}

}  // namespace

Input::Input(Device& device, uint images, const Graph& graph)
    : device(device),
      images(images),
      graph(graph),
      shape(graph.inputShape()),
      dropping(droppingNodes(graph)),
      places(placesOf(images, dropping.size())),
      there(device.allocate(places.size)),
      pixelsHere(device.allocateOnHost(images * shape.size() * sizeof(float))),
      pixelsThere(device.allocate(images * shape.size() * sizeof(float))) {
  for (auto& turn: turns) {
    turn.here = device.allocateOnHost(places.size);
    for (auto mark: {&turn.isThere, &turn.areThere, &turn.areFree}) *mark = device.newMark();
  }
  // Rows of nothing, which work may read before there is a batch.
  device.upload(there->begin(), kj::arrayPtr(next().here->begin(), places.size));
  device.finish();
}

Input::Places Input::placesOf(uint images, uint masks) {
  size_t afterLabels = aligned(images * sizeof(int32_t));
  size_t afterMasks = afterLabels + aligned(images * masks * sizeof(DropoutMaskOfRow));
  return {afterLabels, afterMasks, afterMasks + images * sizeof(RawRow)};
}

void Input::fillMasks(kj::ArrayPtr<const uint64_t> draws, DropoutMaskOfRow* to) const {
  for (NodeId node: dropping) {
    double rate = graph.nodes[node].op.get<Dropout>().rate;
    for (auto draw: draws) {
      auto mask = dropoutMask(rate, draw, node);
      *to++ = {mask.first, mask.second, mask.threshold, mask.scale};
    }
  }
}

byte* Input::begin(kj::ArrayPtr<const int32_t> labels, kj::ArrayPtr<const uint64_t> draws) {
  for (auto label: labels) {
    KJ_REQUIRE(label >= -1 && label < int32_t(graph.classes), "a label names no class", label,
        graph.classes);
  }
  device.wait(*next().isThere);
  auto here = next().here->begin();
  memcpy(here, labels.begin(), labels.asBytes().size());
  isDrawn = draws.size() == images;
  if (isDrawn) fillMasks(draws, reinterpret_cast<DropoutMaskOfRow*>(here + places.masks));
  isSet = true;
  isBrought = false;
  return here;
}

void Input::set(kj::ArrayPtr<const float> batch, kj::ArrayPtr<const int32_t> labels,
    kj::ArrayPtr<const uint64_t> draws) {
  KJ_REQUIRE(raw == nullptr, "this program takes raw batches");
  KJ_REQUIRE(labels.size() == images && batch.size() == images * shape.size(),
      "a batch has the wrong size", labels.size(), batch.size(), images);
  begin(labels, draws);
  // What was copied from there before must be on the device.
  device.finish();
  auto here = kj::arrayPtr(reinterpret_cast<float*>(pixelsHere->begin()), batch.size());
  nn::copy(batch, here);
  device.upload(pixelsThere->begin(), here.asBytes());
}

void Input::takeRaw(const RawImages& given) {
  KJ_REQUIRE(raw == nullptr && !isSet);
  KJ_REQUIRE(given.shape.channels == shape.channels, given.shape.channels, shape.channels);
  KJ_REQUIRE(given.factors.size() == shape.channels, given.factors.size());
  bool hasMeanImage = given.meanImage.size() > 0;
  KJ_REQUIRE(hasMeanImage ? given.meanImage.size() == given.shape.size()
                          : given.means.size() == shape.channels);
  device.finish();
  pixelsHere = nullptr;
  pixelsThere = nullptr;
  auto& own = raw.emplace(Raw{.shape = given.shape,
      .reflects = given.reflects,
      .grey = given.grey,
      .meanImage = uploaded(given.meanImage),
      .hasMeanImage = hasMeanImage,
      .means = uploaded(given.means),
      .factors = uploaded(given.factors),
      .images = {},
      .kept = given.kept});
  if (given.kept == 0) {
    for (auto& turn: turns) turn.images = device.allocate(images * given.shape.size());
    return;
  }
  uint64_t bytes = given.kept * given.shape.size();
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { own.images = device.allocate(bytes); })) {
    configs::fail("the data set does not fit on the device beside the network: its ", given.kept,
        " images take ", bytes, " bytes (", e->getDescription(),
        "); leave data.cache = \"device\" out");
  }
}

kj::Own<Memory> Input::uploaded(kj::ArrayPtr<const float> floats) {
  auto memory = device.allocate(floats.asBytes().size());
  if (floats.size() > 0) device.upload(memory->begin(), floats.asBytes());
  device.finish();
  return memory;
}

Augment Input::augment(const ImportPixels& importing) {
  auto& own = KJ_ASSERT_NONNULL(raw);
  auto floats = [](kj::Own<Memory>& memory) {
    return reinterpret_cast<const float*>(memory->begin());
  };
  return {.element = importing.element,
      .rows = rows(),
      .stored = {own.shape.height, own.shape.width},
      .reflects = own.reflects,
      .hasGrey = own.grey != nullptr,
      .grey = own.grey.orDefault(0),
      .meanImage = own.hasMeanImage ? floats(own.meanImage) : nullptr,
      .means = floats(own.means),
      .factors = floats(own.factors),
      .to = importing.to,
      .plane = importing.plane};
}

kj::Array<byte> Input::allocate(size_t bytes) {
  auto memory = device.allocateOnHost(bytes);
  return kj::arrayPtr(memory->begin(), bytes).attach(kj::mv(memory));
}

void Input::keep(uint64_t first, kj::ArrayPtr<const byte> more) {
  auto& own = KJ_ASSERT_NONNULL(raw);
  size_t size = own.shape.size();
  KJ_REQUIRE(more.size() % size == 0 && first + more.size() / size <= own.kept, first, own.kept);
  device.upload(own.images->begin() + first * size, more);
  device.finish();
}

void Input::setBatch(const RawBatch& batch) {
  auto& own = KJ_ASSERT_NONNULL(raw);
  size_t size = own.shape.size();
  KJ_REQUIRE(batch.labels.size() == images && batch.crops.size() == images,
      "a batch has the wrong size", batch.labels.size(), batch.crops.size(), images);
  bool isKept = own.kept > 0;
  KJ_REQUIRE(isKept ? batch.numbers.size() == images : batch.images.size() == images * size,
      "a batch has the wrong size", batch.numbers.size(), batch.images.size(), images);
  auto rows = reinterpret_cast<RawRow*>(begin(batch.labels, batch.draws) + places.rows);
  auto& turn = next();
  auto from = isKept ? own.images->begin() : turn.images->begin();
  for (uint n = 0; n < images; ++n) {
    bool isThere = batch.labels[n] >= 0;
    uint64_t number = isKept && isThere ? batch.numbers[n] : n;
    KJ_REQUIRE(!isKept || !isThere || number < own.kept, number, own.kept);
    auto& crop = batch.crops[n];
    rows[n] = {isThere ? from + number * size : nullptr, crop.top, crop.left, crop.mirror};
  }
  if (!isKept) device.upload(turn.images->begin(), batch.images, *turn.areFree, *turn.areThere);
}

void Input::awaitBatch() {
  for (auto& turn: turns) device.wait(*turn.areThere);
}

void Input::require(Phase phase) const {
  KJ_REQUIRE(isSet, "a step needs a batch: call setBatch() first");
  KJ_REQUIRE(phase == Phase::VALIDATE || dropping.size() == 0 || isDrawn,
      "dropout needs a number for each row", images);
}

void Input::bring() {
  if (isBrought) return;
  isBrought = true;
  current = 1 - current;
  auto& turn = turns[current];
  device.follow(*turn.areThere);
  // Without rows, if images are not raw.
  size_t size = raw == nullptr ? places.rows : places.size;
  device.upload(there->begin(), kj::arrayPtr(turn.here->begin(), size));
  device.set(*turn.isThere);
}

void Input::release() {
  device.set(*turns[current].areFree);
}

uint64_t Input::memory_bytes() const {
  uint64_t bytes = places.size;
  KJ_IF_MAYBE(own, raw) {
    return bytes + (own->kept > 0 ? own->kept : 2 * images) * own->shape.size();
  }
  return bytes + images * shape.size() * sizeof(float);
}

}  // namespace nn::cuda
