#include "nn/cuda/group.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include "nn/cuda/program.h"
#include "nn/device_group.h"
#include "nn/loops/floats.h"

namespace nn::cuda {

namespace {

View viewOf(float* start, uint64_t size) {
  return {start, 1, uint32_t(size), uint32_t(size), uint32_t(size)};
}

class CudaGroup final: public Program, private RawInput {
public:
  CudaGroup(const Graph& graph, kj::Array<kj::Own<Device>> devices, ProgramOptions options)
      : graph(graph), images(options.batchSize), flatStatistics(zeros(graph.statisticsSize)) {
    KJ_REQUIRE(devices.size() >= 1 && devices.size() <= images, devices.size(), options.batchSize);
    for (auto d: kj::indices(devices)) {
      auto own = options;
      auto rows = rowsOf(d, devices.size(), images);
      own.batchSize = rows.size();
      own.gradients = nullptr;
      auto& device = *devices[d];
      members.add(GroupDevice{device, newDeviceProgram(graph, kj::mv(devices[d]), own), rows,
          marksOf(device), marksOf(d == 0 ? device : first()), nullptr});
      shares.add(graph, *members.back().program, rows);
    }
    auto& device = first();
    uint64_t largest_bytes = 0;
    for (auto& segment: graph.segments) {
      largest_bytes = kj::max(largest_bytes, segment.parameters.size() * sizeof(float));
    }
    staging = device.allocate(largest_bytes);
    size_t all_bytes = graph.parameters * sizeof(float);
    parametersMemory = device.allocateOnHost(all_bytes);
    gradientsMemory = options.gradients.size() == 0 ? device.allocateOnHost(all_bytes)
                                                    : device.pin(options.gradients.asBytes());
    for (auto& value: gradients()) value = 0;
    allLogits = zeros(size_t(images) * graph.classes);
  }

  // After a failure, copies into the memory of the host may still be in progress.
  ~CudaGroup() noexcept(false) {
    for (auto& member: members) {
      kj::runCatchingExceptions([&]() { member.device.finish(); });
    }
  }
  KJ_DISALLOW_COPY(CudaGroup);

  kj::ArrayPtr<float> parameters() override { return flat(*parametersMemory); }
  kj::ArrayPtr<float> gradients() override { return flat(*gradientsMemory); }

  kj::ArrayPtr<float> statistics() override {
    if (!statisticsAreHere) {
      shares.averageStatistics(flatStatistics);
      statisticsAreHere = true;
    }
    return flatStatistics;
  }

  void setBatch(kj::ArrayPtr<const float> pixels, kj::ArrayPtr<const int32_t> labels,
      kj::ArrayPtr<const uint64_t> draws) override {
    shares.setBatch(pixels, labels, draws);
  }

  kj::Maybe<RawInput&> takeRaw(const RawImages& given, uint64_t kept) override {
    for (auto& member: members) {
      member.raw = KJ_ASSERT_NONNULL(member.program->takeRaw(given, kept));
    }
    rawSize_bytes = Shape{given.channels, given.height, given.width}.size();
    return *this;
  }

  void forward(Phase phase, uint segment) override {
    if (statisticsAreHere) {
      for (auto& member: members) copy(flatStatistics, member.program->statistics());
      statisticsAreHere = false;
    }
    for (auto& member: members) member.program->forwardWith(phase, segment, parameters());
  }

  void backward(uint segment) override {
    auto [begin, end] = graph.segments[segment].parameters;
    for (auto d: kj::indices(members)) {
      auto& member = members[d];
      // The first device must have read the gradients of the last step before they are overwritten.
      if (d > 0) member.device.follow(*member.read[segment]);
      member.program->backwardThere(segment);
      member.device.set(*member.ready[segment]);
    }
    auto sum = members[0].program->gradientsThere() + begin;
    auto part = reinterpret_cast<float*>(staging->begin());
    size_t size_bytes = (end - begin) * sizeof(float);
    for (uint d = 1; d < members.size() && end > begin; ++d) {
      auto& member = members[d];
      first().follow(*member.ready[segment]);
      first().copyFrom(part, member.device, member.program->gradientsThere() + begin, size_bytes);
      first().set(*member.read[segment]);
      first().run(AddUp{Element::FLOAT32, viewOf(sum, end - begin), viewOf(part, end - begin),
          viewOf(sum, end - begin)});
    }
    first().download(gradients().slice(begin, end).asBytes(), sum);
    first().set(*members[0].ready[segment]);
  }
  bool hasGradients(uint segment) override { return first().isPast(*members[0].ready[segment]); }
  void awaitGradients(uint segment) override { first().wait(*members[0].ready[segment]); }

  BatchResult result() const override { return shares.result(); }

  void visitState(configs::StateVisitor& visitor) override {
    shares.visitStatistics(visitor);
    visitor.floats("program.statistics", flatStatistics);
    visitor.count("program.statistics_are_here", statisticsAreHere);
  }

  kj::ArrayPtr<const float> logits() override {
    shares.gatherLogits(allLogits);
    return allLogits;
  }

  uint64_t memory_bytes() const override {
    uint64_t bytes = (2 * graph.parameters + allLogits.size()) * sizeof(float);
    for (auto& member: members) bytes += member.program->memory_bytes();
    return bytes;
  }

private:
  struct GroupDevice {
    Device& device;  // of the program
    kj::Own<DeviceProgram> program;
    Range rows;
    kj::Array<kj::Own<Mark>> ready;  // of each segment: its gradients; of the first, their sum
    kj::Array<kj::Own<Mark>> read;   // of each segment: by the first device, which sets it
    kj::Maybe<RawInput&> raw;        // the program, if it takes raw batches
  };

  // ---- RawInput

  kj::Array<byte> allocate(size_t bytes) override { return rawOf(members[0]).allocate(bytes); }

  void keep(uint64_t begin, kj::ArrayPtr<const byte> more) override {
    for (auto& member: members) rawOf(member).keep(begin, more);
  }

  void setBatch(const RawBatch& batch) override {
    KJ_REQUIRE(batch.labels.size() == images, batch.labels.size(), images);
    for (auto& member: members) {
      auto part = [&](auto all, uint64_t size = 1) {
        if (all.size() == 0) return all;
        return all.slice(member.rows.begin * size, member.rows.end * size);
      };
      rawOf(member).setBatch({.images = part(batch.images, rawSize_bytes),
          .rows = part(batch.rows),
          .labels = part(batch.labels),
          .draws = part(batch.draws)});
    }
  }

  void awaitBatch() override {
    for (auto& member: members) rawOf(member).awaitBatch();
  }

  static RawInput& rawOf(GroupDevice& member) { return KJ_ASSERT_NONNULL(member.raw); }

  // ---- devices

  Device& first() { return members[0].device; }

  kj::Array<kj::Own<Mark>> marksOf(Device& device) const {
    return KJ_MAP(segment, graph.segments) {
      return device.newMark();
    };
  }

  kj::ArrayPtr<float> flat(Memory& memory) const {
    return kj::arrayPtr(reinterpret_cast<float*>(memory.begin()), graph.parameters);
  }

  const Graph& graph;
  const uint images;
  kj::Array<float> flatStatistics;
  // Whether flatStatistics hold the newest values, which go to the devices at the next forward.
  bool statisticsAreHere = false;
  kj::Array<float> allLogits;
  uint64_t rawSize_bytes = 0;       // of an image
  kj::Vector<GroupDevice> members;  // with the devices, which all else is memory of
  RowShares shares;                 // of members
  kj::Own<Memory> staging;          // another device's gradients, on the first
  kj::Own<Memory> parametersMemory;
  kj::Own<Memory> gradientsMemory;
};

}  // namespace

kj::Own<Program> newGroup(
    const Graph& graph, kj::Array<kj::Own<Device>> devices, ProgramOptions options) {
  return kj::heap<CudaGroup>(graph, kj::mv(devices), options);
}

}  // namespace nn::cuda
