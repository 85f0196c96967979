#include "runner/logs/log_styles.h"

#include <capnp/message.h>
#include <doctest/doctest.h>
#include <kj/function.h>
#include <kj/vector.h>

#include "tests/text.h"

namespace runner {
namespace {

const LogStyle& style(kj::StringPtr name) {
  for (auto& row: LOG_STYLES) {
    if (name == row.name) return row;
  }
  FAIL("no such style");
  return LOG_STYLES[0];
}

// Passes events to one style's writer.
struct Told {
  kj::Own<LineWriter> writer;
  double now_s = 1502345678.25;

  explicit Told(kj::StringPtr name): writer(style(name).writer()) {}

  // Returns the lines that an event of `role` `index` adds, each with a newline. Each call takes a
  // quarter of a second of virtual time.
  kj::String operator()(Role role, uint index, kj::FunctionParam<void(Event::Builder)> fill) {
    capnp::MallocMessageBuilder message;
    auto event = message.initRoot<Event>();
    event.setTimeS(now_s);
    now_s += 0.25;
    event.setRole(role);
    event.setIndex(index);
    fill(event);
    auto lines = KJ_MAP(line, writer->lines(event)) {
      return kj::str(line, '\n');
    };
    return kj::strArray(lines, "");
  }

  kj::String placed(kj::StringPtr key, uint server) {
    return (*this)(Role::COORDINATOR, 0, [&](Event::Builder event) {
      event.initPlaced().setKey(key);
      event.getPlaced().setServer(server);
    });
  }
  kj::String joined(Role role, uint index) {
    return (*this)(role, index, [](Event::Builder event) { event.initJoined().setPid(7); });
  }
  kj::String begun(uint worker) {
    return (*this)(Role::WORKER, worker, [](Event::Builder event) {
      auto names = event.initBegun().initDeviceNames(3);
      names.set(0, "cpu");
      names.set(1, "cpu:1");
      names.set(2, "cuda:3");
    });
  }
  // Batch `batches` of `of` of an epoch. The last `interval` batches took one second.
  kj::String speed(uint worker, uint epoch, uint batches, uint of, uint interval, uint globalStep) {
    return (*this)(Role::WORKER, worker, [&](Event::Builder event) {
      auto speed = event.initSpeed();
      speed.setEpoch(epoch);
      speed.setBatch(batches);
      speed.setEpochBatches(of);
      speed.setBatches(interval);
      speed.setIntervalS(1);
      speed.setTrainingS(2);
      speed.setBatchLoss(2.302585);
      speed.setBatchAccuracy(0.125);
      speed.setStep((epoch - 1) * of + batches);
      speed.setGlobalStep(globalStep);
      speed.setPartial(interval < 100);
    });
  }
  kj::String ended(uint worker, bool validates = true) {
    return (*this)(Role::WORKER, worker, [&](Event::Builder event) {
      auto ended = event.initEnded();
      ended.setStep(2005);
      ended.setGlobalStep(2000);
      ended.setTrainingS(12.222222);
      ended.setBatchLoss(0.5 + 1e-9);
      ended.setValidates(validates);
    });
  }
  kj::String validated(uint worker, bool last) {
    return (*this)(Role::WORKER, worker, [&](Event::Builder event) {
      auto validated = event.initValidated();
      validated.setImages(5000);
      validated.setLoss(0.246912);
      validated.setAccuracy(0.8251);
      validated.setGlobalStep(2000);
      validated.setLast(last);
    });
  }
};

TEST_CASE("tf_replica: writes a worker's lines in the order of mnist_replica.py") {
  Told told("tf_replica");
  CHECK(told.placed("hid_w", 1) == "");
  CHECK(told.placed("sm_w", 0) == "");
  CHECK(told.joined(Role::SERVER, 1) == "job name = ps\ntask index = 1\n");
  CHECK(told.joined(Role::WORKER, 0) ==
        "job name = worker\ntask index = 0\nWorker 0: Initializing session...\n");
  CHECK(told.joined(Role::WORKER, 1) ==
        "job name = worker\ntask index = 1\n"
        "Worker 1: Waiting for session to be initialized...\n");
  CHECK(told.begun(1) ==
        "Worker 1: Session initialization complete.\nTraining begins @ 1502345679.500000\n");
  CHECK(told.begun(0) ==
        "hid_w: (VariableV2): /job:ps/replica:0/task:1/cpu:0\n"
        "sm_w: (VariableV2): /job:ps/replica:0/task:0/cpu:0\n"
        "Worker 0: Session initialization complete.\nTraining begins @ 1502345679.750000\n");
  CHECK(told.speed(1, 1, 1, 550, 1, 2) ==
        "1502345680.000000: Worker 1: training step 1 done (global step: 2)\n");
  CHECK(told.validated(1, false) == "");
  CHECK(told.ended(1) == "Training ends @ 1502345680.500000\nTraining elapsed time: 12.222222 s\n");
  // The sum over 5,000 records.
  CHECK(told.validated(1, true) ==
        "After 2000 training step(s), validation cross entropy = 1234.56\n");
}

TEST_CASE("tf_aws: writes steps, updates, the batch's figures, and the time over the updates") {
  Told told("tf_aws");
  CHECK(told.placed("layer1_kernel", 0) == "");
  CHECK(told.joined(Role::WORKER, 0) == "");
  CHECK(told.begun(0) ==
        "layer1_kernel: (VariableV2): /job:ps/replica:0/task:0/cpu:0\nsession started\n");
  CHECK(told.begun(1) == "session started\n");
  CHECK(told.speed(0, 1, 100, 550, 100, 200) ==
        "After 100 training steps (200 global steps), loss on training batch is 2.30259, accuracy "
        "is 0.125. (0.010 sec/batch)\n");
  CHECK(told.ended(0) == "total step: 2005, global_step: 2000\n");
  CHECK(told.validated(0, true) == "");
}

TEST_CASE("schlag: the last batches of an epoch have a separate mean time") {
  Told told("schlag");
  told.begun(0);
  told.begun(1);
  CHECK(told.speed(0, 1, 100, 550, 100, 103) ==
        "Step: 103,  Epoch:  1,  Batch: 100 of 550,  Cost: 2.3026,  AvgTime: 10.00ms\n");
  CHECK(told.speed(1, 12, 50, 50, 50, 1100) ==
        "Step: 1100,  Epoch: 12,  Batch:  50 of  50,  Cost: 2.3026,  AvgTime: 20.00ms\n");
  CHECK(told.validated(0, false) == "");
  CHECK(told.ended(0) == "");
  CHECK(told.validated(0, true) ==
        "Test-Accuracy: 0.83\nTotal Time: 12.22s\nFinal Cost: 0.5000\ndone\n");
}

TEST_CASE("schlag: a run without validation has all final lines except the accuracy") {
  Told told("schlag");
  told.begun(0);
  CHECK(told.ended(0, false) == "Total Time: 12.22s\nFinal Cost: 0.5000\ndone\n");
}

TEST_CASE("schlag: the total time is the training time, also of a worker that joined later") {
  Told told("schlag");
  told.begun(0);
  // A pause, after which the run continues with another worker.
  told.now_s += 3600;
  constexpr kj::StringPtr END = "Total Time: 12.22s\nFinal Cost: 0.5000\ndone\n"_kj;
  CHECK(told.ended(0, false) == END);
  CHECK(told.ended(1, false) == END);
}

TEST_CASE("mxnet: a worker first names its devices") {
  Told told("mxnet");
  CHECK(told.begun(1).slice(23) == " Node[1] Start training with [cpu(0), cpu(1), gpu(3)]\n");
}

TEST_CASE("mxnet: the steps at the end of an epoch have no speed line") {
  Told told("mxnet");
  CHECK(told.speed(0, 1, 550, 550, 50, 550) == "");
  auto line = told.speed(3, 2, 100, 550, 100, 650);
  CHECK(line.slice(23).startsWith(" Node[3] Epoch[1] Batch [100]\tSpeed: 0.00 samples/sec\t"));
}

TEST_CASE("mxnet: a validation with a top-k accuracy has a line with the name of MXNet's metric") {
  Told told("mxnet");
  auto validated = [&](uint k) {
    return told(Role::WORKER, 2, [&](Event::Builder event) {
      auto validated = event.initValidated();
      validated.setEpoch(4);
      validated.setAccuracy(0.5);
      if (k == 0) return;
      validated.initTopK().setK(k);
      validated.getTopK().setAccuracy(0.8123456);
    });
  };
  CHECK(validated(0).slice(23) == " Node[2] Epoch[3] Validation-accuracy=0.500000\n");
  auto lines = validated(5);
  CHECK(tests::contains(lines, " Node[2] Epoch[3] Validation-accuracy=0.500000\n"));
  CHECK(lines.endsWith(" Node[2] Epoch[3] Validation-top_k_accuracy_5=0.812346\n"));
}

TEST_CASE("linesOf: control characters of names neither reach a terminal nor begin a line") {
  auto writer = style("tf_aws").writer();
  auto linesOfOne = [&](kj::FunctionParam<void(Event::Builder)> fill) {
    capnp::MallocMessageBuilder message;
    auto event = message.initRoot<Event>();
    fill(event);
    return kj::strArray(linesOf(*writer, event), "\n");
  };
  linesOfOne([](Event::Builder event) { event.initPlaced().setKey("a\x1b[31m\nb_weight"); });
  CHECK(linesOfOne([](Event::Builder event) { event.initBegun(); }) ==
        "a\\x1b[31m\\x0ab_weight: (VariableV2): /job:ps/replica:0/task:0/cpu:0\nsession started");
  CHECK(tests::contains(
      linesOfOne([](Event::Builder event) { event.initFailed().setReason("\x1b.jpg is gone"); }),
      "the job failed: \\x1b.jpg is gone"));
  CHECK(tests::contains(
      linesOfOne([](Event::Builder event) { event.initUnsaved().setReason("\x1b is full"); }),
      "\\x1b is full"));
}

TEST_CASE("LogStyle: each style counts steps and writes lines as its original system did") {
  CHECK(style("mxnet").every == 50);
  CHECK(style("tf_replica").every == 1);
  CHECK(style("tf_aws").every == 100);
  CHECK(style("schlag").every == 100);
  CHECK(style("schlag").count == LogStyle::IN_EPOCH);
  CHECK(style("tf_aws").count == LogStyle::IN_RUN);
}

}  // namespace
}  // namespace runner
