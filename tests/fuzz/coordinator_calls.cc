// Calls of roles to the coordinator, in any order and with any values, and wrong answers from
// roles.
#include <kj/async-io.h>
#include <kj/debug.h>
#include <kj/function.h>
#include <kj/time.h>
#include <kj/timer.h>
#include <kj/vector.h>
#include <sys/stat.h>

#include "runner/experiment/model_facts.h"
#include "runner/logs/events.h"
#include "runner/logs/run_log.h"
#include "runner/roles/coordinator.h"
#include "runner/roles/one_thread.h"
#include "runner/system/version.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

// An epoch of two workers has ten steps. The network is small, so that all of its values fit into
// an input.
constexpr kj::StringPtr EXPERIMENT = R"(
name = "x"
[data]
dataset = "mnist"
batch_size = 3000
[model]
layers = [
  { kind = "pool", function = "average", global = true },
  { kind = "batch_norm" },
  { kind = "dense", units = 10 },
]
[train]
epochs = 2
optimizer = { kind = "sgd", learning_rate = 0.1 }
[cluster]
servers = 1
workers = 2
)"_kj;
// More lines of the experiment: a job that fails without a lost worker, one that continues, one
// that keeps its best weights, and one whose members change at the ends of epochs only.
constexpr kj::StringPtr MORE[] = {R"(
[kvstore]
mode = "dist_sync"
)"_kj,
    R"(
on_loss = "continue"
elastic = { min = 1, max = 3 }
[kvstore]
mode = "dist_sync"
[checkpoint]
every_steps = 2
)"_kj,
    R"(
[kvstore]
mode = "dist_sync"
[checkpoint]
every_steps = 2
keep_best = true
)"_kj,
    R"(
on_loss = "continue"
elastic = { min = 1, max = 3 }
[kvstore]
mode = "dist_async"
[checkpoint]
every_steps = 2
)"_kj};

// A number as a bad role may send it.
double anyNumber(Dice& dice) {
  constexpr double SPECIAL[] = {kj::nan(), kj::inf(), -kj::inf(), -1, 1e300, 0.5};
  constexpr uint8_t FIRST = 256 - kj::size(SPECIAL);
  uint8_t choice = dice.byte();
  return choice < FIRST ? choice : SPECIAL[choice - FIRST];
}

// Runs the work of the job's second threads after each call, unless the input says that the disk is
// slow. Real threads would end a little earlier or later each time, and the same input would take
// other paths.
class Disk final: public runner::OneThread {
public:
  bool isSlow = false;

  void runLater(kj::Function<void()> work) const override { waiting.add(kj::mv(work)); }
  void work() {
    if (isSlow) return;
    // The work may lead to more.
    auto all = kj::mv(waiting);
    for (auto& each: all) each();
  }

  kj::AsyncIoContext newIo() const override { KJ_UNREACHABLE; }
  void yield() const override { KJ_UNREACHABLE; }
  kj::Promise<void> askedToLeave() const override { return kj::NEVER_DONE; }
  [[noreturn]] void die() const override { KJ_UNREACHABLE; }
  void note(uint64_t, kj::ArrayPtr<const uint64_t>) const override {}

private:
  mutable kj::Vector<kj::Function<void()>> waiting;
};

class FixedClock final: public kj::Clock {
public:
  kj::Date now() const override { return kj::UNIX_EPOCH + 1'800'000'000 * kj::SECONDS; }
};

// The parts that all inputs of one experiment share.
struct Known {
  runner::LoadedExperiment loaded;
  kj::Own<runner::ModelFacts> facts;

  explicit Known(kj::StringPtr more) {
    configs::Diagnostics diagnostics;
    auto document = configs::parse("x.toml", kj::str(EXPERIMENT, more), diagnostics);
    loaded = runner::readExperiment(kj::mv(document), diagnostics);
    must(diagnostics.count() == 0, diagnostics.format("x.toml"));
    facts = kj::heap<runner::ModelFacts>(KJ_ASSERT_NONNULL(loaded.experiment));
  }
};
const Known& knownOf(uint8_t choice) {
  static const auto ALL = KJ_MAP(more, MORE) {
    return kj::heap<Known>(more);
  };
  return *ALL[choice % ALL.size()];
}

// A role whose answers come from the input.
class Answers final: public runner::Member::Server {
public:
  explicit Answers(Bytes rest): dice(rest) {}

  kj::Promise<void> end(EndContext) override { return kj::READY_NOW; }
  kj::Promise<void> count(CountContext context) override {
    auto pushes = context.getResults().initPushes();
    pushes.setPushed(anyNumber(dice));
    pushes.setDropped(anyNumber(dice));
    auto staleness = pushes.initStaleness(dice.byte());
    for (auto i: kj::indices(staleness)) staleness.set(i, anyNumber(dice));
    return kj::READY_NOW;
  }
  kj::Promise<void> stopAt(StopAtContext context) override {
    context.getResults().setAnswer(static_cast<runner::StopAnswer>(dice.near(3)));
    context.getResults().setStep(dice.near(100));
    return kj::READY_NOW;
  }
  kj::Promise<void> decide(DecideContext) override { return kj::READY_NOW; }
  kj::Promise<void> saveShard(SaveShardContext) override { return kj::READY_NOW; }
  kj::Promise<void> fenceWorker(FenceWorkerContext context) override {
    auto pushed = context.getResults().initPushed(dice.byte() % 8);
    for (auto run: pushed) {
      run.setBegin(dice.near(8));
      run.setEnd(dice.near(8));
      run.setSteps(dice.near(4));
    }
    return kj::READY_NOW;
  }
  kj::Promise<void> leaveWorker(LeaveWorkerContext) override { return kj::READY_NOW; }
  kj::Promise<void> admitWorker(AdmitWorkerContext) override { return kj::READY_NOW; }
  kj::Promise<void> setMembers(SetMembersContext) override { return kj::READY_NOW; }

private:
  Dice dice;
};

struct Coordinator {
  const Known& known;
  kj::EventLoop loop;
  kj::WaitScope scope{loop};
  kj::TimerImpl timer{kj::origin<kj::TimePoint>()};
  FixedClock clock;
  Disk disk;
  runner::RunFolder folder{kj::str(fuzz::folder(), "/run")};
  kj::Own<runner::RunLog> log;
  kj::Own<runner::Job> job;
  kj::Promise<void> over = nullptr;
  kj::Vector<runner::Session::Client> sessions;
  kj::Vector<kj::Promise<void>> calls;

  explicit Coordinator(uint8_t choice): known(knownOf(choice)) {
    auto& experiment = KJ_ASSERT_NONNULL(known.loaded.experiment);
    removeFolder("run");
    ::mkdir(folder.path.cStr(), 0700);
    log = kj::heap<runner::RunLog>(folder, *experiment.log.style, runner::RunLog::toNobody());
    job = kj::refcounted<runner::Job>(
        known.loaded, *known.facts, folder, *log, timer, clock, nullptr, false, disk);
    over = job->run(false).eagerlyEvaluate([](kj::Exception&& e) { judge(e); });
  }
  ~Coordinator() noexcept(false) { calls.clear(); }

  template <typename Promise>
  void add(Promise&& call) {
    calls.add(
        call.then([](auto&&) {}, [](kj::Exception&& e) { judge(e); }).eagerlyEvaluate(nullptr));
  }

  runner::Role role(Dice& dice) { return static_cast<runner::Role>(dice.near(3)); }

  void join(Dice& dice) {
    auto request = job->bootstrap().joinRequest();
    request.setRole(role(dice));
    request.setIndex(dice.near(3));
    uint8_t wrong = dice.byte();
    request.setPid(wrong);
    request.setDigest(wrong == 1 ? "another"_kj : known.loaded.digest.asPtr());
    request.setVersion(wrong == 2 ? "another"_kj : kj::StringPtr(runner::VERSION));
    if (wrong == 1) request.setSettings(kj::str(dice.take(dice.byte()).asChars()));
    if (wrong == 3) request.setInstructionSet(kj::str(dice.take(5).asChars()));
    if (wrong == 4) request.setHost(kj::str(dice.take(5).asChars()));
    if (wrong != 5) request.setMember(kj::heap<Answers>(dice.take(wrong % 32)));
    auto address = request.initAddress();
    address.setTcp("127.0.0.1:1");
    auto response = request.send();
    sessions.add(response.getSession());
    add(kj::mv(response));
  }

  void fillResult(runner::Result::Builder result, Dice& dice) {
    result.setImages(dice.near(200));
    result.setCorrect(dice.near(200));
    result.setInTopK(dice.near(200));
    result.setLossSum(anyNumber(dice));
  }

  void fillFloats(capnp::Data::Builder data, uint8_t value) {
    memset(data.begin(), value, data.size());
  }

  void call(Dice& dice) {
    uint8_t method = dice.byte() % 16;
    if (method == 0 || sessions.empty()) return join(dice);
    size_t chosen = dice.near(sessions.size()) % sessions.size();
    auto& session = sessions[chosen];
    auto& graph = known.facts->graph;
    switch (method) {
      case 1: {
        auto request = job->bootstrap().takeIndexRequest();
        request.setRole(role(dice));
        request.setDigest(known.loaded.digest);
        request.setVersion(runner::VERSION);
        return add(request.send());
      }
      case 2:
        return add(session.startRequest().send());
      case 3: {
        auto request = session.heartbeatRequest();
        auto progress = request.initProgress();
        progress.setEpoch(dice.near(3));
        progress.setStep(dice.near(200));
        fillResult(progress.initResult(), dice);
        progress.setReadS(anyNumber(dice));
        progress.setStepsS(anyNumber(dice));
        progress.setWork(dice.near(4));
        return add(request.send());
      }
      case 4: {
        auto request = session.reportRequest();
        request.setLostPeer(dice.byte() & 1);
        auto line = kj::str(dice.take(dice.byte()).asChars());
        auto parse = [&]() { runner::parseEvent(line, request.initEvent()); };
        if (kj::runCatchingExceptions(parse) != nullptr) return;
        return add(request.send());
      }
      case 5: {
        auto request = session.meetRequest();
        request.setEpoch(dice.near(3));
        request.setPoint(static_cast<runner::MeetingPoint>(dice.near(4)));
        request.setStep(dice.near(200));
        fillResult(request.initResult(), dice);
        uint8_t wrong = dice.byte();
        uint64_t size = wrong == 1 ? dice.byte() : graph.statisticsSize * sizeof(float);
        fillFloats(request.initStatistics(size), wrong);
        if (wrong == 2) {
          for (auto cell: request.initConfusion(dice.byte() % 16)) {
            cell.setLabel(dice.near(10));
            cell.setPredicted(dice.near(10));
            cell.setImages(dice.near(20));
          }
        }
        return add(request.send());
      }
      case 6: {
        auto request = session.finishRequest();
        uint8_t wrong = dice.byte();
        uint64_t size = wrong % 4 == 0   ? wrong
                        : wrong % 4 == 1 ? graph.parameters * sizeof(float)
                                         : 0;
        auto pieces = request.initParameters(wrong / 64);
        uint64_t left = size;
        for (uint32_t i = 0; i < pieces.size(); ++i) {
          uint64_t piece = i + 1 == pieces.size() ? left : kj::min(left, dice.near(400));
          fillFloats(pieces.init(i, piece), wrong);
          left -= piece;
        }
        uint64_t statistics = wrong % 8 < 4 ? graph.statisticsSize * sizeof(float) : wrong % 8;
        fillFloats(request.initStatistics(statistics), wrong);
        return add(request.send());
      }
      case 7:
        return add(session.instructionSetRequest().send());
      case 8: {
        auto request = session.savePartRequest();
        request.setStep(dice.near(200));
        request.setPart(static_cast<runner::Part>(dice.near(4)));
        request.setIndex(dice.near(3));
        request.setTotal(dice.near(100));
        request.setOffset(dice.near(100));
        request.setBytes(dice.take(dice.byte()));
        return add(request.send());
      }
      case 9: {
        auto request = session.savedPartRequest();
        request.setPart(static_cast<runner::Part>(dice.near(4)));
        request.setIndex(dice.near(3));
        request.setOffset(dice.near(100));
        return add(request.send());
      }
      case 10:
        job->saveNow();
        return;
      case 11:
        timer.advanceTo(timer.now() + dice.byte() * (100 * kj::MILLISECONDS));
        return;
      case 12:
        return add(session.enterRequest().send());
      case 13:
        // The role has ended.
        session = sessions.back();
        sessions.removeLast();
        return;
      case 14:
        return add(session.leaveRequest().send());
      case 15:
        disk.isSlow = !disk.isSlow;
        return;
    }
  }
};

}  // namespace

void feed(Bytes input) {
  Dice dice(input);
  Coordinator coordinator(dice.byte());
  while (!dice.isEmpty()) {
    coordinator.call(dice);
    coordinator.scope.poll();
    coordinator.disk.work();
    coordinator.scope.poll();
  }
}

}  // namespace fuzz
