// Answers of a bad coordinator to a role: parts of a checkpoint, and changes of the job's members.
#include <capnp/message.h>
#include <kj/async.h>

#include "runner/roles/job_members.h"
#include "runner/roles/part_transfer.h"
#include "runner/roles/stop_point.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

class BadSession final: public runner::Session::Server {
public:
  explicit BadSession(Dice& dice): dice(dice) {}

  kj::Promise<void> savedPart(SavedPartContext context) override {
    auto results = context.getResults();
    uint8_t choice = dice.byte();
    results.setTotal(choice % 4 == 0 ? dice.number(8) : dice.near(200));
    results.setBytes(dice.take(dice.byte()));
    return kj::READY_NOW;
  }

private:
  Dice& dice;
};

void fetch(Dice& dice) {
  kj::EventLoop loop;
  kj::WaitScope scope(loop);
  runner::PartName name{static_cast<runner::Part>(dice.near(3)), uint(dice.near(3))};
  refusalOf([&]() { name.file(); });
  auto fetched = runner::fetchPart(kj::heap<BadSession>(dice), name).eagerlyEvaluate(nullptr);
  scope.poll();
  must(fetched.poll(scope), "a part is fetched, or refused");
  fetched.wait(scope);
}

void divide(Dice& dice) {
  constexpr uint WORKERS = 3, BATCH_SIZE = 10;
  capnp::MallocMessageBuilder message;
  auto list = message.initRoot<runner::Session::StartResults>().initChanges(dice.byte() % 16);
  for (auto change: list) {
    change.setRank(dice.near(WORKERS + 1));
    change.setStep(dice.near(10));
    uint8_t choice = dice.byte();
    change.setJoins(choice & 1);
    change.setCounts(choice & 2);
  }
  runner::StopPoint stops;
  stops.tellChanges(runner::changesOf(list));
  KJ_IF_MAYBE(changes, stops.takeChanges()) {
    io::Division division(1000, BATCH_SIZE, WORKERS, *changes);
    division.stepsUntilEndOf(1 + dice.near(3));
    uint64_t places[BATCH_SIZE];
    for (uint64_t step = 0; step < 8; step++) {
      for (uint rank: division.membersAt(step)) division.places(step, rank, places);
    }
  }
}

}  // namespace

void feed(Bytes input) {
  Dice dice(input);
  if (dice.byte() % 2 == 0) {
    fetch(dice);
  } else {
    divide(dice);
  }
}

}  // namespace fuzz
