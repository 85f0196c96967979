#include "nn/device_group.h"

#include <kj/debug.h>
#include <kj/mutex.h>
#include <kj/thread.h>
#include <kj/vector.h>

#include "nn/loops/floats.h"

namespace nn {

namespace {

// A part of a step, for every device.
struct Order {
  enum What { FORWARD, BACKWARD } what;
  Phase phase;  // of FORWARD
  uint segment;
};

// The orders for the other devices since all devices were last idle, and how many each has done.
struct Orders {
  kj::Vector<Order> all;
  kj::Array<size_t> done;  // of each device but the first
  bool ending = false;
  kj::Maybe<kj::Exception> failure;  // the first

  bool areDone() const {
    for (auto count: done) {
      if (count < all.size()) return false;
    }
    return true;
  }
};

void add(kj::ArrayPtr<const float> more, kj::ArrayPtr<float> sum) {
  const float* __restrict__ from = more.begin();
  float* __restrict__ to = sum.begin();
  for (size_t i = 0, n = sum.size(); i < n; ++i) to[i] += from[i];
}

class DeviceGroup final: public Program {
public:
  DeviceGroup(const Graph& graph, kj::ArrayPtr<const Target> targets, ProgramOptions options)
      : graph(graph),
        images(options.batchSize),
        flatParameters(zeros(graph.parameters)),
        flatGradients(zerosIn(options.gradients, graph.parameters)),
        flatStatistics(zeros(graph.statisticsSize)),
        allLogits(zeros(uint64_t(images) * graph.classes)) {
    KJ_REQUIRE(targets.size() >= 1 && targets.size() <= images, targets.size(), images);
    for (auto d: kj::indices(targets)) {
      auto rows = rowsOf(d, targets.size(), images);
      auto own = options;
      own.batchSize = rows.size();
      own.gradients = nullptr;
      own.device = targets[d].device;
      devices.add(Device{targets[d].backend->lower(graph, own), rows});
      shares.add(graph, *devices.back().program, rows);
    }
    {
      auto lock = orders.lockExclusive();
      // Reserves room for the orders of one batch, so that a step does not allocate.
      lock->all.reserve(graph.segments.size() + 1);
      lock->done = kj::heapArray<size_t>(devices.size() - 1);
      for (auto& count: lock->done) count = 0;
    }
    auto builder = kj::heapArrayBuilder<kj::Own<kj::Thread>>(devices.size() - 1);
    KJ_ON_SCOPE_FAILURE(end());
    for (uint other = 0; other + 1 < devices.size(); ++other) {
      builder.add(kj::heap<kj::Thread>([this, other]() { run(other); }));
    }
    threads = builder.finish();
  }

  ~DeviceGroup() noexcept(false) {
    end();
    threads = nullptr;
  }

  kj::ArrayPtr<float> parameters() override { return flatParameters; }
  kj::ArrayPtr<float> gradients() override { return flatGradients; }

  kj::ArrayPtr<float> statistics() override {
    if (!statisticsAreHere) {
      join();
      shares.averageStatistics(flatStatistics);
      statisticsAreHere = true;
    }
    return flatStatistics;
  }

  void setBatch(kj::ArrayPtr<const float> pixels, kj::ArrayPtr<const int32_t> labels,
      kj::ArrayPtr<const uint64_t> draws) override {
    join();
    shares.setBatch(pixels, labels, draws);
  }

  void forward(Phase phase, uint segment) override {
    if (statisticsAreHere) {
      join();
      for (auto& device: devices) copy(flatStatistics, device.program->statistics());
      statisticsAreHere = false;
    }
    carryOut({Order::FORWARD, phase, segment});
  }

  void backward(uint segment) override {
    carryOut({Order::BACKWARD, Phase::TRAIN, segment});
    join();
    auto [begin, end] = graph.segments[segment].parameters;
    auto sum = flatGradients.slice(begin, end);
    // The first is copied: 0 + -0 would lose its sign.
    copy(devices[0].program->gradients().slice(begin, end), sum);
    for (uint d = 1; d < devices.size(); ++d) {
      add(devices[d].program->gradients().slice(begin, end), sum);
    }
  }

  BatchResult result() const override {
    join();
    return shares.result();
  }

  void visitState(configs::StateVisitor& visitor) override {
    join();
    shares.visitStatistics(visitor);
    visitor.floats("program.statistics", flatStatistics);
    visitor.count("program.statistics_are_here", statisticsAreHere);
  }

  kj::ArrayPtr<const float> logits() override {
    join();
    shares.gatherLogits(allLogits);
    return allLogits;
  }

  uint64_t memory_bytes() const override {
    uint64_t floats = 2 * flatParameters.size() + flatStatistics.size() + allLogits.size();
    uint64_t bytes = floats * sizeof(float);
    for (auto& device: devices) bytes += device.program->memory_bytes();
    return bytes;
  }

private:
  struct Device {
    kj::Own<Program> program;
    Range rows;
  };

  // Gives the order to every device. Returns when the first device has done it.
  void carryOut(Order order) {
    orders.lockExclusive()->all.add(order);
    carryOut(order, devices[0]);
  }

  void carryOut(Order order, Device& device) {
    switch (order.what) {
      case Order::FORWARD: {
        auto [begin, end] = graph.segments[order.segment].parameters;
        copy(flatParameters.slice(begin, end), device.program->parameters().slice(begin, end));
        device.program->forward(order.phase, order.segment);
        break;
      }
      case Order::BACKWARD:
        device.program->backward(order.segment);
        device.program->awaitGradients(order.segment);
        break;
    }
  }

  // Waits until all devices have done all orders.
  void join() const {
    auto lock = orders.lockExclusive();
    lock.wait([](const Orders& now) { return now.areDone(); });
    KJ_IF_MAYBE(failure, lock->failure) kj::throwFatalException(kj::cp(*failure));
    lock->all.clear();
    for (auto& count: lock->done) count = 0;
  }

  // The thread of device `other` + 1.
  void run(uint other) {
    for (;;) {
      kj::Maybe<Order> next = orders.when(
          [&](const Orders& now) { return now.ending || now.done[other] < now.all.size(); },
          [&](Orders& now) -> kj::Maybe<Order> {
            if (now.ending) return nullptr;
            return now.all[now.done[other]];
          });
      KJ_IF_MAYBE(order, next) {
        // An exception of a thread would be noticed only when the thread is joined.
        auto problem = kj::runCatchingExceptions([&]() { carryOut(*order, devices[other + 1]); });
        auto lock = orders.lockExclusive();
        KJ_IF_MAYBE(exception, problem) {
          if (lock->failure == nullptr) lock->failure = kj::mv(*exception);
        }
        ++lock->done[other];
      } else {
        return;
      }
    }
  }

  void end() { orders.lockExclusive()->ending = true; }

  const Graph& graph;
  const uint images;
  kj::Array<float> flatParameters;
  kj::Array<float> flatGradients;
  kj::Array<float> flatStatistics;
  // Whether flatStatistics hold the newest values, which go to the devices at the next forward.
  bool statisticsAreHere = false;
  kj::Array<float> allLogits;
  kj::Vector<Device> devices;
  RowShares shares;  // of devices
  kj::MutexGuarded<Orders> orders;
  kj::Array<kj::Own<kj::Thread>> threads;  // last: they use all of the above
};

}  // namespace

Range rowsOf(uint device, uint devices, uint batchSize) {
  KJ_REQUIRE(device < devices && devices <= batchSize, device, devices, batchSize);
  uint64_t each = batchSize / devices;
  return {device * each, device + 1 == devices ? batchSize : (device + 1) * each};
}

void RowShares::add(const Graph& graph, Program& program, Range rows) {
  KJ_REQUIRE(rows.begin == images, rows.begin, images);
  all.add(RowShare{&program, rows});
  images = rows.end;
  pixelsOfImage = graph.inputShape().size();
  classes = graph.classes;
}

void RowShares::setBatch(kj::ArrayPtr<const float> pixels, kj::ArrayPtr<const int32_t> labels,
    kj::ArrayPtr<const uint64_t> draws) {
  KJ_REQUIRE(labels.size() == images && pixels.size() == images * pixelsOfImage,
      "a batch has the wrong size", labels.size(), pixels.size(), images);
  KJ_REQUIRE(draws.size() == 0 || draws.size() == images, draws.size(), images);
  for (auto& [program, rows]: all) {
    program->setBatch(pixels.slice(rows.begin * pixelsOfImage, rows.end * pixelsOfImage),
        labels.slice(rows.begin, rows.end),
        draws.size() == 0 ? draws : draws.slice(rows.begin, rows.end));
  }
}

BatchResult RowShares::result() const {
  BatchResult sums;
  for (auto& share: all) sums.add(share.program->result());
  return sums;
}

// In double, so that the mean of equal values is this value.
void RowShares::averageStatistics(kj::ArrayPtr<float> mean) const {
  auto sums = kj::heapArray<double>(mean.size());
  for (auto& sum: sums) sum = 0;
  for (auto& share: all) {
    auto part = share.program->statistics();
    for (auto i: kj::indices(sums)) sums[i] += part[i] * double(share.rows.size());
  }
  for (auto i: kj::indices(sums)) mean[i] = float(sums[i] / images);
}

void RowShares::visitStatistics(configs::StateVisitor& visitor) const {
  for (auto d: kj::indices(all)) {
    visitor.floats(kj::str("program.device_statistics.", d), all[d].program->statistics());
  }
}

void RowShares::gatherLogits(kj::ArrayPtr<float> logits) const {
  for (auto& [program, rows]: all) {
    copy(program->logits(), logits.slice(rows.begin * classes, rows.end * classes));
  }
}

kj::Own<Program> newDeviceGroup(
    const Graph& graph, kj::ArrayPtr<const Target> targets, ProgramOptions options) {
  KJ_REQUIRE(targets.size() >= 1);
  auto& first = *targets[0].backend;
  bool areAlike = true;
  for (auto& target: targets) areAlike = areAlike && target.backend == &first;
  if (areAlike && first.lowerGroup != nullptr) {
    auto devices = KJ_MAP(target, targets) {
      return target.device;
    };
    return first.lowerGroup(graph, devices, options);
  }
  return kj::heap<DeviceGroup>(graph, targets, options);
}

}  // namespace nn
