#include "runner/launch/run_view.h"

#include <capnp/message.h>
#include <doctest/doctest.h>
#include <kj/debug.h>

#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

// A view of a run of 2 epochs and 100 steps. Only its texts are tested.
class TestView final: public RunView {
public:
  TestView(): RunView(2, 100) {}
  using RunView::note;
  using RunView::noticeOf;

  void show(Event::Reader) override {}
  void say(kj::StringPtr) override {}
  void showWait(kj::StringPtr) override {}
  void end() override {}

  kj::String textAt(double time_s, uint step, bool validating) {
    capnp::MallocMessageBuilder message;
    auto event = message.initRoot<Event>();
    event.setTimeS(time_s);
    auto progress = event.initProgress();
    progress.setEpoch(2);
    progress.setStep(step);
    progress.setImagesPerS(64);
    progress.setValidating(validating);
    return KJ_ASSERT_NONNULL(note(event));
  }
};

TEST_CASE("RunView: shows the remaining time while workers train, not while they validate") {
  TestView view;
  CHECK_FALSE(contains(view.textAt(10, 50, false), "ETA"));
  CHECK(view.textAt(20, 75, false).endsWith("  ETA 0:10"));
  auto validating = view.textAt(30, 99, true);
  CHECK(contains(validating, "epoch 2/2  validating"));
  CHECK_FALSE(contains(validating, "ETA"));
}

TEST_CASE("RunView: shows the share of time that workers wait for records, if it is large") {
  TestView view;
  auto textWith = [&](double share) {
    capnp::MallocMessageBuilder message;
    auto progress = message.initRoot<Event>().initProgress();
    progress.setEpoch(1);
    progress.setStep(50);
    progress.setImagesPerS(64);
    progress.setReadShare(share);
    progress.setLoss(kj::nan());
    progress.setAccuracy(kj::nan());
    return KJ_ASSERT_NONNULL(view.note(message.getRoot<Event>()));
  };
  CHECK(textWith(0.09) == "epoch 1/2  step 50/100  64 images/s");
  CHECK(textWith(0.314) == "epoch 1/2  step 50/100  64 images/s (reader-bound: 31 %)");
}

TEST_CASE("RunView: leaves out figures that have not been measured") {
  TestView view;
  capnp::MallocMessageBuilder message;
  auto event = message.initRoot<Event>();
  auto progress = event.initProgress();
  progress.setEpoch(1);
  progress.setStep(50);
  progress.setLoss(kj::nan());
  progress.setAccuracy(kj::nan());
  CHECK(KJ_ASSERT_NONNULL(view.note(event)) == "epoch 1/2  step 50/100");
}

TEST_CASE("RunView: shows nothing while the run starts, unless a worker is stuck") {
  TestView view;
  capnp::MallocMessageBuilder message;
  auto event = message.initRoot<Event>();
  auto progress = event.initProgress();
  progress.setLoss(kj::nan());
  progress.setAccuracy(kj::nan());
  CHECK(view.note(event) == nullptr);
  progress.setStuckWorker(1);
  progress.setStuckS(20);
  CHECK(KJ_ASSERT_NONNULL(view.note(event)) == "starting  worker 1: no progress for 20 s");
}

TEST_CASE("RunView: says to a tenth of a second how long the job has waited for a role") {
  TestView view;
  capnp::MallocMessageBuilder message;
  auto waiting = message.initRoot<Event>().initWaiting();
  waiting.setRoles("worker 1");
  waiting.setLimitS(60);
  auto said = [&](double waited_s) {
    waiting.setWaitedS(waited_s);
    return KJ_ASSERT_NONNULL(view.noticeOf(message.getRoot<Event>()));
  };
  CHECK(said(5.002).startsWith("waiting for worker 1: not joined after 5 s; "));
  CHECK(said(1.503).startsWith("waiting for worker 1: not joined after 1.5 s; "));
  waiting.setRefused("somebody was refused");
  CHECK(said(5).startsWith("waiting for worker 1: not joined after 5 s (somebody was refused); "));
}

TEST_CASE("RunView: names the first of many bad records, and counts the others") {
  TestView view;
  capnp::MallocMessageBuilder message;
  auto event = message.initRoot<Event>();
  event.setRole(Role::WORKER);
  uint named = 0;
  auto meet = [&](uint count) {
    for (uint i = 0; i < count; i++) {
      event.initBadRecord().setReason(kj::str("record ", i, " is bad"));
      if (view.noticeOf(event) != nullptr) named++;
    }
    event.initTrained();
    return view.noticeOf(event);
  };
  CHECK(KJ_ASSERT_NONNULL(meet(25)) ==
        "warning: 5 more bad records; events.jsonl and the logs of the roles name them all");
  CHECK(named == 20);
  CHECK(meet(20) == nullptr);
  CHECK(named == 40);
}

TEST_CASE("RunView: shows no remaining time after the last step") {
  TestView view;
  view.textAt(10, 50, false);
  CHECK_FALSE(contains(view.textAt(30, 100, false), "ETA"));
}

}  // namespace
}  // namespace runner
