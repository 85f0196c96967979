#include "nn/cuda/program.h"

#include <kj/debug.h>

#include "configs/language/failure.h"
#include "nn/cuda/device_input.h"
#include "nn/cuda/device_updater.h"
#include "nn/cuda/lowering.h"

namespace nn::cuda {

namespace {

// An array that exists on the host and on the device.
template <typename T>
class Mirrored {
public:
  Mirrored(Device& device, size_t size)
      : there(device.allocate(size * sizeof(T))),
        owned(device.allocateOnHost(size * sizeof(T))),
        here(kj::arrayPtr(reinterpret_cast<T*>(owned->begin()), size)) {}
  // The array on the host is `memory`, unless `memory` is empty.
  Mirrored(Device& device, size_t size, kj::ArrayPtr<T> memory)
      : there(device.allocate(size * sizeof(T))),
        owned(memory.size() > 0 ? device.pin(memory.asBytes())
                                : device.allocateOnHost(size * sizeof(T))),
        here(kj::arrayPtr(reinterpret_cast<T*>(owned->begin()), size)) {
    KJ_REQUIRE(memory.size() == 0 || memory.size() == size, memory.size(), size);
    for (auto& value: here) value = {};
  }

  kj::ArrayPtr<T> onHost() { return here; }
  T* onDevice() { return reinterpret_cast<T*>(there->begin()); }
  uint64_t bytes() const { return here.size() * sizeof(T); }

  void upload(Device& device, Range range) {
    if (range.size() == 0) return;
    device.upload(onDevice() + range.begin, here.slice(range.begin, range.end).asBytes());
  }
  void download(Device& device, Range range) {
    if (range.size() == 0) return;
    device.download(here.slice(range.begin, range.end).asBytes(), onDevice() + range.begin);
  }
  Range all() const { return {0, here.size()}; }

private:
  kj::Own<Memory> there;
  kj::Own<Memory> owned;
  kj::ArrayPtr<T> here;
};

Element elementOf(Precision precision) {
  switch (precision) {
    case Precision::FP32:
    case Precision::TF32:
      return Element::FLOAT32;
    case Precision::BF16:
      return Element::BFLOAT16;
    case Precision::FP16:
      return Element::FLOAT16;
    case Precision::AUTO:
      break;
  }
  KJ_UNREACHABLE;
}

// The work of a phase, recorded.
struct Recordings {
  kj::Array<SegmentWork> work;
  kj::Array<kj::Own<Recording>> forward;
  kj::Array<kj::Own<Recording>> backward;
};

class CudaProgram final: public DeviceProgram, private Trainer {
public:
  CudaProgram(const Graph& graph, kj::Own<Device> ownDevice, ProgramOptions options)
      : graph(graph),
        device(kj::mv(ownDevice)),
        images(options.batchSize),
        flatParameters(*device, graph.parameters),
        flatGradients(*device, graph.parameters, options.gradients),
        flatStatistics(*device, graph.statisticsSize),
        input(*device, images, graph),
        rows(device->allocate(images * sizeof(RowResult))),
        sums(*device, 2),
        plainLogits(*device, size_t(images) * graph.classes) {
    KJ_REQUIRE(images > 0, "a batch needs at least one image");
    LoweringOptions lowering{.element = elementOf(options.precision),
        .tensorFloats = options.precision == Precision::TF32,
        .deterministic = options.deterministic,
        .lossScale =
            options.precision == Precision::FP16 ? options.lossScale / options.batchSize : 1};
    // Gradients that no work writes, such as that of a fixed gamma, must be 0. Recording may do
    // work too.
    flatGradients.upload(*device, flatGradients.all());
    kj::Maybe<Draft> training;
    if (!options.validatesOnly) training = draft(Phase::TRAIN, lowering);
    auto validation = draft(Phase::VALIDATE, lowering);
    memory_bytes_ = validation.pack();
    KJ_IF_MAYBE(own, training) memory_bytes_ = kj::max(own->pack(), memory_bytes_);
    allocateTensors();
    KJ_IF_MAYBE(own, training) train = finish(Phase::TRAIN, kj::mv(*own), lowering);
    validate = finish(Phase::VALIDATE, kj::mv(validation), lowering);
    workspace = device->allocate(workspace_bytes);
    record(train);
    record(validate);
    gradientsAreHere = KJ_MAP(segment, graph.segments) {
      return device->newMark();
    };
    device->finish();
  }

  kj::ArrayPtr<float> parameters() override {
    fetch(flatParameters, parametersAreHere);
    return flatParameters.onHost();
  }
  kj::ArrayPtr<float> gradients() override { return flatGradients.onHost(); }
  kj::ArrayPtr<float> statistics() override {
    fetch(flatStatistics, statisticsAreHere);
    return flatStatistics.onHost();
  }

  kj::Maybe<Trainer&> trainBy(const ValueRules& rules) override {
    KJ_REQUIRE(updater == nullptr, "it trains by itself already");
    KJ_REQUIRE(train.work.size() > 0, "this program only validates");
    auto& own = updater.emplace(*device, rules,
        UpdatedArrays{flatParameters.onDevice(), graph.parameters, flatGradients.onDevice(),
            flatStatistics.onDevice(), graph.statisticsSize});
    // Recording may do the work, which changes the statistics on the device. The next step copies
    // these values back.
    statistics();
    wholeStep = device->record([&]() {
      for (auto& segment: train.work) {
        for (auto& each: segment.forward) run(each);
      }
      for (auto s = train.work.size(); s-- > 0;) {
        for (auto& each: train.work[s].backward) run(each);
      }
      own.ask();
    });
    wholeValidation = device->record([&]() {
      for (auto& segment: validate.work) {
        for (auto& each: segment.forward) run(each);
      }
    });
    restartSums();
    return *this;
  }

  void step(uint64_t number) override {
    input.require(Phase::TRAIN);
    auto& own = KJ_ASSERT_NONNULL(updater);
    if (number == 0) own.begin(parameters(), statistics());
    bring();
    own.prepare(number);
    device->replay(*wholeStep);
    input.release();
    last = Phase::TRAIN;
    sumsAreHere = false;
    wasForward = true;
  }

  BatchResult runningSums() override {
    fetch(sums, sumsAreHere);
    return resultOf(sums.onHost()[1]);
  }
  void restartSums() override {
    sums.onHost()[1] = {};
    sums.upload(*device, {1, 2});
  }

  void setBatch(kj::ArrayPtr<const float> batch, kj::ArrayPtr<const int32_t> batchLabels,
      kj::ArrayPtr<const uint64_t> draws) override {
    input.set(batch, batchLabels, draws);
  }

  kj::Maybe<RawInput&> takeRaw(const RawImages& raw, uint64_t kept) override {
    KJ_REQUIRE(wholeStep.get() == nullptr, "it trains by itself already");
    input.takeRaw(raw, kept);
    for (auto phase: {&train, &validate}) {
      if (phase->work.size() == 0) continue;
      augmentFirst(phase->work[0].forward);
      record(*phase);
    }
    device->finish();
    return input;
  }

  void forward(Phase phase, uint segment) override {
    forwardWith(phase, segment, flatParameters.onHost());
  }

  void forwardWith(Phase phase, uint segment, kj::ArrayPtr<const float> all) override {
    KJ_REQUIRE(recordings(phase).work.size() > 0, "this program only validates");
    input.require(phase);
    if (segment == 0) bring();
    last = phase;
    auto [begin, end] = graph.segments[segment].parameters;
    // If a program trains by itself, the newest parameters are on the device.
    if (updater == nullptr && begin < end) {
      device->upload(flatParameters.onDevice() + begin, all.slice(begin, end).asBytes());
    }
    if (phase == Phase::VALIDATE && updater != nullptr) {
      // Validation waits for nothing between its segments, so all are one recording.
      if (segment == 0) device->replay(*wholeValidation);
    } else {
      device->replay(*recordings(phase).forward[segment]);
    }
    if (segment == 0) input.release();
    if (segment + 1 == graph.segments.size()) {
      sumsAreHere = false;
      wasForward = true;
    }
  }

  void backward(uint segment) override {
    KJ_REQUIRE(last == Phase::TRAIN, "backward() follows forward() of training");
    backwardThere(segment);
    flatGradients.download(*device, graph.segments[segment].parameters);
    device->set(*gradientsAreHere[segment]);
  }
  void backwardThere(uint segment) override { device->replay(*train.backward[segment]); }
  float* gradientsThere() override { return flatGradients.onDevice(); }
  bool hasGradients(uint segment) override { return device->isPast(*gradientsAreHere[segment]); }
  void awaitGradients(uint segment) override { device->wait(*gradientsAreHere[segment]); }

  BatchResult result() const override {
    KJ_REQUIRE(wasForward, "result() follows forward()");
    fetch(sums, sumsAreHere);
    return resultOf(sums.onHost()[0]);
  }

  void visitState(configs::StateVisitor& visitor) override {
    visitor.floats("program.statistics", statistics());
    KJ_IF_MAYBE(own, updater) {
      visitor.floats("program.parameters", parameters());
      own->visitState(visitor);
      auto running = runningSums();
      visitor.number("program.loss_sum", running.lossSum);
      visitor.count("program.correct", running.correct);
      visitor.count("program.images", running.images);
      sums.onHost()[1] = {running.lossSum, running.correct, running.images};
      sums.upload(*device, {1, 2});
    }
  }

  kj::ArrayPtr<const float> logits() override {
    KJ_REQUIRE(wasForward, "logits() follows forward()");
    plainLogits.download(*device, plainLogits.all());
    device->finish();
    return plainLogits.onHost();
  }

  uint64_t memory_bytes() const override {
    return memory_bytes_ + workspace_bytes + flatParameters.bytes() + flatGradients.bytes() +
           flatStatistics.bytes() + input.memory_bytes() + plainLogits.bytes() +
           images * sizeof(RowResult) +
           updater.map([](auto& own) { return own.memory_bytes(); }).orDefault(0);
  }

private:
  DeviceArrays arrays() {
    return {.parameters = flatParameters.onDevice(),
        .gradients = flatGradients.onDevice(),
        .statistics = flatStatistics.onDevice(),
        .pixels = pixels,
        .labels = input.labels(),
        .masks = input.masks(),
        .rows = reinterpret_cast<RowResult*>(rows->begin()),
        .sums = sums.onDevice(),
        .logits = plainLogits.onDevice()};
  }

  void allocateTensors() {
    auto allocate = [&]() { memory = device->allocate(memory_bytes_); };
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(allocate)) {
      configs::fail("the network does not fit on the device: for ", images,
          " images at a time, its values take ", memory_bytes_, " bytes (", e->getDescription(),
          "). Make data.batch_size smaller");
    }
  }

  Draft draft(Phase phase, const LoweringOptions& options) {
    Draft first(images);
    lower(first, graph, phase, options, arrays());
    return first;
  }

  Recordings finish(Phase phase, Draft&& first, const LoweringOptions& options) {
    Draft second(kj::mv(first), memory->begin(), *device);
    Recordings result{.work = lower(second, graph, phase, options, arrays())};
    workspace_bytes = kj::max(workspace_bytes, second.workspace_bytes());
    return result;
  }

  void record(Recordings& phase) {
    auto recorded = [this](kj::Vector<Work>& work) {
      return device->record([&]() {
        for (auto& each: work) run(each);
      });
    };
    phase.forward = KJ_MAP(segment, phase.work) {
      return recorded(segment.forward);
    };
    phase.backward = KJ_MAP(segment, phase.work) {
      return recorded(segment.backward);
    };
  }

  void run(Work& work) {
    KJ_SWITCH_ONEOF(work) {
      KJ_CASE_ONEOF(kernel, Kernel) {
        device->run(kernel);
      }
      KJ_CASE_ONEOF(each, ConvolutionWork) {
        device->run(*each.convolution, each.a, each.b, each.c, workspace->begin());
      }
    }
  }

  // Replaces the work that imports pixels by work that augments raw images.
  void augmentFirst(kj::Vector<Work>& works) {
    uint importing = 0;
    for (auto& work: works) {
      KJ_IF_MAYBE(kernel, work.tryGet<Kernel>()) {
        auto import = std::get_if<ImportPixels>(kernel);
        if (import == nullptr || import->from != pixels) continue;
        *kernel = input.augment(*import);
        ++importing;
      }
    }
    KJ_ASSERT(importing == 1, importing);
  }

  static BatchResult resultOf(const BatchSums& sums) {
    return {sums.lossSum, sums.correct, sums.images};
  }

  // Copies the values of the device to the host if they are newer.
  template <typename T>
  void fetch(Mirrored<T>& array, bool& isHere) const {
    if (isHere) return;
    array.download(*device, array.all());
    device->finish();
    isHere = true;
  }

  // Copies the next batch to the device, and also the arrays of the host that the caller may have
  // written to.
  void bring() {
    input.bring();
    if (statisticsAreHere) {
      flatStatistics.upload(*device, flatStatistics.all());
      statisticsAreHere = false;
    }
    if (updater != nullptr && parametersAreHere) {
      flatParameters.upload(*device, flatParameters.all());
      parametersAreHere = false;
    }
  }

  Recordings& recordings(Phase phase) { return phase == Phase::TRAIN ? train : validate; }

  const Graph& graph;
  mutable kj::Own<Device> device;  // result() waits for it
  const uint images;
  Mirrored<float> flatParameters;
  Mirrored<float> flatGradients;
  Mirrored<float> flatStatistics;
  DeviceInput input;
  const float* const pixels = input.pixels();  // on the device; unused with raw images
  kj::Own<Memory> rows;
  mutable Mirrored<BatchSums> sums;
  Mirrored<float> plainLogits;
  size_t memory_bytes_ = 0;
  kj::Own<Memory> memory;  // of all tensors, training's and validation's
  size_t workspace_bytes = 0;
  kj::Own<Memory> workspace;
  Recordings train;
  Recordings validate;
  kj::Array<kj::Own<Mark>> gradientsAreHere;  // of each segment
  Phase last = Phase::VALIDATE;
  bool wasForward = false;
  // If the program trains by itself:
  kj::Maybe<DeviceUpdater> updater;
  kj::Own<Recording> wholeStep;
  kj::Own<Recording> wholeValidation;
  // Whether the host has the newest values. They are copied to the device before it uses them.
  bool statisticsAreHere = true;
  bool parametersAreHere = true;  // always, unless the program trains by itself
  mutable bool sumsAreHere = false;
};

}  // namespace

kj::Own<Program> newProgram(const Graph& graph, kj::Own<Device> device, ProgramOptions options) {
  return newDeviceProgram(graph, kj::mv(device), options);
}

kj::Own<DeviceProgram> newDeviceProgram(
    const Graph& graph, kj::Own<Device> device, ProgramOptions options) {
  return kj::heap<CudaProgram>(graph, kj::mv(device), options);
}

}  // namespace nn::cuda
