#include "runner/launch/inline_launcher.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <kj/thread.h>
#include <unistd.h>

#include "runner/logs/role_names.h"
#include "runner/roles/roles.h"
#include "runner/system/reason.h"

namespace runner {

namespace {

class RoleThread final: public StartedGroup {
public:
  RoleThread(const LoadedExperiment& loaded, RoleOptions options, kj::AsyncIoContext& io)
      : name(roleName(options.role, options.index)),
        access(kj::atomicRefcounted<LogAccess>()),
        endedPromise(nullptr) {
    int fds[2];
    KJ_SYSCALL(::pipe2(fds, O_CLOEXEC));
    kj::AutoCloseFd toRead(fds[0]), toWrite(fds[1]);
    eventStream = io.lowLevelProvider->wrapInputFd(
        kj::mv(toRead), kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC);
    auto paf = kj::newPromiseAndCrossThreadFulfiller<void>();
    endedPromise = kj::mv(paf.promise);

    thread = kj::heap<kj::Thread>(
        [&loaded, options = kj::mv(options), toWrite = kj::mv(toWrite),
            access = kj::atomicAddRef(*access), fulfiller = kj::mv(paf.fulfiller)]() mutable {
          KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() {
                        auto tell = RunLog::toLauncher(kj::mv(toWrite));
                        runRole(loaded, options, kj::mv(tell), kj::mv(access));
                      })) {
            fulfiller->reject(kj::mv(*e));
          } else {
            fulfiller->fulfill();
          }
        });
  }

  ~RoleThread() noexcept(false) {
    access->close();
    if (!hasEnded) thread->detach();  // A thread cannot be killed: see LauncherKind.
  }

  kj::Own<kj::AsyncInputStream> events() { return kj::mv(eventStream); }

  kj::Promise<kj::Maybe<Failure>> ended() override {
    return endedPromise.then(
        [this]() -> kj::Maybe<Failure> {
          hasEnded = true;
          return nullptr;
        },
        [this](kj::Exception&& e) -> kj::Maybe<Failure> {
          hasEnded = true;
          bool lost = e.getType() == kj::Exception::Type::DISCONNECTED;
          return Failure{
              lost ? Failure::LOST_A_PEER : Failure::FAILED, kj::str(name, ": ", reasonOf(e))};
        });
  }

private:
  const kj::String name;
  const kj::Own<const LogAccess> access;  // the coordinator's access to the files of the run
  kj::Own<kj::AsyncInputStream> eventStream;
  kj::Promise<void> endedPromise;
  bool hasEnded = false;
  kj::Own<kj::Thread> thread;
};

class InlineLauncher final: public Launcher {
public:
  explicit InlineLauncher(const LaunchedRun& run): run(run) {}

  StartedCoordinator startCoordinator(ListenPlace) override {
    auto thread = start(Role::COORDINATOR, 0, "");
    auto events = thread->events();
    return {kj::mv(events), kj::mv(thread)};
  }
  kj::Array<RoleGroup> groups() const override { return groupsHere(run.experiment().cluster); }
  kj::Own<StartedGroup> start(const RoleGroup& group, kj::StringPtr coordinator) override {
    return start(group.roles[0].role, group.roles[0].index, coordinator);
  }

private:
  kj::Own<RoleThread> start(Role role, uint index, kj::StringPtr coordinator) {
    return kj::heap<RoleThread>(run.loaded, run.optionsOf(role, index, coordinator), run.io);
  }

  const LaunchedRun& run;
};

}  // namespace

kj::Own<Launcher> newInlineLauncher(const LaunchedRun& run) {
  return kj::heap<InlineLauncher>(run);
}

}  // namespace runner
