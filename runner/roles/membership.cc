#include "runner/roles/membership.h"

#include <kj/async-unix.h>
#include <kj/debug.h>
#include <signal.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "nn/cpu/instruction_set.h"
#include "rpc/wire/running_time.h"
#include "runner/logs/role_names.h"
#include "runner/roles/clock_offset.h"
#include "runner/roles/coordinator_call.h"
#include "runner/roles/job_members.h"
#include "runner/roles/job_secret.h"
#include "runner/system/interrupts.h"
#include "runner/system/machine.h"
#include "runner/system/reason.h"
#include "runner/system/terminal.h"
#include "runner/system/version.h"

namespace runner {

namespace {

// Receives the calls of the coordinator.
class MemberServer final: public Member::Server {
public:
  // `sayEpochs` begins the line that each epoch prints: "<sayEpochs>: epoch 3 is trained". Empty:
  // prints nothing.
  MemberServer(kj::Own<kj::PromiseFulfiller<void>> ended, MemberCalls& calls, kj::String sayEpochs)
      : ended(kj::mv(ended)), calls(calls), sayEpochs(kj::mv(sayEpochs)) {}

  kj::Promise<void> end(EndContext) override {
    ended->fulfill();
    return kj::READY_NOW;
  }

  kj::Promise<void> count(CountContext context) override {
    epochs++;
    if (sayEpochs.size() > 0) tell(kj::str(sayEpochs, ": epoch ", epochs, " is trained"));
    return calls.count(context.getResults().initPushes());
  }

  kj::Promise<void> stopAt(StopAtContext context) override {
    auto answer = calls.stopAt(context.getParams().getStep());
    context.getResults().setAnswer(answer.answer);
    context.getResults().setStep(answer.begun);
    return kj::READY_NOW;
  }

  kj::Promise<void> decide(DecideContext context) override {
    calls.decide(context.getParams().getStep(), context.getParams().getSave());
    return kj::READY_NOW;
  }

  kj::Promise<void> saveShard(SaveShardContext context) override {
    calls.saveShard(context.getParams().getStep());
    return kj::READY_NOW;
  }

  kj::Promise<void> fenceWorker(FenceWorkerContext context) override {
    auto pushed = calls.fenceWorker(context.getParams().getRank());
    // Consecutive slices with the same number of steps share an entry.
    kj::Vector<kj::ArrayPtr<const rpc::Shard::SliceSteps>> runs;
    for (size_t begin = 0; begin < pushed.size();) {
      size_t end = begin + 1;
      while (end < pushed.size() && pushed[end].id == pushed[end - 1].id + 1 &&
             pushed[end].steps == pushed[begin].steps) {
        end++;
      }
      runs.add(pushed.slice(begin, end));
      begin = end;
    }
    auto results = context.getResults().initPushed(runs.size());
    for (auto i: kj::indices(runs)) {
      results[i].setBegin(runs[i].front().id);
      results[i].setEnd(runs[i].back().id + 1);
      results[i].setSteps(runs[i].front().steps);
    }
    return kj::READY_NOW;
  }

  kj::Promise<void> leaveWorker(LeaveWorkerContext context) override {
    calls.leaveWorker(context.getParams().getRank());
    return kj::READY_NOW;
  }

  kj::Promise<void> admitWorker(AdmitWorkerContext context) override {
    calls.admitWorker(context.getParams().getRank(), context.getParams().getStep());
    return kj::READY_NOW;
  }

  kj::Promise<void> setMembers(SetMembersContext context) override {
    calls.setMembers(changesOf(context.getParams().getChanges()));
    return kj::READY_NOW;
  }

private:
  kj::Own<kj::PromiseFulfiller<void>> ended;
  MemberCalls& calls;
  const kj::String sayEpochs;
  uint epochs = 0;
};

// Returns the exception about a lost coordinator. `how` follows the coordinator's address.
kj::Exception lost(kj::StringPtr coordinator, kj::StringPtr how) {
  return kj::Exception(kj::Exception::Type::DISCONNECTED, __FILE__, __LINE__,
      kj::str("the coordinator at ", coordinator, how));
}

constexpr kj::StringPtr DUMB = " does not answer"_kj;

// The pause between two messages about missing roles.
constexpr auto PAUSE = 10 * kj::SECONDS;

kj::Exception gone(kj::StringPtr coordinator) {
  return lost(coordinator, COORDINATOR_GONE);
}

class Seated final: public Membership {
public:
  Seated(kj::AsyncIoContext& io, const LoadedExperiment& loaded, const RoleOptions& options,
      CoordinatorCall call, kj::Maybe<kj::Own<rpc::Listener>> ownListener,
      rpc::MessageLimits limits, kj::Function<void(RoleProgress::Builder)> progress)
      : timer(io.provider->getTimer()),
        running(timer),
        silence(KJ_ASSERT_NONNULL(loaded.experiment).cluster.silence()),
        launched(options.launched),
        mayLeave(options.role == Role::WORKER &&
                 KJ_ASSERT_NONNULL(loaded.experiment).cluster.onLoss->continues),
        signals(options.signals),
        coordinator(kj::mv(call.address)),
        name(roleName(options.role, options.index)),
        secret(call.secret),
        tls(KJ_ASSERT_NONNULL(loaded.experiment).cluster.tls),
        progress(kj::mv(progress)),
        sockets(kj::mv(ownListener)),
        peer(kj::mv(call.stream), limits),
        io(io),
        signal(interruption(io, options.signals)) {
    KJ_IF_MAYBE(shared, options.oneThread) {
      signal = shared->askedToLeave().then([]() { return SIGTERM; });
    }
  }

  kj::Promise<void> join(
      const LoadedExperiment& loaded, const RoleOptions& options, MemberCalls& calls) {
    auto paf = kj::newPromiseAndFulfiller<void>();
    told = kj::mv(paf.promise);
    auto request = peer.bootstrap().castAs<Coordinator>().joinRequest();
    request.setRole(options.role);
    request.setIndex(options.index);
    request.setPid(::getpid());
    KJ_IF_MAYBE(own, sockets) {
      auto told = request.initAddress();
      told.setTcp((*own)->address().tcp);
      told.setLocal((*own)->address().local);
    }
    request.setDigest(loaded.digest);
    request.setSettings(settingsToSend(loaded));
    request.setVersion(VERSION);
    request.setHost(thisHostName());
    if (options.role == Role::WORKER) request.setInstructionSet(nn::offeredInstructionSet());
    request.setMember(kj::heap<MemberServer>(
        kj::mv(paf.fulfiller), calls, launched ? kj::String() : kj::str(name)));
    return request.send().then(
        [this, &calls](capnp::Response<Coordinator::JoinResults>&& response) {
          seat = response.getSession();
          goesOn = response.getContinues();
          isOutside = response.getEnters();
          shardSecret = secret.derive(response.getJob().asBytes());
          auto boot = thisBoot();
          sharesMachine = boot.size() > 0 && response.getBoot() == boot;
          // The coordinator notices a silent role by missing heartbeats. A role notices a silent
          // coordinator by its connection, unless both are on one machine. That connection cannot
          // break, and a coordinator that is stopped together with its job does not answer
          // meanwhile.
          if (!sharesMachine) peer.breakOnSilence(silence);
          lastHeard = running.passed();
          beating = beat().eagerlyEvaluate(nullptr);
          ending = signal.then([this, &calls](int number) { return interrupt(number, calls); })
                       .eagerlyEvaluate(nullptr);
        });
  }

  kj::Duration clockAhead() const override {
    return sharesMachine ? 0 * kj::NANOSECONDS : clockOffset.get();
  }

  Session::Client session() override { return KJ_ASSERT_NONNULL(seat); }
  bool continues() const override { return goesOn; }
  bool enters() const override { return isOutside; }
  rpc::Listener& listener() override { return *KJ_ASSERT_NONNULL(sockets); }
  rpc::Identity identity() const override { return {kj::str(name), shardSecret, tls}; }

  kj::Promise<void> ended() override {
    // evalLast(), because the end of the job may have arrived just before the connection ended.
    auto left = peer.onDisconnect().then([this]() {
      return kj::evalLast([this]() { kj::throwFatalException(gone(coordinator)); });
    });
    // The coordinator may have sent the end of the job before it left. `left` waits until this
    // message is read.
    auto beats = beating.catch_([](kj::Exception&& e) -> kj::Promise<void> {
      bool isGone = e.getType() == kj::Exception::Type::DISCONNECTED && !rpc::isOfOtherEnd(e);
      if (isGone) return kj::NEVER_DONE;
      // The job may continue without this role, which was stopped for a while.
      return kj::evalLast([e = kj::mv(e)]() mutable { kj::throwFatalException(kj::mv(e)); });
    });
    // A coordinator that leaves drops our Member too. `left` explains it better.
    auto heard = told.catch_([](kj::Exception&&) -> kj::Promise<void> { return kj::NEVER_DONE; });
    auto all = heard.exclusiveJoin(kj::mv(left)).exclusiveJoin(kj::mv(beats));
    all = all.exclusiveJoin(kj::mv(failed.promise));
    if (launched) return all;
    return all.exclusiveJoin(watchSilence());
  }

  void fail(kj::Exception&& e) override {
    if (e.getType() != kj::Exception::Type::DISCONNECTED) failed.fulfiller->reject(kj::mv(e));
  }

  kj::Promise<kj::String> tellFailure(const kj::Exception& failure) override {
    auto reason = reasonOf(failure);
    // There is no coordinator to tell.
    if (reason.startsWith(lost(coordinator, "").getDescription())) return kj::mv(reason);
    bool isOfOther = failure.getType() == kj::Exception::Type::DISCONNECTED;
    auto request = session().reportRequest();
    request.initEvent().initFailed().setReason(reason);
    request.setLostPeer(isOfOther);
    // Returns why the coordinator has not accepted the report. Null if it has.
    using Problem = kj::Maybe<kj::String>;
    auto taken = request.send().then([](auto&&) -> Problem { return nullptr; },
        [this](kj::Exception&& e) -> Problem {
          // The job may continue without this role.
          if (rpc::isOfOtherEnd(e)) return reasonOf(e);
          return kj::str("the coordinator at ", coordinator, COORDINATOR_GONE);
        });
    auto late = timer.afterDelay(1 * kj::SECONDS).then([this]() -> Problem {
      return kj::str("the coordinator at ", coordinator, DUMB);
    });
    return taken.exclusiveJoin(kj::mv(late))
        .then([isOfOther, reason = kj::mv(reason)](Problem problem) mutable {
          KJ_IF_MAYBE(why, problem) {
            if (isOfOther) return kj::str(*why, "; noticed here: ", reason);
          }
          return kj::mv(reason);
        });
  }

private:
  // Ends the process, because it got this signal. Never resolves.
  kj::Promise<void> interrupt(int number, MemberCalls& calls) {
    bool leaves = mayLeave && number == SIGTERM;
    if (launched || leaves) {
      if (!launched) {
        tell(kj::str(name, " leaves the job after its step; another signal ends it at once"));
      }
      calls.leaveSoon();
      return interruption(io, signals).then([](int) { endInterrupted(); });
    }
    return tellFailure(kj::Exception(kj::Exception::Type::FAILED, __FILE__, __LINE__,
                           kj::str("interrupted: ", reasonOfInterrupt(number),
                               "; a job needs all its roles, so start them all again")))
        .then([](kj::String) { endInterrupted(); });
  }

  // Sends heartbeats. Rejects when a call fails. Never resolves.
  kj::Promise<void> beat() {
    auto request = KJ_ASSERT_NONNULL(seat).heartbeatRequest();
    progress(request.initProgress());
    auto asked = clock.now();
    return request.send().then([this, asked](capnp::Response<Session::HeartbeatResults>&& answer) {
      auto other = kj::origin<kj::TimePoint>() + answer.getClockNs() * kj::NANOSECONDS;
      clockOffset.hear(asked, clock.now(), other);
      lastHeard = running.passed();
      if (!launched) sayMissing(answer.getMissing());
      return timer.afterDelay(silence / 5).then([this]() { return beat(); });
    });
  }

  // Says which roles this role waits for: after a second, and from time to time if others have
  // joined.
  void sayMissing(kj::StringPtr names) {
    if (beats++ == 0 || names == missing) return;
    auto now = running.passed();
    if (names.size() > 0 && missing.size() > 0 && now - saidMissing < PAUSE) return;
    saidMissing = now;
    tell(names.size() > 0 ? kj::str(name, " waits for ", names)
                          : kj::str(name, ": all roles have joined"));
    missing = kj::str(names);
  }

  // Rejects when the coordinator has not answered a heartbeat for cluster.silence_timeout_s. Never
  // resolves.
  kj::Promise<void> watchSilence() {
    return timer.afterDelay(rpc::RunningTime::LOOK_INTERVAL).then([this]() -> kj::Promise<void> {
      if (running.passed() - lastHeard <= silence) return watchSilence();
      return lost(coordinator,
          kj::str(" has been silent for ", silence / kj::SECONDS,
              " s; was it stopped, or is its machine overloaded? (cluster.silence_timeout_s)"));
    });
  }

  kj::Timer& timer;
  rpc::RunningTime running;
  const kj::MonotonicClock& clock = kj::systemPreciseMonotonicClock();
  const kj::Duration silence;
  const bool launched;
  const bool mayLeave;                             // the job may continue without this role
  const kj::ArrayPtr<const int> signals;           // see RoleOptions
  kj::Duration lastHeard = 0 * kj::NANOSECONDS;    // of the coordinator, by `running`
  uint64_t beats = 0;                              // answered heartbeats
  kj::String missing;                              // the roles that have not joined, as last said
  kj::Duration saidMissing = 0 * kj::NANOSECONDS;  // when that was, by `running`
  const kj::String coordinator;
  const kj::String name;
  const rpc::Secret secret;
  const bool tls;
  rpc::Secret shardSecret;  // once seated
  kj::Function<void(RoleProgress::Builder)> progress;
  kj::Maybe<kj::Own<rpc::Listener>> sockets;  // if the role holds a shard
  rpc::Peer peer;
  kj::Maybe<Session::Client> seat;
  bool goesOn = false;
  bool isOutside = false;
  bool sharesMachine = false;
  ClockOffset clockOffset;
  kj::Promise<void> told = nullptr;
  kj::PromiseFulfillerPair<void> failed = kj::newPromiseAndFulfiller<void>();
  kj::Promise<void> beating = nullptr;
  kj::AsyncIoContext& io;
  kj::Promise<int> signal;
  kj::Promise<void> ending = nullptr;
};

// A coordinator that was reached, and the sockets of a role that holds a shard.
struct Reached {
  CoordinatorCall call;
  kj::Maybe<kj::Own<rpc::Listener>> listener;
};

// Makes those sockets, at options.listen or at the address of this machine that `call` uses.
kj::Promise<kj::Maybe<kj::Own<rpc::Listener>>> listenFor(kj::AsyncIoContext& io,
    const LoadedExperiment& loaded, const RoleOptions& options,
    kj::Maybe<const rpc::Transport&> transport, CoordinatorCall& call) {
  using Listening = kj::Maybe<kj::Own<rpc::Listener>>;
  KJ_IF_MAYBE(own, transport) {
    auto& cluster = KJ_ASSERT_NONNULL(loaded.experiment).cluster;
    auto ports = cluster.ports;
    auto host = rpc::localHostOf(*call.stream);
    KJ_IF_MAYBE(place, options.listen) {
      host = kj::str(place->host);
      ports = place->ports.orDefault(ports);
    }
    KJ_IF_MAYBE(why, whyNoSecret(host, cluster.tls, call.secret)) configs::fail(*why);
    return rpc::Listener::listen(io.provider->getNetwork(), *own, host, ports)
        .then([](kj::Own<rpc::Listener> listener) -> Listening { return kj::mv(listener); });
  }
  return Listening();
}

}  // namespace

kj::Promise<int> interruption(kj::AsyncIoContext& io, kj::ArrayPtr<const int> signals) {
  kj::Promise<int> first = kj::NEVER_DONE;
  for (int signal: signals) {
    auto received = io.unixEventPort.onSignal(signal);
    first = first.exclusiveJoin(received.then([](siginfo_t&& info) { return info.si_signo; }));
  }
  return first;
}

kj::Promise<kj::Own<Membership>> Membership::join(kj::AsyncIoContext& io,
    const LoadedExperiment& loaded, const RoleOptions& options,
    kj::Maybe<const rpc::Transport&> transport, rpc::MessageLimits limits,
    kj::Function<void(RoleProgress::Builder)> progress, MemberCalls& calls) {
  auto running = kj::heap<rpc::RunningTime>(io.provider->getTimer());
  auto limit = KJ_ASSERT_NONNULL(loaded.experiment).cluster.startTimeout_s * kj::SECONDS;
  auto late = running->until(limit).then([&options, limit]() -> kj::Promise<kj::Own<Membership>> {
    return notAnswered(options, limit);
  });
  rpc::Identity own{roleName(options.role, options.index), options.secret,
      KJ_ASSERT_NONNULL(loaded.experiment).cluster.tls};
  return callCoordinator(io, options, kj::mv(own), *running, limit)
      .then([&io, &loaded, &options, transport](CoordinatorCall call) {
        auto listening = listenFor(io, loaded, options, transport, call);
        return listening.then([call = kj::mv(call)](auto listener) mutable {
          return Reached{kj::mv(call), kj::mv(listener)};
        });
      })
      .then([&loaded, &io, &options, limits, progress = kj::mv(progress), &calls](
                Reached reached) mutable {
        auto address = kj::str(reached.call.address);
        auto seated = kj::heap<Seated>(io, loaded, options, kj::mv(reached.call),
            kj::mv(reached.listener), limits, kj::mv(progress));
        auto joined = seated->join(loaded, options, calls);
        return joined
            .catch_([address = kj::str(address)](kj::Exception&& e) {
              kj::throwFatalException(whyNotJoined(kj::mv(e), address));
            })
            .then([&options, address = kj::mv(address),
                      seated = kj::mv(seated)]() mutable -> kj::Own<Membership> {
              if (!options.launched) {
                tell(
                    kj::str(roleName(options.role, options.index), " joined the job at ", address));
              }
              return kj::mv(seated);
            });
      })
      .exclusiveJoin(kj::mv(late))
      .exclusiveJoin(interruption(io, options.signals).then([](int) -> kj::Own<Membership> {
        endInterrupted();
      }))
      .attach(kj::mv(running));
}

}  // namespace runner
