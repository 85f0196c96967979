#include "nn/cuda/gpu_convolutions.h"

#include <kj/debug.h>

#include "configs/language/environment.h"
#include "configs/language/failure.h"
#include "configs/language/warning.h"
#include "nn/cuda/runtime_status.h"

namespace nn::cuda {

namespace {

// The limit for one convolution. The fastest plans for float32 copy all of x into another order.
constexpr size_t WORKSPACE_MAX_BYTES = size_t(2) << 30;
constexpr uint MEASURED_RUNS = 3;  // one after another
// Operands are filled with this byte. It makes small numbers. Zeros would take less power than
// usual values, and so less time.
constexpr int MEASURED_BYTE = 0x3c;

// Returns the cache folder, or one in memory if there is none that can be written.
kj::Own<const kj::Directory> openCache() {
  auto filesystem = kj::newDiskFilesystem();
  kj::Own<const kj::Directory> folder;
  auto open = [&]() {
    auto path = filesystem->getCurrentPath().evalNative(configs::cacheFolder());
    folder = filesystem->getRoot().openSubdir(
        path, kj::WriteMode::CREATE | kj::WriteMode::MODIFY | kj::WriteMode::CREATE_PARENT);
  };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(open)) {
    configs::warn(
        kj::str("the CUDA plans of this run are not kept, so the next run measures them again: ",
            e->getDescription(), ". Set RUNNER_CACHE to a folder that can be written"));
    return kj::newInMemoryDirectory(kj::nullClock());
  }
  return folder;
}

}  // namespace

// Measures plans of one convolution, all on the same operands.
class GpuConvolutions::Stopwatch {
public:
  Stopwatch(Device& device, const Handles& handles, const OperandBytes& bytes)
      : device(device),
        handles(handles),
        a(filled(bytes.a)),
        b(filled(bytes.b)),
        c(filled(bytes.c)) {
    check(cudaEventCreate(&start), "make an event");
    check(cudaEventCreate(&end), "make an event");
  }
  ~Stopwatch() noexcept(false) {
    cudaEventDestroy(start);
    cudaEventDestroy(end);
  }
  KJ_DISALLOW_COPY(Stopwatch);

  // Returns the seconds that a plan takes. Null if the library cannot run it, or cannot record it,
  // or if there is too little memory for its workspace.
  // The plan is recorded here, as in a program. Otherwise a short plan would take as long as the
  // call that asks for it.
  kj::Maybe<double> measure(LibraryPlan& plan) {
    kj::Own<Memory> workspace;
    auto run = [&]() {
      auto word = plan.run(handles, a->begin(), b->begin(), c->begin(), workspace->begin());
      KJ_IF_MAYBE(reason, word) configs::fail(*reason);
    };
    double once_s = 0;
    kj::Own<Recording> runs;
    auto refused = kj::runCatchingExceptions([&]() {
      workspace = device.allocate(plan.workspace_bytes());
      run();  // loads code
      once_s = timed(plan, run);
      if (isHopeless(once_s)) return;
      runs = device.record([&]() {
        for (uint i = 0; i < MEASURED_RUNS; i++) run();
      });
    });
    if (refused != nullptr) {
      cudaGetLastError();  // clears the error, so that the next call does not report it
      // Throws if the failure broke the device.
      check(cudaStreamSynchronize(handles.stream), kj::str("measure ", plan.name()));
      return nullptr;
    }
    if (isHopeless(once_s)) return once_s;
    device.replay(*runs);  // the first replay also copies the recording to the device
    double took_s = timed(plan, [&]() { device.replay(*runs); }) / MEASURED_RUNS;
    best_s = kj::min(best_s, took_s);
    return took_s;
  }

private:
  // Whether a plan takes several times as long as the best so far, even without the time of the
  // call itself. Some plans take a hundred times as long as the best. Measuring them precisely
  // would take most of the time.
  bool isHopeless(double once_s) const {
    constexpr double TIMES = 3, ASKING_S = 50e-6;
    return once_s > TIMES * best_s + ASKING_S;
  }

  template <typename Work>
  double timed(const LibraryPlan& plan, Work&& work) {
    check(cudaEventRecord(start, handles.stream), "record an event");
    work();
    check(cudaEventRecord(end, handles.stream), "record an event");
    check(cudaEventSynchronize(end), kj::str("measure ", plan.name()));
    float took_ms = 0;
    check(cudaEventElapsedTime(&took_ms, start, end), "read the time");
    return took_ms / 1e3;
  }

  kj::Own<Memory> filled(size_t bytes) {
    auto memory = device.allocate(bytes);
    check(cudaMemsetAsync(memory->begin(), MEASURED_BYTE, bytes, handles.stream), "fill memory");
    return memory;
  }

  Device& device;
  const Handles& handles;
  kj::Own<Memory> a, b, c;
  cudaEvent_t start = nullptr, end = nullptr;
  double best_s = kj::inf();  // so far
};

GpuConvolutions::GpuConvolutions(Device& device, kj::StringPtr deviceName, cudaStream_t stream)
    : device(device) {
  KJ_ON_SCOPE_FAILURE(close());
  handles.stream = stream;
  KJ_IF_MAYBE(reason, refusal(cudnnCreate(&handles.cudnn), "start")) configs::fail(*reason);
  KJ_IF_MAYBE(reason, refusal(cudnnSetStream(handles.cudnn, stream), "use a stream")) {
    configs::fail(*reason);
  }
  auto status = cublasLtCreate(&handles.cublasLt);
  if (status != CUBLAS_STATUS_SUCCESS) {
    configs::fail("cuBLASLt cannot start: ", cublasLtGetStatusString(status));
  }
  planner.emplace(handles.cudnn, handles.cublasLt, deviceName, openCache());
}

GpuConvolutions::~GpuConvolutions() noexcept(false) {
  close();
}

void GpuConvolutions::close() {
  if (handles.cublasLt != nullptr) cublasLtDestroy(handles.cublasLt);
  if (handles.cudnn != nullptr) cudnnDestroy(handles.cudnn);
}

kj::Own<LibraryPlan> GpuConvolutions::plan(const ConvolutionProblem& shape, Direction direction) {
  // Made only if something is measured, because it takes memory.
  kj::Maybe<Stopwatch> stopwatch;
  auto measure = [&](LibraryPlan& plan) {
    KJ_IF_MAYBE(present, stopwatch) return present->measure(plan);
    return stopwatch.emplace(device, handles, operandBytesOf(shape, direction)).measure(plan);
  };
  return KJ_ASSERT_NONNULL(planner).plan(shape, direction, WORKSPACE_MAX_BYTES, measure);
}

void GpuConvolutions::run(
    LibraryPlan& plan, const void* a, const void* b, void* c, void* workspace) {
  KJ_IF_MAYBE(reason, plan.run(handles, a, b, c, workspace)) configs::fail(*reason);
}

}  // namespace nn::cuda
