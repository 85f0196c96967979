#include "runner/roles/job_saver.h"

#include <capnp/message.h>
#include <doctest/doctest.h>
#include <kj/async-io.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/checkpoints/saved_part.h"
#include "runner/experiment/model_facts.h"
#include "runner/roles/stop_point.h"
#include "runner/system/files.h"
#include "runner/system/reason.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

// The calls that a worker of the test has received, and its state.
struct Heard {
  StopPoint stops;
  kj::Vector<uint64_t> asked, saves, leaves;  // steps: asked for, decided to save, or not to
  kj::Maybe<kj::Promise<void>> answersAfter;
  uint shardsSaved = 0;
};

class TestMember final: public Member::Server {
public:
  explicit TestMember(Heard& heard): heard(heard) {}

  kj::Promise<void> stopAt(StopAtContext context) override {
    kj::Promise<void> ready = kj::READY_NOW;
    KJ_IF_MAYBE(late, heard.answersAfter) {
      ready = kj::mv(*late);
      heard.answersAfter = nullptr;
    }
    return ready.then([this, context]() mutable {
      uint64_t step = context.getParams().getStep();
      heard.asked.add(step);
      auto answer = heard.stops.ask(step);
      context.getResults().setAnswer(answer.answer);
      context.getResults().setStep(answer.begun);
    });
  }
  kj::Promise<void> decide(DecideContext context) override {
    auto params = context.getParams();
    (params.getSave() ? heard.saves : heard.leaves).add(params.getStep());
    if (!params.getSave()) heard.stops.cancel();
    return kj::READY_NOW;
  }
  kj::Promise<void> saveShard(SaveShardContext) override {
    heard.shardsSaved++;
    return kj::READY_NOW;
  }

private:
  Heard& heard;
};

// The saver of a job of two workers.
struct TestSaver {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  LoadedExperiment loaded;
  kj::Own<ModelFacts> facts;
  RunFolder folder;
  Heard workers[2];
  Heard server;
  uint saved = 0;
  kj::String failure;
  kj::Own<JobSaver> saver;

  explicit TestSaver(kj::StringPtr name, kj::StringPtr servers = "cluster.servers=1"_kj) {
    loaded = loadExperiment("configs/fashion_mnist_dist_sync.toml", {servers});
    REQUIRE(loaded.errors == "");
    auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
    facts = kj::heap<ModelFacts>(experiment);
    folder.path = kj::str(::getenv("TEST_TMPDIR"), "/", name);
    REQUIRE(::mkdir(folder.path.cStr(), 0777) == 0);
    saver = kj::heap<JobSaver>(experiment, loaded.digest, facts->graph, folder,
        io.provider->getTimer(),
        [this](const SavedPoint&, kj::Maybe<const JobSaver::Saved&> outcome, kj::StringPtr why) {
          if (outcome == nullptr) failure = kj::str(why);
          saved++;
        });
    for (auto& worker: workers) worker.stops.beginEpoch(0, 1000);
  }

  // Lets a worker begin all steps before this one.
  void begin(uint rank, uint64_t step) {
    for (uint64_t s = 0; s < step; s++) CHECK_FALSE(workers[rank].stops.isAsked(s));
  }

  kj::Promise<void> ask(uint64_t furthest) {
    auto members = kj::heapArrayBuilder<Member::Client>(2);
    for (auto& worker: workers) members.add(kj::heap<TestMember>(worker));
    return saver->ask(members.finish(), furthest).eagerlyEvaluate(nullptr);
  }

  // Begins to collect the parts of workers that have all stopped at `step`.
  void gather(uint64_t step) { beginGather(step).wait(io.waitScope); }
  kj::Promise<void> beginGather(uint64_t step) {
    kj::Vector<Member::Client> shards;
    for (uint i = 0; i < KJ_ASSERT_NONNULL(loaded.experiment).cluster.servers; i++) {
      shards.add(kj::heap<TestMember>(server));
    }
    SavedPoint point{kj::str(loaded.digest), kj::str("avx2"), 1, step, 0.5, 0};
    return saver->gather(kj::mv(point), kj::arr(0u, 1u), shards.releaseAsArray());
  }

  void take(PartName name, uint64_t step, uint64_t total, uint64_t offset,
      kj::ArrayPtr<const kj::byte> bytes) {
    capnp::MallocMessageBuilder message;
    auto piece = message.initRoot<Session::SavePartParams>();
    piece.setStep(step);
    piece.setPart(name.kind);
    piece.setIndex(name.index);
    piece.setTotal(total);
    piece.setOffset(offset);
    piece.setBytes(bytes);
    saver->take(name, piece);
  }

  // Sends a part in two pieces.
  void take(PartName name, uint64_t step, SavedPart part) {
    auto bytes = kj::heapArray<kj::byte>(part.size());
    part.copy(0, bytes);
    take(name, step, bytes.size(), 0, bytes.slice(0, 1000));
    take(name, step, bytes.size(), 1000, bytes.slice(1000, bytes.size()));
  }

  // Sends all parts. They lack the last `lacking` parameters.
  void takeAll(uint64_t step, size_t lacking = 0) {
    for (auto name:
        {PartName{Part::WORKER, 0}, PartName{Part::SHARD, 0}, PartName{Part::WORKER, 1}}) {
      takeWhole(name, step, lacking);
    }
  }
  void takeWhole(PartName name, uint64_t step, size_t lacking = 0) {
    auto parameters = kj::heapArray<float>(facts->graph.parameters - lacking);
    auto statistics = kj::heapArray<float>(facts->graph.statisticsSize);
    for (auto& value: parameters) value = 1;
    for (auto& value: statistics) value = 2;
    PartSaver parts(0);
    parts.floats("program.statistics", statistics);
    parts.floats("parameters", parameters);
    take(name, step, parts.finish());
  }
};

TEST_CASE("JobSaver: workers that have not begun the step stop there, and are all saved") {
  TestSaver job("agree");
  job.begin(0, 3);
  job.begin(1, 4);
  job.ask(4).wait(job.io.waitScope);
  for (auto& worker: job.workers) {
    CHECK(kj::str(worker.asked) == "6");
    CHECK(kj::str(worker.saves) == "6");
    CHECK(worker.leaves.size() == 0);
  }
  CHECK(job.saver->isBusy());
  job.gather(6);
  CHECK(job.server.shardsSaved == 1);
  CHECK(job.saved == 0);
  job.takeAll(6);
  job.saver->whenIdle().wait(job.io.waitScope);
  CHECK(job.failure == "");
  CHECK(job.saved == 1);
  CHECK_FALSE(job.saver->isBusy());
  CHECK_FALSE(job.saver->takeNextEpoch());
  auto found = newestCheckpoint(
      job.folder, kj::StringPtr(job.loaded.digest), [](kj::String why) { FAIL(why.cStr()); });
  CHECK(KJ_ASSERT_NONNULL(found).point.step == 6);
}

TEST_CASE("JobSaver: only the weights have the shards' values if no worker sends parameters") {
  TestSaver job("shards", "cluster.servers=2");
  auto& graph = job.facts->graph;
  auto placement = placementOf(KJ_ASSERT_NONNULL(job.loaded.experiment), graph);
  auto parameters = kj::heapArray<float>(graph.parameters);
  for (auto i: kj::indices(parameters)) parameters[i] = float(i);
  auto statistics = kj::heapArray<float>(graph.statisticsSize);
  job.gather(6);
  uint64_t rested = 3;
  for (uint shard: {0u, 1u}) {
    kj::Vector<kj::ArrayPtr<float>> slices;
    for (auto id: placement.shards[shard]) {
      slices.add(placement.slices[id].of(parameters.asPtr()));
    }
    PartSaver part(0);
    part.count("shard.rested", rested);
    part.floats("shard.values", slices);
    job.take({Part::SHARD, shard}, 6, part.finish());
  }
  auto padding = kj::heapArray<float>(1000);
  for (uint rank: {0u, 1u}) {
    PartSaver part(0);
    part.floats("program.statistics", statistics);
    part.floats("store.unsent", padding);
    job.take({Part::WORKER, rank}, 6, part.finish());
  }
  job.saver->whenIdle().wait(job.io.waitScope);
  CHECK(job.failure == "");
  auto file = readWhole(kj::str(job.folder.checkpoints(), "/step-6/", CHECKPOINT_WEIGHTS), 1 << 24);
  auto values = KJ_REQUIRE_NONNULL(valuesIn(file.asBytes()));
  CHECK((values == parameters.asBytes()));
  auto shard = readWhole(kj::str(job.folder.checkpoints(), "/step-6/shard-1.safetensors"), 1 << 24);
  auto arrays = tensorsIn(shard.asBytes());
  REQUIRE(arrays.size() == 1);
  CHECK(arrays[0].name == "shard.rested");
}

TEST_CASE("JobSaver: a checkpoint that cannot be written does not prevent the next one") {
  TestSaver job("unwritable");
  auto inTheWay = job.folder.checkpoints();
  writeWhole(inTheWay, "a file in place of the folder");
  job.gather(6);
  job.takeAll(6);
  job.saver->whenIdle().wait(job.io.waitScope);
  CHECK(contains(job.failure, inTheWay));
  CHECK_FALSE(job.saver->isBusy());

  job.failure = nullptr;
  REQUIRE(::unlink(inTheWay.cStr()) == 0);
  job.gather(8);
  job.takeAll(8);
  job.saver->whenIdle().wait(job.io.waitScope);
  CHECK(job.failure == "");
  CHECK(job.saved == 2);
  CHECK(readCheckpoint(kj::str(inTheWay, "/step-8")).point.step == 8);
}

TEST_CASE("JobSaver: gives up a checkpoint that waits for its turn if a worker is lost meanwhile") {
  TestSaver job("lost");
  job.gather(6);
  auto second = job.beginGather(8);
  job.takeWhole({Part::WORKER, 1}, 6);
  CHECK(job.saver->abandon(1));
  job.takeWhole({Part::WORKER, 0}, 6);
  job.takeWhole({Part::SHARD, 0}, 6);
  second.wait(job.io.waitScope);
  CHECK_FALSE(job.saver->gathers(8));
  CHECK_FALSE(job.saver->isBusy());
  // Parts of this checkpoint that still arrive are ignored.
  job.takeAll(8);
  job.gather(10);
  CHECK(job.saver->gathers(10));
  job.takeAll(10);
  job.saver->whenIdle().wait(job.io.waitScope);
  CHECK(job.saved == 2);
}

TEST_CASE("JobSaver: gives up both checkpoints if the older one lacks the lost worker's part") {
  TestSaver job("both");
  job.gather(6);
  auto second = job.beginGather(8);
  CHECK(job.saver->abandon(1));
  // All workers wait for this promise.
  second.wait(job.io.waitScope);
  CHECK_FALSE(job.saver->isBusy());
  // Parts of both that still arrive are dropped.
  job.takeAll(6);
  job.takeAll(8);
  job.gather(10);
  job.takeAll(10);
  job.saver->whenIdle().wait(job.io.waitScope);
  CHECK(job.saved == 1);
}

TEST_CASE("JobSaver: asks for a step further ahead if a worker has begun the first one") {
  TestSaver job("passed");
  job.begin(1, 50);
  job.ask(4).wait(job.io.waitScope);
  CHECK(kj::str(job.workers[0].asked) == "6, 54");
  CHECK(kj::str(job.workers[0].leaves) == "6");
  CHECK(kj::str(job.workers[0].saves) == "54");
  // Only workers that have agreed are told the decision.
  CHECK(job.workers[1].leaves.size() == 0);
  CHECK(kj::str(job.workers[1].saves) == "54");
}

TEST_CASE("JobSaver: leaves the checkpoint to the next epoch if this one ends too soon") {
  TestSaver job("ends");
  job.workers[1].stops.beginEpoch(0, 5);
  job.begin(1, 1);
  job.ask(4).wait(job.io.waitScope);
  CHECK(kj::str(job.workers[0].leaves) == "6");
  CHECK(job.workers[1].leaves.size() == 0);
  CHECK_FALSE(job.saver->isBusy());
  CHECK(job.saver->takeNextEpoch());
  CHECK_FALSE(job.saver->takeNextEpoch());
}

TEST_CASE("JobSaver: moves a stop that the workers do not reach in their epoch to the next one") {
  TestSaver job("moved");
  job.ask(4).wait(job.io.waitScope);
  CHECK(job.saver->isBusy());
  job.saver->endEpoch();
  CHECK_FALSE(job.saver->isBusy());
  CHECK(job.saver->takeNextEpoch());
  job.saver->endEpoch();
  CHECK_FALSE(job.saver->takeNextEpoch());
  // A request that is not answered yet stays.
  auto paf = kj::newPromiseAndFulfiller<void>();
  job.workers[1].answersAfter = kj::mv(paf.promise);
  auto asking = job.ask(4);
  job.saver->endEpoch();
  CHECK(job.saver->isBusy());
  paf.fulfiller->fulfill();
  asking.wait(job.io.waitScope);
  CHECK(job.saver->isBusy());
}

TEST_CASE("JobSaver: saves nothing before every worker has begun its first epoch") {
  TestSaver job("early");
  // A worker that is still making its program.
  job.workers[1].stops.beginEpoch(0, 0);
  job.begin(0, 1);
  job.ask(0).wait(job.io.waitScope);
  CHECK_FALSE(job.saver->isBusy());
  CHECK_FALSE(job.saver->isForNextEpoch());
  CHECK(kj::str(job.workers[0].leaves) == "2");
  job.workers[1].stops.beginEpoch(0, 1000);
  job.ask(0).wait(job.io.waitScope);
  CHECK(job.saver->isBusy());
}

TEST_CASE("JobSaver: decides when the last worker has answered") {
  TestSaver job("late");
  auto paf = kj::newPromiseAndFulfiller<void>();
  job.workers[1].answersAfter = kj::mv(paf.promise);
  auto asking = job.ask(4);
  CHECK_FALSE(asking.poll(job.io.waitScope));
  CHECK(kj::str(job.workers[0].asked) == "6");
  CHECK(job.workers[0].saves.size() == 0);
  CHECK(job.saver->isBusy());
  // Meanwhile, that worker has passed the step.
  job.begin(1, 7);
  paf.fulfiller->fulfill();
  asking.wait(job.io.waitScope);
  CHECK(kj::str(job.workers[0].leaves) == "6");
  CHECK(kj::str(job.workers[0].saves) == "11");
}

TEST_CASE("JobSaver: a request that nobody agrees to does not disturb a checkpoint in progress") {
  TestSaver job("meanwhile");
  auto paf = kj::newPromiseAndFulfiller<void>();
  job.workers[1].answersAfter = kj::mv(paf.promise);
  auto asking = job.ask(4);
  CHECK_FALSE(asking.poll(job.io.waitScope));
  // Because of checkpoint.every_steps, the workers are saved before the step of the request.
  job.gather(5);
  job.workers[1].stops.beginEpoch(5, 6);
  paf.fulfiller->fulfill();
  asking.wait(job.io.waitScope);
  CHECK(job.saver->isBusy());
  job.takeAll(5);
  job.saver->whenIdle().wait(job.io.waitScope);
  CHECK(job.saved == 1);
  CHECK(job.failure == "");
  CHECK_FALSE(job.saver->isBusy());
  CHECK(job.saver->takeNextEpoch());
}

TEST_CASE("JobSaver: refuses pieces of parts that do not fit") {
  TestSaver job("pieces");
  kj::byte bytes[100] = {};
  PartName first{Part::WORKER, 0};
  CHECK_THROWS(job.take(first, 8, 100, 0, bytes));  // nothing is saved
  job.gather(8);
  CHECK_THROWS(job.take(first, 9, 100, 0, bytes));
  CHECK_THROWS(job.take({Part::WORKER, 2}, 8, 100, 0, bytes));
  CHECK_THROWS(job.take({Part::SHARD, 1}, 8, 100, 0, bytes));
  CHECK_THROWS(job.take(first, 8, 1ull << 62, 0, bytes));
  CHECK_THROWS(job.take(first, 8, 0, 0, bytes));
  job.take(first, 8, 300, 0, bytes);
  CHECK_THROWS(job.take(first, 8, 300, 0, bytes));    // again
  CHECK_THROWS(job.take(first, 8, 300, 200, bytes));  // one is missing
  CHECK_THROWS(job.take(first, 8, 300, 100, nullptr));
  job.take(first, 8, 300, 100, bytes);
  job.take(first, 8, 300, 200, bytes);
  CHECK_THROWS(job.take(first, 8, 300, 300, bytes));
}

TEST_CASE("JobSaver: refuses a part that lacks the array for the weights") {
  TestSaver job("arrays");
  job.gather(8);
  auto wrong = kj::runCatchingExceptions([&]() { job.takeAll(8, 1); });
  auto bytes = job.facts->graph.parameters * sizeof(float);
  CHECK(reasonOf(KJ_REQUIRE_NONNULL(wrong)) ==
        kj::str("its array `parameters` has ", bytes - 4, " bytes, and not ", bytes));
}

}  // namespace
}  // namespace runner
