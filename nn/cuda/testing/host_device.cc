#include "nn/cuda/testing/host_device.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "nn/chosen_plans.h"
#include "nn/cuda/testing/host_convolution.h"
#include "nn/cuda/testing/host_kernels.h"
#include "nn/lost_device.h"

namespace nn::cuda {

namespace {

// A value of any element type whose bytes are all this byte is a NaN.
constexpr int NAN_BYTE = 0xff;

class HostMemory final: public Memory {
public:
  // Memory that is aligned as on a device.
  HostMemory(size_t bytes, int fill): bytes(kj::heapArray<byte>(bytes + ALIGNMENT_BYTES)) {
    memset(this->bytes.begin(), fill, this->bytes.size());
  }
  byte* begin() override {
    auto address = reinterpret_cast<uintptr_t>(bytes.begin());
    return bytes.begin() + (-address % ALIGNMENT_BYTES);
  }

private:
  static constexpr size_t ALIGNMENT_BYTES = 256;
  kj::Array<byte> bytes;
};

class PinnedMemory final: public Memory {
public:
  explicit PinnedMemory(byte* start): start(start) {}
  byte* begin() override { return start; }

private:
  byte* start;
};

class HostConvolution final: public ConvolutionPlan {
public:
  HostConvolution(const ConvolutionProblem& shape, Direction direction)
      : shape(shape), direction(direction) {}
  size_t workspace_bytes() const override { return 16; }

  const ConvolutionProblem shape;
  const Direction direction;
};

kj::StringPtr nameOf(Direction direction) {
  switch (direction) {
    case Direction::FORWARD:
      return "convolution forward";
    case Direction::BACKWARD_DATA:
      return "convolution backward data";
    case Direction::BACKWARD_FILTERS:
      return "convolution backward filters";
  }
  KJ_UNREACHABLE;
}

constexpr uint BREAKS_AT = 40;

// Whether the test asks for a device that breaks in this way, and no device has done so yet.
bool breaksNow(const char* way) {
  auto path = ::getenv(way);
  if (path == nullptr) return false;
  int raw = ::open(path, O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (raw < 0) return false;
  kj::AutoCloseFd made(raw);
  return true;
}

// Hangs forever if the test asks for that. `way` is the variable of the test: see host_device.h.
void hangOnce(const char* way) {
  if (!breaksNow(way)) return;
  for (;;) ::pause();
}

// If the test asks for it at this point, hangs forever, or fails like a GPU with broken memory.
void breakOnce() {
  hangOnce("HOST_HANGS");
  if (!breaksNow("HOST_BREAKS")) return;
  noteLostDevice();
  configs::fail("cuda:0 cannot launch recorded work: uncorrectable ECC error encountered");
}

}  // namespace

class HostDevice::Recorded final: public Recording {
public:
  kj::Vector<kj::Function<void()>> work;
};

class HostDevice::HostMark final: public Mark {
public:
  explicit HostMark(HostDevice& owner): owner(owner) {}

  HostDevice& owner;
  Stream* stream = nullptr;
  uint64_t set = 0;      // how often it was set
  uint64_t reached = 0;  // how many of these points the work has passed
};

kj::Own<Memory> HostDevice::allocate(size_t bytes) {
  hangOnce("HOST_HANGS_AT_START");
  KJ_REQUIRE(bytes <= bytesMax, "out of memory");
  return kj::heap<HostMemory>(bytes, NAN_BYTE);
}

kj::Own<Memory> HostDevice::allocateOnHost(size_t bytes) {
  return kj::heap<HostMemory>(bytes, 0);
}

kj::Own<Memory> HostDevice::pin(kj::ArrayPtr<byte> memory) {
  return kj::heap<PinnedMemory>(memory.begin());
}

kj::Own<ConvolutionPlan> HostDevice::plan(const ConvolutionProblem& shape, Direction direction) {
  auto problem = kj::str("host, direction ", uint(direction), ": ", shape.images, " images, ",
      shape.x.channels, "x", shape.x.height, " to ", shape.y.channels, "x", shape.y.height);
  auto offered = ::getenv("HOST_PLAN");
  kj::StringPtr own = offered == nullptr ? "loops"_kj : kj::StringPtr(offered);
  noteChosenPlan(problem, wantedPlan(problem).orDefault(kj::str(own)));
  return kj::heap<HostConvolution>(shape, direction);
}

// ---- streams

void HostDevice::ask(kj::Function<void()> what) {
  KJ_IF_MAYBE(recorded, recording) {
    recorded->work.add(kj::mv(what));
  } else {
    ask(work, {kj::mv(what), {}, {}});
  }
}

void HostDevice::ask(Stream& stream, Step step) {
  KJ_REQUIRE(recording == nullptr, "this is not recorded");
  stream.steps.push_back(kj::mv(step));
  advance();
}

void HostDevice::advance() {
  for (bool goesOn = true; goesOn;) {
    goesOn = false;
    for (auto stream: {&work, &copies}) {
      while (!stream->isLate && !stream->steps.empty() && stream->steps.front().behind.isPast()) {
        doNext(*stream);
        goesOn = true;
      }
    }
  }
}

void HostDevice::doNext(Stream& stream) {
  auto step = kj::mv(stream.steps.front());
  stream.steps.pop_front();
  reach(step.behind);
  step.what();
  if (step.reaches.mark != nullptr) step.reaches.mark->reached = step.reaches.count;
}

bool HostDevice::MarkedPoint::isPast() const {
  return mark == nullptr || mark->reached >= count;
}

void HostDevice::reach(MarkedPoint point) {
  while (!point.isPast()) doNext(*point.mark->stream);
}

HostDevice::MarkedPoint HostDevice::pointOf(Mark& mark) {
  auto& own = kj::downcast<HostMark>(mark);
  return {&own, own.set};
}

HostDevice::MarkedPoint HostDevice::point(Mark& mark, Stream& stream) {
  auto& own = kj::downcast<HostMark>(mark);
  KJ_REQUIRE(&own.owner == this, "a mark of another device");
  KJ_REQUIRE(own.stream == nullptr || own.stream == &stream, "a mark of another stream");
  own.stream = &stream;
  own.set++;
  return pointOf(mark);
}

// ---- work

void HostDevice::upload(void* to, kj::ArrayPtr<const byte> from) {
  ask([to, from]() { memcpy(to, from.begin(), from.size()); });
}

void HostDevice::upload(void* to, kj::ArrayPtr<const byte> from, Mark& free, Mark& done) {
  auto behind = pointOf(free);
  ask(copies,
      {[to, from]() { memcpy(to, from.begin(), from.size()); }, behind, point(done, copies)});
}

void HostDevice::follow(Mark& mark) {
  ask(work, {[]() {}, pointOf(mark), {}});
}

void HostDevice::download(kj::ArrayPtr<byte> to, const void* from) {
  ask([to, from]() mutable { memcpy(to.begin(), from, to.size()); });
}

void HostDevice::copyFrom(void* to, Device&, const void* from, size_t bytes) {
  ask([to, from, bytes]() { memcpy(to, from, bytes); });
}

void HostDevice::run(const Kernel& kernel) {
  ask([this, kernel]() {
    done.add(std::visit([](auto& each) { return kj::StringPtr(each.NAME); }, kernel));
    runOnHost(kernel);
  });
}

void HostDevice::run(
    ConvolutionPlan& plan, const void* a, const void* b, void* c, void* workspace) {
  KJ_REQUIRE(workspace != nullptr);
  auto& planned = kj::downcast<HostConvolution>(plan);
  ask([this, &planned, a, b, c]() {
    done.add(nameOf(planned.direction));
    convolveOnHost(planned.shape, planned.direction, a, b, c);
  });
}

kj::Own<Recording> HostDevice::record(kj::FunctionParam<void()> ask) {
  ask();
  done.clear();
  auto recorded = kj::heap<Recorded>();
  KJ_REQUIRE(recording == nullptr, "one recording at a time");
  recording = *recorded;
  KJ_DEFER(recording = nullptr);
  ask();
  return recorded;
}

void HostDevice::replay(Recording& recording) {
  if (++replays == BREAKS_AT) breakOnce();
  for (auto& work: kj::downcast<Recorded>(recording).work) ask([&work]() { work(); });
}

kj::Own<Mark> HostDevice::newMark() {
  return kj::heap<HostMark>(*this);
}

void HostDevice::set(Mark& mark) {
  ask(work, {[]() {}, {}, point(mark, work)});
}

bool HostDevice::isPast(Mark& mark) {
  return pointOf(mark).isPast();
}

void HostDevice::wait(Mark& mark) {
  reach(pointOf(mark));
  advance();
}

void HostDevice::finish() {
  while (!work.steps.empty()) doNext(work);
  advance();
}

kj::Array<kj::StringPtr> HostDevice::takeWork() {
  return done.releaseAsArray();
}

}  // namespace nn::cuda
