#include "nn/cuda/device_input.h"

#include <kj/debug.h>
#include <string.h>

#include "configs/language/failure.h"
#include "nn/cuda/lowering.h"
#include "nn/loops/floats.h"

namespace nn::cuda {

namespace {

constexpr size_t ALIGNMENT_BYTES = 16;

size_t aligned(size_t bytes) {
  return (bytes + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
}

}  // namespace

DeviceInput::DeviceInput(Device& device, uint images, const Graph& graph)
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
  // Rows of zeros, which work may read before there is a batch.
  device.upload(there->begin(), kj::arrayPtr(next().here->begin(), places.size));
  device.finish();
}

DeviceInput::Places DeviceInput::placesOf(uint images, uint masks) {
  size_t afterLabels = aligned(images * sizeof(int32_t));
  size_t afterMasks = afterLabels + aligned(images * masks * sizeof(DropoutMask));
  return {afterLabels, afterMasks, afterMasks + images * sizeof(RawRow)};
}

void DeviceInput::fillMasks(kj::ArrayPtr<const uint64_t> draws, DropoutMask* to) const {
  for (NodeId node: dropping) {
    double rate = graph.nodes[node].op.get<Dropout>().rate;
    for (auto draw: draws) *to++ = dropoutMask(rate, draw, node);
  }
}

byte* DeviceInput::begin(kj::ArrayPtr<const int32_t> labels, kj::ArrayPtr<const uint64_t> draws) {
  for (auto label: labels) {
    KJ_REQUIRE(label >= -1 && label < int32_t(graph.classes), "a label names no class", label,
        graph.classes);
  }
  device.wait(*next().isThere);
  auto here = next().here->begin();
  memcpy(here, labels.begin(), labels.asBytes().size());
  isDrawn = draws.size() == images;
  if (isDrawn) fillMasks(draws, reinterpret_cast<DropoutMask*>(here + places.masks));
  isSet = true;
  isBrought = false;
  return here;
}

void DeviceInput::set(kj::ArrayPtr<const float> batch, kj::ArrayPtr<const int32_t> labels,
    kj::ArrayPtr<const uint64_t> draws) {
  KJ_REQUIRE(raw == nullptr, "this program takes raw batches");
  KJ_REQUIRE(labels.size() == images && batch.size() == images * shape.size(),
      "a batch has the wrong size", labels.size(), batch.size(), images);
  begin(labels, draws);
  // The previous copy from this memory must have arrived on the device.
  device.finish();
  auto here = kj::arrayPtr(reinterpret_cast<float*>(pixelsHere->begin()), batch.size());
  nn::copy(batch, here);
  device.upload(pixelsThere->begin(), here.asBytes());
}

void DeviceInput::takeRaw(const RawImages& given, uint64_t kept) {
  KJ_REQUIRE(raw == nullptr && !isSet);
  KJ_REQUIRE(given.channels == shape.channels, given.channels, shape.channels);
  KJ_REQUIRE(given.meanImage != nullptr || given.means != nullptr);
  device.finish();
  pixelsHere = nullptr;
  pixelsThere = nullptr;
  size_t size = Shape{given.channels, given.height, given.width}.size();
  auto& own = raw.emplace(Raw{.size = size, .kept = kept});
  uint64_t bytes = (kept > 0 ? kept : 2 * images) * size;
  auto failure = kj::runCatchingExceptions([&]() { own.images = device.allocate(bytes); });
  KJ_IF_MAYBE(e, failure) {
    if (kept == 0) kj::throwFatalException(kj::mv(*e));
    configs::fail("the data set does not fit on the device beside the network: its ", kept,
        " images take ", bytes, " bytes (", e->getDescription(),
        "). Remove data.cache = \"device\"");
  }
  auto uploaded = [&](const float* floats, size_t count) -> const float* {
    if (floats == nullptr) return nullptr;
    auto& memory = *own.constants.add(device.allocate(count * sizeof(float)));
    device.upload(memory.begin(), kj::arrayPtr(floats, count).asBytes());
    device.finish();
    return reinterpret_cast<const float*>(memory.begin());
  };
  own.kernel = {.images = given, .rows = rows()};
  auto& there = own.kernel.images;
  there.meanImage = uploaded(given.meanImage, size);
  there.means = uploaded(given.means, shape.channels);
  there.factors = uploaded(given.factors, shape.channels);
}

Augment DeviceInput::augment(const ImportPixels& importing) {
  auto kernel = KJ_ASSERT_NONNULL(raw).kernel;
  kernel.element = importing.element;
  kernel.to = importing.to;
  kernel.plane = importing.plane;
  return kernel;
}

kj::Array<byte> DeviceInput::allocate(size_t bytes) {
  auto memory = device.allocateOnHost(bytes);
  return kj::arrayPtr(memory->begin(), bytes).attach(kj::mv(memory));
}

void DeviceInput::keep(uint64_t first, kj::ArrayPtr<const byte> more) {
  auto& own = KJ_ASSERT_NONNULL(raw);
  KJ_REQUIRE(
      more.size() % own.size == 0 && first + more.size() / own.size <= own.kept, first, own.kept);
  device.upload(own.images->begin() + first * own.size, more);
  device.finish();
}

void DeviceInput::setBatch(const RawBatch& batch) {
  auto& own = KJ_ASSERT_NONNULL(raw);
  bool isKept = own.kept > 0;
  KJ_REQUIRE(batch.labels.size() == images && batch.rows.size() == images &&
                 batch.images.size() == (isKept ? 0 : images * own.size),
      "a batch has the wrong size", batch.labels.size(), batch.rows.size(), batch.images.size());
  auto rows = reinterpret_cast<RawRow*>(begin(batch.labels, batch.draws) + places.rows);
  uint64_t first = (1 - current) * images;  // of the next turn's
  for (uint n = 0; n < images; ++n) {
    auto& row = rows[n] = batch.rows[n];
    uint64_t image = isKept ? row.image : first + n;
    row.image = 0;
    if (batch.labels[n] < 0) continue;
    KJ_REQUIRE(!isKept || image < own.kept, image, own.kept);
    row.image = reinterpret_cast<uint64_t>(own.images->begin() + image * own.size);
  }
  if (isKept) return;
  auto& turn = next();
  device.upload(
      own.images->begin() + first * own.size, batch.images, *turn.areFree, *turn.areThere);
}

void DeviceInput::awaitBatch() {
  for (auto& turn: turns) device.wait(*turn.areThere);
}

void DeviceInput::require(Phase phase) const {
  KJ_REQUIRE(isSet, "a step needs a batch: call setBatch() first");
  KJ_REQUIRE(phase == Phase::VALIDATE || dropping.size() == 0 || isDrawn,
      "dropout needs a number for each row", images);
}

void DeviceInput::bring() {
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

void DeviceInput::release() {
  device.set(*turns[current].areFree);
}

uint64_t DeviceInput::memory_bytes() const {
  uint64_t bytes = places.size;
  KJ_IF_MAYBE(own, raw) {
    return bytes + (own->kept > 0 ? own->kept : 2 * images) * own->size;
  }
  return bytes + images * shape.size() * sizeof(float);
}

}  // namespace nn::cuda
