#include "runner/sweep/validated_epochs.h"

#include <capnp/message.h>
#include <doctest/doctest.h>

namespace runner {
namespace {

// A run whose file asks for two workers.
struct TestRun {
  ValidatedEpochs epochs{2};

  template <typename Func>
  kj::Maybe<ValidatedEpoch> take(uint worker, Func&& fill) {
    capnp::MallocMessageBuilder message;
    auto event = message.initRoot<Event>();
    event.setIndex(worker);
    fill(event);
    return epochs.take(event);
  }

  // The coordinator begins with the workers of `ranks`. If that is empty, with all workers of the
  // file.
  void listen(std::initializer_list<uint> ranks = {}) {
    take(0, [&](Event::Builder event) {
      auto workers = event.initListening().initWorkers(ranks.size());
      uint i = 0;
      for (uint rank: ranks) workers.set(i++, rank);
    });
  }
  kj::Maybe<ValidatedEpoch> change(uint worker, bool joined) {
    return take(worker, [&](Event::Builder event) { event.initMembership().setJoined(joined); });
  }
  kj::Maybe<ValidatedEpoch> validate(uint worker, uint epoch, double accuracy = 0.5) {
    return take(worker, [&](Event::Builder event) {
      event.initValidated().setEpoch(epoch);
      event.getValidated().setAccuracy(accuracy);
    });
  }
  // Whether `epoch` is complete once `worker` has validated it.
  bool completes(uint worker, uint epoch) {
    KJ_IF_MAYBE(whole, validate(worker, epoch)) return whole->epoch == epoch;
    return false;
  }
};

TEST_CASE("ValidatedEpochs: an epoch is whole when all workers have validated it") {
  TestRun run;
  run.listen();
  CHECK_FALSE(run.completes(1, 1));
  auto whole = run.validate(0, 1, 0.75);
  CHECK(KJ_ASSERT_NONNULL(whole).accuracy == 0.625);
  CHECK_FALSE(run.completes(0, 2));
  CHECK(run.completes(1, 2));
}

TEST_CASE("ValidatedEpochs: nobody waits for a worker that was lost, or has left") {
  TestRun run;
  run.listen({0, 1});
  CHECK_FALSE(run.completes(0, 1));
  // Lost before it has reported.
  auto whole = run.change(1, false);
  CHECK(KJ_ASSERT_NONNULL(whole).epoch == 1);
  CHECK(run.completes(0, 2));
  run.change(1, true);
  CHECK_FALSE(run.completes(0, 3));
  CHECK(run.completes(1, 3));
}

TEST_CASE("ValidatedEpochs: the report of a worker that is lost counts for no other") {
  TestRun run;
  run.listen({0, 1, 2});
  CHECK_FALSE(run.completes(2, 1));
  CHECK_FALSE(run.completes(1, 1));
  CHECK(run.change(2, false) == nullptr);
  CHECK(run.completes(0, 1));
}

TEST_CASE("ValidatedEpochs: a job that has got more workers waits for all of them") {
  TestRun run;
  run.listen({0, 1});
  run.change(2, true);
  CHECK_FALSE(run.completes(0, 1));
  CHECK_FALSE(run.completes(1, 1));
  CHECK(run.completes(2, 1));
}

TEST_CASE("ValidatedEpochs: a run that continues has the workers that it had when it was saved") {
  TestRun run;
  run.listen({0, 1});
  CHECK_FALSE(run.completes(0, 1));
  run.listen({1});
  run.take(0, [](Event::Builder event) { event.initContinued(); });
  CHECK(run.completes(1, 1));
}

}  // namespace
}  // namespace runner
