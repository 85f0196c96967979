#include "runner/logs/run_record.h"

#include <capnp/message.h>
#include <doctest/doctest.h>
#include <kj/function.h>
#include <kj/vector.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "runner/logs/events.h"
#include "runner/system/files.h"
#include "tests/text.h"

namespace runner {
namespace {

// Writes the events of a run to a folder.
class Events {
public:
  explicit Events(kj::StringPtr name): folder(kj::str(::getenv("TEST_TMPDIR"), "/", name)) {
    REQUIRE(::mkdir(folder.cStr(), 0777) == 0);
  }

  void add(uint worker, kj::FunctionParam<void(Event::Builder)> fill) {
    capnp::MallocMessageBuilder message;
    auto event = message.initRoot<Event>();
    event.setRole(Role::WORKER);
    event.setIndex(worker);
    fill(event);
    text.addAll(formatEvent(event));
    text.add('\n');
  }

  void start(uint workers) {
    add(0, [&](Event::Builder event) {
      auto started = event.initStarted();
      started.setName("x");
      started.setDigest("abc");
      started.setCpu("A processor");
      started.setCores(2);
      started.setWorkers(workers);
      started.setParameters(1234);
    });
  }

  void train(uint worker, uint epoch, uint images, double accuracy, double seconds) {
    add(worker, [&](Event::Builder event) {
      auto trained = event.initTrained();
      trained.setEpoch(epoch);
      trained.setImages(images);
      trained.setAccuracy(accuracy);
      trained.setLoss(1 - accuracy);
      trained.setTimeS(seconds);
      trained.setStep(10 * epoch + worker);
      trained.setGlobalStep(20 * epoch + worker);
      trained.setForwardS(seconds / 2);
      trained.setPushedBytes(100);
    });
  }

  void validate(uint worker, uint epoch, double accuracy) {
    add(worker, [&](Event::Builder event) {
      auto validated = event.initValidated();
      validated.setEpoch(epoch);
      validated.setAccuracy(accuracy);
      validated.setLoss(0.5);
    });
  }

  void validateTopK(uint worker, uint epoch, uint k, double accuracy) {
    add(worker, [&](Event::Builder event) {
      auto validated = event.initValidated();
      validated.setEpoch(epoch);
      validated.initTopK().setK(k);
      validated.getTopK().setAccuracy(accuracy);
    });
  }

  RunRecord read(kj::StringPtr torn = "") {
    writeWhole(kj::str(folder, "/events.jsonl"), kj::str(text, torn));
    return readRunRecord(folder);
  }

  const kj::String folder;

private:
  kj::Vector<char> text;
};

TEST_CASE("readRunRecord: traffic includes that of a worker in whose place another has joined") {
  Events events("replaced");
  events.start(2);
  auto train = [&](uint worker, uint epoch, double calls) {
    events.add(worker, [&](Event::Builder event) {
      auto trained = event.initTrained();
      trained.setEpoch(epoch);
      auto server = trained.initServers(1)[0];
      server.setTransport("tcp");
      server.setCalls(calls);
      server.setPushedBytes(10 * calls);
      server.setRoundTripMaxS(calls / 1000);
    });
  };
  train(0, 1, 100);
  train(1, 1, 100);
  events.add(1, [](Event::Builder event) {
    event.initMembership().setJoined(true);
    event.getMembership().setWorkers(2);
  });
  train(0, 2, 200);
  train(1, 2, 30);
  auto record = events.read();
  REQUIRE(record.links.size() == 2);
  CHECK(record.links[0].calls == 200);
  CHECK(record.links[1].calls == 130);
  CHECK(record.links[1].pushed_bytes == 1300);
  CHECK(record.links[1].roundTripMax_s == 0.1);
}

TEST_CASE(
    "readRunRecord: traffic and counts are those of the last epoch, waits are summed over all "
    "epochs") {
  Events events("store");
  events.start(2);
  for (uint epoch = 1; epoch <= 2; epoch++) {
    for (uint worker: {1, 0}) {
      events.add(worker, [&](Event::Builder event) {
        auto trained = event.initTrained();
        trained.setEpoch(epoch);
        trained.setSteps(10);
        trained.setPullS(0.5);
        auto servers = trained.initServers(2);
        for (uint i = 0; i < 2; i++) {
          servers[i].setTransport("tcp");
          servers[i].setCalls(100 * epoch + 10 * worker + i);
          servers[i].setRoundTripMaxS(0.25 * epoch);
        }
      });
    }
    events.add(0, [&](Event::Builder event) {
      event.setRole(Role::SERVER);
      auto pushes = event.initCounted().initPushes();
      pushes.setPushed(1000 * epoch);
      pushes.initStaleness(2).set(1, epoch);
    });
  }
  auto record = events.read();
  REQUIRE(record.links.size() == 4);
  for (uint i = 0; i < 4; i++) {
    CHECK(record.links[i].worker == i / 2);
    CHECK(record.links[i].server == i % 2);
    CHECK(record.links[i].calls == 200 + 10 * (i / 2) + i % 2);
    CHECK(record.links[i].roundTripMax_s == 0.5);
  }
  REQUIRE(record.waits.size() == 2);
  CHECK(record.waits[1].steps == 20);
  CHECK(record.waits[1].pull_s == 1);
  REQUIRE(record.counted.size() == 1);
  CHECK(record.counted[0].pushed == 2000);
  CHECK(record.counted[0].staleness[1] == 2);
}

TEST_CASE("readRunRecord: weights the means of workers by their images, and adds up their speeds") {
  Events events("workers");
  events.start(2);
  events.train(0, 1, 300, 0.5, 1);
  events.train(1, 1, 100, 0.9, 3);
  events.validate(0, 1, 0.7);
  events.validate(1, 1, 0.7);
  events.add(0, [](Event::Builder event) {
    auto finished = event.initFinished();
    finished.setWeightsSha256("def");
    finished.setSeconds(4);
  });
  auto record = events.read();
  CHECK(record.state == RunRecord::FINISHED);
  CHECK(record.name == "x");
  CHECK(record.digest == "abc");
  CHECK(record.weightsSha256 == "def");
  CHECK(record.run_s == 4);
  CHECK(record.workers == 2);
  CHECK(record.machine.cpu == "A processor");
  CHECK(record.parameters == 1234);

  REQUIRE(record.epochRecords.size() == 1);
  auto& epoch = record.epochRecords[0];
  CHECK(epoch.workers == 2);
  CHECK(epoch.images == 400);
  CHECK(epoch.trainAccuracy == doctest::Approx(0.6));
  CHECK(epoch.trainLoss == doctest::Approx(0.4));
  CHECK(epoch.epoch_s == doctest::Approx(2));
  CHECK(epoch.images_per_s == doctest::Approx(300 + 100.0 / 3));
  CHECK(epoch.step == 10);
  CHECK(epoch.globalStep == 21);
  CHECK(epoch.verbs.forward_s == doctest::Approx(1));
  CHECK(epoch.pushed_bytes == 200);
  CHECK(KJ_ASSERT_NONNULL(epoch.validationAccuracy) == doctest::Approx(0.7));
}

TEST_CASE(
    "readRunRecord: averages the top-k accuracy over workers, and has it only for its own k") {
  Events events("top_k");
  events.start(2);
  events.validateTopK(0, 1, 5, 0.5);
  events.validateTopK(1, 1, 5, 0.75);
  events.validate(0, 2, 0.7);
  auto record = events.read();
  REQUIRE(record.epochRecords.size() == 2);
  CHECK(record.epochRecords[0].topKAccuracy(5).orDefault(-1) == 0.625);
  CHECK(record.epochRecords[0].topKAccuracy(3) == nullptr);
  CHECK(record.epochRecords[1].topKAccuracy(5) == nullptr);
}

TEST_CASE("formatEvent: a validation without log.top_k has no fields for it") {
  capnp::MallocMessageBuilder message;
  auto event = message.initRoot<Event>();
  event.initValidated().setEpoch(1);
  CHECK_FALSE(tests::contains(formatEvent(event), "top_k"));
  event.getValidated().initTopK().setK(5);
  auto line = formatEvent(event);
  CHECK(tests::contains(line, R"("views":0,"top_k":5,"top_k_accuracy":0})"));
  capnp::MallocMessageBuilder copy;
  parseEvent(line, copy.initRoot<Event>());
  CHECK(copy.getRoot<Event>().getValidated().getTopK().getK() == 5);
}

TEST_CASE("readRunRecord: sorts epochs, whichever worker reports them first") {
  Events events("order");
  events.start(2);
  events.train(1, 1, 100, 0.1, 1);
  events.train(1, 2, 100, 0.2, 1);
  events.train(0, 1, 100, 0.1, 1);
  events.train(0, 2, 100, 0.2, 1);
  auto record = events.read();
  REQUIRE(record.epochRecords.size() == 2);
  CHECK(record.epochRecords[0].epoch == 1);
  CHECK(record.epochRecords[1].epoch == 2);
  CHECK(record.epochRecords[1].validationAccuracy == nullptr);
}

TEST_CASE("readRunRecord: an epoch that only some workers have done is not a record yet") {
  Events events("partial");
  auto size = [&]() { return events.read().epochRecords.size(); };
  auto setPresent = [&](uint workers) {
    events.add(0, [&](Event::Builder event) { event.initMembership().setWorkers(workers); });
  };
  events.start(3);
  for (uint worker: {0, 1, 2}) events.train(worker, 1, 100, 0.1, 1);
  CHECK(size() == 1);
  for (uint worker: {0, 1}) events.train(worker, 2, 100, 0.2, 1);
  events.validate(0, 2, 0.7);
  events.train(0, 3, 100, 0.3, 1);
  CHECK(size() == 1);
  // Worker 2 leaves without having reported epoch 2.
  setPresent(2);
  CHECK(size() == 2);
  events.train(1, 3, 100, 0.3, 1);
  CHECK(size() == 3);
  // Workers that join after an epoch do not report it.
  setPresent(4);
  CHECK(size() == 3);
}

TEST_CASE("readRunRecord: skips a last line that is cut off, and the run is unfinished") {
  Events events("torn");
  events.start(1);
  events.train(0, 1, 100, 0.1, 1);
  auto record = events.read("{\"time_s\":17951700");
  CHECK(record.state == RunRecord::UNFINISHED);
  CHECK(record.reason == "it is still running, or its processes were killed");
  CHECK(record.epochRecords.size() == 1);
}

TEST_CASE("readRunRecord: a run that failed or was stopped has its reason") {
  Events failed("failed");
  failed.start(1);
  failed.add(0, [](Event::Builder event) { event.initFailed().setReason("the loss is nan"); });
  auto record = failed.read();
  CHECK(record.state == RunRecord::FAILED);
  CHECK(record.reason == "the loss is nan");
  CHECK(record.epochRecords.size() == 0);

  Events interrupted("interrupted");
  interrupted.start(1);
  interrupted.add(
      0, [](Event::Builder event) { event.initInterrupted().setReason("received SIGTERM"); });
  CHECK(interrupted.read().state == RunRecord::INTERRUPTED);

  Events stopped("stopped");
  stopped.start(1);
  stopped.add(0, [](Event::Builder event) { event.initStopped().setReason("not among the best"); });
  CHECK(stopped.read().state == RunRecord::STOPPED);
}

TEST_CASE("readRunRecord: refuses a line that is not an event, and a folder without events") {
  Events events("wrong");
  events.start(1);
  CHECK_THROWS(events.read("nonsense\n"));
  CHECK_THROWS(readRunRecord("/nowhere"));
}

TEST_CASE("readRunRecord: a worker that measured no time does not have infinite speed") {
  Events events("instant");
  events.start(1);
  events.train(0, 1, 100, 0.1, 0);
  CHECK(events.read().epochRecords[0].images_per_s == 0);
}

}  // namespace
}  // namespace runner
