#include "nn/cuda/testing/network_convolutions.h"

#include <kj/debug.h>

#include "nn/cuda/plan_cache.h"
#include "nn/network/model.h"

namespace nn::cuda {

namespace {

// Collects the convolutions that it is asked to plan, and can do nothing else.
class Collector final: public Device {
public:
  kj::Vector<AskedConvolution> asked;

  kj::Own<ConvolutionPlan> plan(const ConvolutionProblem& shape, Direction direction) override {
    auto text = textOf(shape, direction);
    for (auto& other: asked) {
      if (textOf(other.shape, other.direction) == text) return kj::heap<Nothing>();
    }
    asked.add(AskedConvolution{shape, direction});
    return kj::heap<Nothing>();
  }

  kj::Own<Memory> allocate(size_t) override { KJ_UNIMPLEMENTED("collects only"); }
  kj::Own<Memory> allocateOnHost(size_t) override { KJ_UNIMPLEMENTED("collects only"); }
  kj::Own<Memory> pin(kj::ArrayPtr<byte>) override { KJ_UNIMPLEMENTED("collects only"); }
  void upload(void*, kj::ArrayPtr<const byte>) override { KJ_UNIMPLEMENTED("collects only"); }
  void upload(void*, kj::ArrayPtr<const byte>, Mark&, Mark&) override {
    KJ_UNIMPLEMENTED("collects only");
  }
  void follow(Mark&) override { KJ_UNIMPLEMENTED("collects only"); }
  void download(kj::ArrayPtr<byte>, const void*) override { KJ_UNIMPLEMENTED("collects only"); }
  void copyFrom(void*, Device&, const void*, size_t) override { KJ_UNIMPLEMENTED("collects only"); }
  void run(const Kernel&) override { KJ_UNIMPLEMENTED("collects only"); }
  void run(ConvolutionPlan&, const void*, const void*, void*, void*) override {
    KJ_UNIMPLEMENTED("collects only");
  }
  kj::Own<Recording> record(kj::FunctionParam<void()>) override {
    KJ_UNIMPLEMENTED("collects only");
  }
  void replay(Recording&) override { KJ_UNIMPLEMENTED("collects only"); }
  kj::Own<Mark> newMark() override { KJ_UNIMPLEMENTED("collects only"); }
  void set(Mark&) override { KJ_UNIMPLEMENTED("collects only"); }
  bool isPast(Mark&) override { KJ_UNIMPLEMENTED("collects only"); }
  void wait(Mark&) override { KJ_UNIMPLEMENTED("collects only"); }
  void finish() override { KJ_UNIMPLEMENTED("collects only"); }

private:
  struct Nothing final: public ConvolutionPlan {
    size_t workspace_bytes() const override { return 0; }
  };
};

Graph graphOf(kj::StringPtr network, nn::Shape input, uint classes) {
  configs::Diagnostics diagnostics;
  auto document = configs::parse("x.toml", kj::str("network = \"", network, "\""), diagnostics);
  configs::Reading reading{diagnostics, {}};
  auto config = configs::readDocument(*document, reading, ModelConfig::read);
  auto graph = buildGraph(config, input, classes, diagnostics);
  KJ_REQUIRE(diagnostics.count() == 0, diagnostics.format("x.toml"));
  return graph;
}

// What both GPUs have in common: compute capability 9.0, in its SXM form.
kj::String hopper(kj::StringPtr name, uint64_t memory_bytes, uint memoryClock_kHz) {
  return kj::str(R"({
    "deviceVer": 900, "multiProcessorCount": 132, "warpSize": 32,
    "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
    "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "regsPerBlock": 65536,
    "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048,
    "maxBlockSize": [1024, 1024, 64], "maxGridSize": [2147483647, 65535, 65535],
    "smClockRateKHz": 1980000, "l2CacheSize": 52428800, "supportCoopLaunch": 1,
    "pciDeviceId": 0, "isTccDriver": 0, "cudaDeviceId": 0, "driverVer": 13000,
    "totalGlobalMem": )",
      memory_bytes, R"(, "memClockRateKHz": )", memoryClock_kHz, R"(, "deviceName": ")", name,
      "\"}");
}

}  // namespace

kj::Array<AskedConvolution> convolutionsOf(kj::StringPtr network, nn::Shape input, uint classes,
    uint images, const LoweringOptions& options) {
  auto graph = graphOf(network, input, classes);
  // Addresses are calculated, and never used.
  auto somewhere = reinterpret_cast<byte*>(size_t(1) << 20);
  auto floats = reinterpret_cast<float*>(somewhere);
  DeviceArrays arrays = {.parameters = floats, .gradients = floats, .statistics = floats};
  Collector collector;
  Draft first(images);
  lower(first, graph, Phase::TRAIN, options, arrays);
  first.pack();
  Draft second(kj::mv(first), somewhere, collector);
  lower(second, graph, Phase::TRAIN, options, arrays);
  return collector.asked.releaseAsArray();
}

kj::String h100() {
  return hopper("NVIDIA H100 80GB HBM3", 85029158912, 2619000);
}

kj::String h200() {
  return hopper("NVIDIA H200", 150754820096, 3201000);
}

}  // namespace nn::cuda
