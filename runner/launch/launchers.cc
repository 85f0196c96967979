#include "runner/launch/launchers.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <kj/thread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/logs/role_names.h"
#include "runner/roles/roles.h"
#include "runner/roles/trace_file.h"
#include "runner/system/child_process.h"
#include "runner/system/line_stream.h"
#include "runner/system/reason.h"

namespace runner {

namespace {

// ---- Launcher local: processes on this machine, connected over the loopback.

kj::StringPtr adviceOn(int signal) {
  switch (signal) {
    case SIGKILL:
      return "see in `dmesg` whether memory ran out"_kj;
    case SIGBUS:
      return "see in `dmesg` whether memory ran out or a disk failed"_kj;
    case SIGXCPU:
      return "raise the limit on its CPU time (`ulimit -t`)"_kj;
    default:
      return "please report it"_kj;
  }
}

class RoleProcess final: public StartedRole {
public:
  RoleProcess(const RoleOptions& options, const ClusterConfig& cluster, RunView& view,
      kj::AsyncIoContext& io)
      : view(view),
        process(processName(options.role, options.index, rolesOf(options, cluster)),
            arguments(options), kj::str(options.secret.digits(), "\n"), *io.lowLevelProvider,
            io.unixEventPort) {}

  kj::Own<kj::AsyncInputStream> events() override { return kj::mv(process.output); }

  kj::Promise<kj::Maybe<Failure>> ended() override {
    auto said = readLines(*process.errors, [this](kj::StringPtr line) { take(line); });
    return process.ended().then([this, said = kj::mv(said)](int status) mutable {
      return said.then([this, status]() { return judge(status); });
    });
  }

  bool isStopped() override { return process.isStopped(); }

private:
  static uint rolesOf(const RoleOptions& options, const ClusterConfig& cluster) {
    return options.role == Role::SERVER ? cluster.serversOfProcess(options.index) : 1;
  }

  static kj::Array<kj::String> arguments(const RoleOptions& options) {
    kj::Vector<kj::String> words;
    words.add(kj::str("runner"));
    words.add(kj::str("role"));
    words.add(kj::str("--role=", roleWord(options.role)));
    words.add(kj::str("--index=", options.index));
    words.add(kj::str("--folder=", options.folder.path));
    if (options.coordinator.size() > 0) {
      words.add(kj::str("--coordinator=", options.coordinator));
    }
    KJ_IF_MAYBE(steps, options.trace) {
      words.add(kj::str("--trace-steps=", traceStepsText(*steps)));
    }
    words.add(kj::str("--until-stdin-closes"));
    words.add(kj::str("--launched"));
    words.add(options.folder.experiment());
    return words.releaseAsArray();
  }

  // A role that fails gives the reason in a line that begins with "error: ". All other lines go to
  // the view.
  void take(kj::StringPtr line) {
    if (line.startsWith("error: ")) {
      cause = kj::str(line.slice(7));
    } else if (line.size() > 0) {
      view.say(kj::str(process.name, ": ", line));
    }
  }

  kj::Maybe<Failure> judge(int status) {
    if (WIFSIGNALED(status)) {
      int signal = WTERMSIG(status);
      return Failure{
          Failure::KILLED, kj::str(process.name, " was killed by signal ", signal, " (",
                               strsignal(signal), "); ", lastReportedStep(view.reportedStep()),
                               "; if nobody did that by hand, ", adviceOn(signal))};
    }
    int code = WEXITSTATUS(status);
    if (code == 0) return nullptr;
    if (cause.size() == 0)
      cause = kj::str("ended with exit code ", code, " and without an error message");
    return Failure{code == LOST_A_PEER_EXIT ? Failure::LOST_A_PEER : Failure::FAILED,
        kj::str(process.name, ": ", cause)};
  }

  RunView& view;
  kj::String cause;
  ChildProcess process;
};

// ---- Launcher inline: threads of this process, also connected over the loopback.

class RoleThread final: public StartedRole {
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
    if (!hasEnded) thread->detach();  // A thread cannot be taken down: see LauncherKind.
  }

  kj::Own<kj::AsyncInputStream> events() override { return kj::mv(eventStream); }

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

  // A signal that stops the thread stops its launcher too.
  bool isStopped() override { return false; }

private:
  const kj::String name;
  const kj::Own<const LogAccess> access;  // of the coordinator to the files of the run
  kj::Own<kj::AsyncInputStream> eventStream;
  kj::Promise<void> endedPromise;
  bool hasEnded = false;
  kj::Own<kj::Thread> thread;
};

}  // namespace

kj::Own<StartedRole> startRole(
    const LoadedExperiment& loaded, RoleOptions options, RunView& view, kj::AsyncIoContext& io) {
  auto& cluster = KJ_ASSERT_NONNULL(loaded.experiment).cluster;
  switch (cluster.launcher->word) {
    case LauncherKind::LOCAL:
      return kj::heap<RoleProcess>(options, cluster, view, io);
    case LauncherKind::INLINE:
      return kj::heap<RoleThread>(loaded, kj::mv(options), io);
  }
  KJ_UNREACHABLE;
}

}  // namespace runner
