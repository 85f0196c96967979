// runner/roles/coordinator_joining.cc: roles join a Job until it can start.
#include <capnp/message.h>
#include <kj/debug.h>

#include "configs/language/failure.h"
#include "runner/logs/role_names.h"
#include "runner/logs/run_lock.h"
#include "runner/roles/coordinator.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

// A role that has received its index joins much sooner. If it has not joined by then, it counts as
// killed, and another role may get the index.
constexpr auto JOINS_WITHIN = 10 * kj::SECONDS;
// How many of the refused connections messages name.
constexpr size_t REFUSALS_TOLD = 3;

// Whether a launcher has started the coordinator, and starts other workers in the places of lost
// ones.
bool isLaunched(const RunFolder& folder) {
  KJ_IF_MAYBE(holder, lastHolderOf(folder)) return !holder->startsNoRoles;
  return true;
}

}  // namespace

kj::Promise<void> Job::whenStarted(Seat& seat) {
  auto& kvstore = experiment.kvstore;
  if (!kvstore.exchanges()) return whenAllJoined.addBranch();
  if (seat.role == shardHolder() && ++serving == experiment.shards()) allServe.fulfiller->fulfill();
  return whenAllJoined.addBranch().then([this]() { return whenAllServe.addBranch(); });
}

uint Job::takeIndex(Role role) {
  uint count = 0;
  for (auto& seat: seats) {
    if (seat.role != role) continue;
    count++;
    bool isFirst = role != Role::SERVER || experiment.cluster.serversOfProcess(seat.index) > 0;
    if (!isFirst || seat.joined) continue;
    KJ_IF_MAYBE(since, seat.taken) {
      if (running.passed() - *since < JOINS_WITHIN) continue;
    }
    seat.taken = running.passed();
    return seat.index;
  }
  configs::fail("this job has ", runner::counted(count, roleWord(role)),
      ", and all places are taken: start one ", roleWord(role), " fewer");
}

void Job::join(Seat& seat, Coordinator::JoinParams::Reader params, kj::String host) {
  bool wasTaken = seat.joined;
  if (wasTaken) {
    bool isReplaced = seat.role == Role::WORKER && experiment.cluster.onLoss->continues &&
                      joined >= expected && isLaunched(folder);
    if (!isReplaced) {
      configs::fail(nameOf(seat), " has joined already: give every process its own --index");
    }
    // The launcher could not reach the other process, and has started this one.
    lose(seat, kj::str(nameOf(seat), " was replaced by another process"),
        kj::Exception::Type::DISCONNECTED);
  }
  // From here on, messages name the machine of the new process.
  seat.host = kj::mv(host);
  bool wasAgreed = instructions.level() != nullptr;
  if (seat.role == Role::WORKER) {
    instructions.offer(nameOf(seat), params.getInstructionSet());
  }
  seat.joined = true;
  setMember(seat, params.getMember());
  seat.lastHeard = running.passed();
  seat.work = 0;
  seat.workFor = 0 * kj::NANOSECONDS;

  auto address = params.getAddress();
  seat.address = {kj::str(address.getTcp()), kj::str(address.getLocal())};
  auto hasJoined = [&seat, pid = params.getPid()](Event::Builder event) {
    event.setRole(seat.role);
    event.setIndex(seat.index);
    event.initJoined().setAddress(seat.address.tcp);
    event.getJoined().setPid(pid);
  };
  // The events of a run name each role once.
  if (from == nullptr && seat.isMember) {
    record(hasJoined);
  } else if (wasTaken) {
    // The loss of the other process is reported only when the servers have fenced it. The launcher
    // must not mistake that for the loss of this process.
    change([this, &seat, hasJoined]() mutable -> kj::Promise<void> {
      if (seat.joined) tellLauncher(hasJoined);
      return kj::READY_NOW;
    });
  } else {
    tellLauncher(hasJoined);
  }

  if (seat.isMember && ++joined == expected) {
    // All roles have joined. Only a job that continues from a checkpoint may lack some of its
    // workers.
    tasks->add(leaveOutsiders().then([this]() { allJoined.fulfiller->fulfill(); }));
  }
  if (!wasAgreed) reportAgreed();
}

void Job::reportAgreed() {
  KJ_IF_MAYBE(level, instructions.level()) {
    record([&](Event::Builder event) { event.initAgreed().setInstructionSet(*level); });
  }
}

kj::Promise<kj::StringPtr> Job::instructionSet() {
  return instructions.whenKnown().then(
      [this]() -> kj::StringPtr { return KJ_ASSERT_NONNULL(instructions.level()); });
}

void Job::requireOpen() const {
  if (tasks.get() != nullptr) return;
  kj::throwFatalException(KJ_EXCEPTION(DISCONNECTED, "the coordinator has ended"));
}

void Job::requireStarted(const Seat& seat) const {
  KJ_REQUIRE(joined >= expected, "a worker trains before all roles have joined", seat.index, joined,
      expected);
}

kj::StringPtr Job::missing() {
  // The result is cached, because every heartbeat asks for it, and there may be thousands of roles.
  if (missingAt == kj::Maybe<uint>(joined)) return missingNames;
  kj::Vector<kj::String> names;
  for (auto& seat: seats) {
    if (!seat.joined && seat.isMember) names.add(roleName(seat.role, seat.index));
  }
  missingAt = joined;
  missingNames = names.empty() ? kj::String() : roleList(names);
  return missingNames;
}

void Job::noteRefused(kj::StringPtr sentence) {
  if (strangers.size() == REFUSALS_TOLD) return;
  for (auto& known: strangers) {
    if (known == sentence) return;
  }
  strangers.add(kj::str(sentence));
}

kj::String Job::refused() const {
  kj::Vector<kj::StringPtr> all;
  for (auto& seat: seats) {
    bool isTold =
        !seat.joined && seat.isMember && seat.refusal.size() > 0 && all.size() < REFUSALS_TOLD;
    if (isTold) all.add(seat.refusal);
  }
  all.addAll(strangers);
  return kj::strArray(all, "; ");
}

kj::Promise<void> Job::tellMissing(kj::Duration pause) {
  return timer.afterDelay(pause).then([this, pause]() -> kj::Promise<void> {
    if (joined == expected) return kj::NEVER_DONE;
    tellLauncher([&](Event::Builder event) {
      auto waiting = event.initWaiting();
      waiting.setRoles(missing());
      waiting.setWaitedS((timer.now() - begin) / kj::MILLISECONDS / 1000.0);
      waiting.setLimitS(experiment.cluster.startTimeout_s);
      waiting.setRefused(refused());
    });
    return tellMissing(2 * pause);
  });
}

kj::Promise<void> Job::watchStart() {
  auto limit = experiment.cluster.startTimeout_s;
  return running.until(limit * kj::SECONDS).then([this, limit]() -> kj::Promise<void> {
    if (joined < expected) {
      fail(kj::str("not joined within ", limit, " s: ", missing(), inParentheses(refused()),
          "; see why they did not start, or raise cluster.start_timeout_s"));
    }
    return kj::NEVER_DONE;
  });
}

}  // namespace runner
