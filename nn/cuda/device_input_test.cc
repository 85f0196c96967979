// Shows that no part of a raw batch is overwritten before it is read, or read before it arrives,
// whatever order the device works in. tests/input checks the values that are read.
#include "nn/cuda/device_input.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <string.h>

#include "configs/language/diagnostics.h"
#include "nn/cuda/program.h"
#include "nn/cuda/testing/host_device.h"

namespace nn::cuda {
namespace {

constexpr Late LATES[] = {{true, false}, {false, true}, {true, true}};

struct Bytes {
  explicit Bytes(Device& device): there(device.allocate(4)), here(device.allocateOnHost(4)) {}
  void write(byte value) { memset(here->begin(), value, 4); }
  kj::ArrayPtr<byte> onHost() { return kj::arrayPtr(here->begin(), 4); }

  kj::Own<Memory> there, here;
};

TEST_CASE("HostDevice: a late copy is done after work that does not wait for it") {
  for (bool follows: {false, true}) {
    HostDevice device({.copies = true});
    Bytes x(device), seen(device);
    auto free = device.newMark(), done = device.newMark();
    x.write(7);
    device.upload(x.there->begin(), x.onHost(), *free, *done);
    if (follows) device.follow(*done);
    device.download(seen.onHost(), x.there->begin());
    device.finish();
    CHECK(seen.onHost()[0] == (follows ? 7 : 0xff));
  }
}

TEST_CASE("HostDevice: a copy is done before late work that it does not wait for") {
  for (bool waits: {false, true}) {
    HostDevice device({.work = true});
    Bytes x(device), seen(device);
    auto free = device.newMark(), done = device.newMark();
    x.write(1);
    device.upload(x.there->begin(), x.onHost());
    device.finish();
    device.download(seen.onHost(), x.there->begin());
    if (waits) device.set(*free);
    x.write(2);
    device.upload(x.there->begin(), x.onHost(), *free, *done);
    CHECK(device.isPast(*done) == !waits);
    device.finish();
    CHECK(device.isPast(*done));
    CHECK(seen.onHost()[0] == (waits ? 1 : 2));
  }
}

TEST_CASE("HostDevice: late work reads what the host has written since, unless the host waits") {
  for (bool waits: {false, true}) {
    HostDevice device({.work = true, .copies = true});
    Bytes x(device), seen(device);
    auto free = device.newMark(), done = device.newMark();
    x.write(1);
    device.upload(x.there->begin(), x.onHost(), *free, *done);
    device.follow(*done);
    if (waits) device.wait(*done);
    x.write(2);
    device.download(seen.onHost(), x.there->begin());
    device.finish();
    CHECK(seen.onHost()[0] == (waits ? 1 : 2));
  }
}

// Returns the moving statistics after some steps. The host waits for none of the steps. Each batch
// changes the statistics.
kj::Array<float> trace(Late late, uint64_t kept) {
  constexpr uint IMAGES = 3, STEPS = 7;
  constexpr Shape STORED = {2, 5, 5};
  configs::Diagnostics diagnostics;
  GraphBuilder builder(Shape{2, 4, 4}, diagnostics);
  auto norm = builder.add("", BatchNorm{1e-5f, 0.9f, false}, kj::arr(NodeId(0)), {});
  auto dense = builder.add("", Dense{4, true}, kj::arr(norm), {});
  auto graph = builder.finish(dense, {});
  REQUIRE(diagnostics.count() == 0);
  auto program = newProgram(graph, kj::heap<HostDevice>(late), {.batchSize = IMAGES});
  const float means[] = {10, 20}, factors[] = {0.5, 0.25};
  RawImages images{.channels = STORED.channels,
      .height = STORED.height,
      .width = STORED.width,
      .reflects = true,
      .means = means,
      .factors = factors};
  auto& raw = KJ_ASSERT_NONNULL(program->takeRaw(images, kept));

  auto memory = raw.allocate(IMAGES * STORED.size());
  auto fill = [&](uint seed) {
    for (auto i: kj::indices(memory)) memory[i] = (i * 37 + seed * 101 + i * i % 11) % 256;
  };
  for (uint64_t first = 0; first < kept; first += IMAGES) {
    fill(first);
    raw.keep(first, memory);
  }
  for (uint step = 0; step < STEPS; ++step) {
    raw.awaitBatch();
    fill(step);
    RawRow rows[IMAGES];
    int32_t labels[IMAGES];
    for (uint n = 0; n < IMAGES; ++n) {
      rows[n] = {(step + 2 * n) % kj::max(kept, 1), int(step) - 3, int(n) - 1, step % 2 == 0};
      labels[n] = n;
    }
    raw.setBatch({.images = kept > 0 ? nullptr : memory.asPtr(),
        .rows = rows,
        .labels = labels,
        .draws = nullptr});
    for (uint s = 0; s < graph.segments.size(); ++s) program->forward(Phase::TRAIN, s);
  }
  return kj::heapArray<float>(program->statistics());
}

TEST_CASE("DeviceInput: late work and late copies change no bit of a raw batch") {
  for (uint64_t kept: {0, 6}) {
    INFO("kept " << kept);
    auto expected = trace({}, kept);
    for (auto late: LATES) {
      INFO("late work " << late.work << ", late copies " << late.copies);
      auto found = trace(late, kept);
      CHECK(memcmp(found.begin(), expected.begin(), found.asBytes().size()) == 0);
    }
  }
}

// A program for an image of one channel, on a device with a MiB for each array.
kj::Own<Program> smallProgram(const Graph& graph) {
  return newProgram(graph, kj::heap<HostDevice>(Late{}, 1 << 20), {.batchSize = 1});
}
Graph smallGraph() {
  configs::Diagnostics diagnostics;
  GraphBuilder builder(Shape{1, 2, 2}, diagnostics);
  auto graph = builder.finish(builder.add("", Dense{4, true}, kj::arr(NodeId(0)), {}), {});
  REQUIRE(diagnostics.count() == 0);
  return graph;
}
constexpr float ONE[] = {1};
constexpr RawImages SMALL_IMAGES{
    .channels = 1, .height = 2, .width = 2, .means = ONE, .factors = ONE};

TEST_CASE(
    "DeviceInput: refuses images that do not fit on the device, and names their size in bytes") {
  auto graph = smallGraph();
  auto program = smallProgram(graph);
  CHECK(program->takeRaw(SMALL_IMAGES, 1 << 18) != nullptr);
  CHECK_THROWS_WITH(smallProgram(graph)->takeRaw(SMALL_IMAGES, (1 << 18) + 1),
      doctest::Contains("its 262145 images take 1048580 bytes"));
}

TEST_CASE("DeviceInput: refuses the number of an image that is not kept") {
  auto graph = smallGraph();
  auto program = smallProgram(graph);
  auto& raw = KJ_ASSERT_NONNULL(program->takeRaw(SMALL_IMAGES, 2));
  RawRow rows[] = {{2, 0, 0, false}};
  int32_t labels[] = {0};
  RawBatch batch{.images = nullptr, .rows = rows, .labels = labels, .draws = nullptr};
  CHECK_THROWS_WITH(raw.setBatch(batch), doctest::Contains("image < own.kept"));
  // A row that does not count may name any image.
  labels[0] = -1;
  raw.setBatch(batch);
}

}  // namespace
}  // namespace nn::cuda
