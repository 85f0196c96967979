#include "nn/cuda/gpu_device.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include "nn/cuda/gpu_convolutions.h"
#include "nn/cuda/launch.h"
#include "nn/cuda/runtime_status.h"

namespace nn::cuda {

namespace {

class DeviceMemory final: public Memory {
public:
  explicit DeviceMemory(size_t bytes) {
    if (bytes > 0) check(cudaMalloc(&start, bytes), kj::str("allocate ", bytes, " bytes"));
  }
  ~DeviceMemory() noexcept(false) { cudaFree(start); }
  KJ_DISALLOW_COPY(DeviceMemory);
  byte* begin() override { return static_cast<byte*>(start); }

private:
  void* start = nullptr;
};

class HostMemory final: public Memory {
public:
  explicit HostMemory(size_t bytes) {
    if (bytes == 0) return;
    check(cudaMallocHost(&start, bytes), kj::str("allocate ", bytes, " bytes on the host"));
    memset(start, 0, bytes);
  }
  ~HostMemory() noexcept(false) { cudaFreeHost(start); }
  KJ_DISALLOW_COPY(HostMemory);
  byte* begin() override { return static_cast<byte*>(start); }

private:
  void* start = nullptr;
};

// Memory of the caller, which stays in RAM while this object lives.
class PinnedMemory final: public Memory {
public:
  explicit PinnedMemory(kj::ArrayPtr<byte> memory): memory(memory) {
    check(cudaHostRegister(memory.begin(), memory.size(), cudaHostRegisterDefault),
        "pin memory of the host");
  }
  ~PinnedMemory() noexcept(false) { cudaHostUnregister(memory.begin()); }
  KJ_DISALLOW_COPY(PinnedMemory);
  byte* begin() override { return memory.begin(); }

private:
  kj::ArrayPtr<byte> memory;
};

// A CUDA graph, ready to be launched. Null if the recording has no work.
class GraphRecording final: public Recording {
public:
  explicit GraphRecording(cudaGraph_t graph) {
    KJ_DEFER(cudaGraphDestroy(graph));
    size_t nodes = 0;
    check(cudaGraphGetNodes(graph, nullptr, &nodes), "count the work of a graph");
    if (nodes == 0) return;
    check(cudaGraphInstantiate(&executable, graph, 0), "make a graph of recorded work");
  }
  ~GraphRecording() noexcept(false) {
    if (executable != nullptr) cudaGraphExecDestroy(executable);
  }
  KJ_DISALLOW_COPY(GraphRecording);

  cudaGraphExec_t executable = nullptr;
};

class EventMark final: public Mark {
public:
  EventMark() {
    check(cudaEventCreateWithFlags(&event, cudaEventBlockingSync | cudaEventDisableTiming),
        "make an event");
  }
  ~EventMark() noexcept(false) { cudaEventDestroy(event); }
  KJ_DISALLOW_COPY(EventMark);

  cudaEvent_t event;
};

class GpuDevice final: public Device {
public:
  explicit GpuDevice(uint number): number(number) {
    // A thread that waits sleeps, and other threads can use its core.
    check(cudaInitDevice(number, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid),
        kj::str("begin with device ", number));
    choose();
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a stream");
    check(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking), "make a stream");
    cudaDeviceProp about;
    check(cudaGetDeviceProperties(&about, number), kj::str("look at device ", number));
    convolutions = kj::heap<GpuConvolutions>(*this, about.name, stream);
  }
  ~GpuDevice() noexcept(false) {
    cudaSetDevice(number);  // if this fails, an earlier call has reported why
    convolutions = nullptr;
    cudaStreamDestroy(copies);
    cudaStreamDestroy(stream);
  }
  KJ_DISALLOW_COPY(GpuDevice);

  kj::Own<Memory> allocate(size_t bytes) override {
    choose();
    return kj::heap<DeviceMemory>(bytes);
  }
  kj::Own<Memory> allocateOnHost(size_t bytes) override {
    choose();
    return kj::heap<HostMemory>(bytes);
  }
  kj::Own<Memory> pin(kj::ArrayPtr<byte> memory) override {
    choose();
    return kj::heap<PinnedMemory>(memory);
  }

  kj::Own<ConvolutionPlan> plan(const ConvolutionProblem& shape, Direction direction) override {
    choose();
    return convolutions->plan(shape, direction);
  }
  void run(ConvolutionPlan& plan, const void* a, const void* b, void* c, void* workspace) override {
    choose();
    convolutions->run(kj::downcast<LibraryPlan>(plan), a, b, c, workspace);
  }

  void upload(void* to, kj::ArrayPtr<const byte> from) override {
    choose();
    check(cudaMemcpyAsync(to, from.begin(), from.size(), cudaMemcpyHostToDevice, stream),
        "copy to the device");
  }
  void upload(void* to, kj::ArrayPtr<const byte> from, Mark& free, Mark& done) override {
    choose();
    check(cudaStreamWaitEvent(copies, eventOf(free), 0), "wait for an event");
    check(cudaMemcpyAsync(to, from.begin(), from.size(), cudaMemcpyHostToDevice, copies),
        "copy to the device");
    check(cudaEventRecord(eventOf(done), copies), "record an event");
  }
  void follow(Mark& mark) override {
    choose();
    check(cudaStreamWaitEvent(stream, eventOf(mark), 0), "wait for an event");
  }
  void download(kj::ArrayPtr<byte> to, const void* from) override {
    choose();
    check(cudaMemcpyAsync(to.begin(), from, to.size(), cudaMemcpyDeviceToHost, stream),
        "copy from the device");
  }
  void copyFrom(void* to, Device& other, const void* from, size_t bytes) override {
    choose();
    int there = kj::downcast<GpuDevice>(other).number;
    reach(there);
    check(cudaMemcpyPeerAsync(to, number, from, there, bytes, stream), "copy between devices");
  }
  void run(const Kernel& kernel) override {
    choose();
    launch(kernel, stream);
    check(cudaGetLastError(), kj::str("launch ", nameOf(kernel)));
  }

  kj::Own<Recording> record(kj::FunctionParam<void()> ask) override {
    choose();
    // Code that is loaded at its first use cannot be loaded during a recording.
    ask();
    finish();
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "record work");
    cudaGraph_t graph = nullptr;
    auto failure = kj::runCatchingExceptions([&]() { ask(); });
    auto ended = cudaStreamEndCapture(stream, &graph);
    KJ_IF_MAYBE(e, failure) {
      if (graph != nullptr) cudaGraphDestroy(graph);
      kj::throwFatalException(kj::mv(*e));
    }
    check(ended, "record work");
    return kj::heap<GraphRecording>(graph);
  }
  void replay(Recording& recording) override {
    auto executable = kj::downcast<GraphRecording>(recording).executable;
    if (executable == nullptr) return;
    choose();
    check(cudaGraphLaunch(executable, stream), "launch recorded work");
  }

  kj::Own<Mark> newMark() override {
    choose();
    return kj::heap<EventMark>();
  }
  void set(Mark& mark) override {
    choose();
    check(cudaEventRecord(eventOf(mark), stream), "record an event");
  }
  bool isPast(Mark& mark) override {
    auto status = cudaEventQuery(eventOf(mark));
    if (status == cudaErrorNotReady) {
      cudaGetLastError();  // clears the error, so that the next launch does not report it
      return false;
    }
    check(status, "do the work before an event");
    return true;
  }
  void wait(Mark& mark) override {
    check(cudaEventSynchronize(eventOf(mark)), "do the work before an event");
  }
  void finish() override { check(cudaStreamSynchronize(stream), "do the work"); }

private:
  static cudaEvent_t eventOf(Mark& mark) { return kj::downcast<EventMark>(mark).event; }
  static kj::StringPtr nameOf(const Kernel& kernel) {
    return std::visit([](auto& each) { return kj::StringPtr(each.NAME); }, kernel);
  }
  // Lets copies from device `other` bypass the host, if the machine can do that.
  void reach(int other) {
    for (auto known: reached) {
      if (known == other) return;
    }
    reached.add(other);
    int can = 0;
    check(cudaDeviceCanAccessPeer(&can, number, other), "look at another device");
    if (!can) return;
    auto status = cudaDeviceEnablePeerAccess(other, 0);
    if (status == cudaErrorPeerAccessAlreadyEnabled) {
      cudaGetLastError();  // clears the error, so that the next call does not report it
    } else {
      check(status, "reach another device");
    }
  }
  // The runtime remembers a device for each thread.
  void choose() { check(cudaSetDevice(number), kj::str("choose device ", number)); }

  const uint number;
  kj::Vector<int> reached;  // other devices whose copies bypass the host
  cudaStream_t stream = nullptr;
  cudaStream_t copies = nullptr;  // for uploads beside the work
  kj::Own<GpuConvolutions> convolutions;
};

}  // namespace

kj::Own<Device> newGpuDevice(uint number) {
  return kj::heap<GpuDevice>(number);
}

}  // namespace nn::cuda
