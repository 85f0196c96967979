#include "runner/launch/local_launcher.h"

#include <kj/debug.h>
#include <kj/vector.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "runner/logs/role_names.h"
#include "runner/roles/trace_file.h"
#include "runner/system/child_process.h"
#include "runner/system/command_line.h"
#include "runner/system/line_stream.h"
#include "runner/system/reason.h"

namespace runner {

namespace {

kj::String adviceOn(int signal, bool isHere) {
  switch (signal) {
    case SIGKILL: {
      // The kernel kills a process that reaches its hard limit.
      rlimit limit;
      bool isLimited =
          isHere && ::getrlimit(RLIMIT_CPU, &limit) == 0 && limit.rlim_max != RLIM_INFINITY;
      auto dmesg = "see in `dmesg` whether memory ran out"_kj;
      if (!isLimited) return kj::str(dmesg);
      return kj::str(dmesg, ", or raise the limit on its CPU time (`ulimit -t`), which is ",
          limit.rlim_max, " s");
    }
    case SIGBUS:
      return kj::str("see in `dmesg` whether memory ran out or a disk failed");
    case SIGXCPU:
      return kj::str("raise the limit on its CPU time (`ulimit -t`)");
    default:
      return kj::str("please report it");
  }
}

kj::Array<kj::String> wordsFor(const RoleOptions& options, kj::String file) {
  kj::Vector<kj::String> words;
  for (auto& word: commandOf(options)) words.add(kj::mv(word));
  words.add(kj::mv(file));
  return words.releaseAsArray();
}

class RoleProcess final: public StartedGroup {
public:
  RoleProcess(const LaunchedRun& run, kj::StringPtr name, const RoleOptions& options)
      : process(name, nullptr, wordsFor(options, run.folder.experiment()),
            kj::str(options.secret.digits(), "\n"), *run.io.lowLevelProvider, run.io.unixEventPort),
        report(process.name, run.view, true) {}

  kj::Own<kj::AsyncInputStream> events() { return kj::mv(process.output); }

  kj::Promise<kj::Maybe<Failure>> ended() override {
    auto said = readLines(*process.errors, [this](kj::StringPtr line) { report.take(line); });
    return process.ended().then([this, said = kj::mv(said)](int status) mutable {
      return said.then([this, status]() { return report.judge(status); });
    });
  }

  bool isStopped() override { return process.isStopped(); }
  bool requestSave() override {
    process.signal(SAVE_SIGNAL);
    return true;
  }
  void requestLeave() override { process.signal(SIGTERM); }

private:
  ChildProcess process;
  RoleReport report;
};

class LocalLauncher final: public Launcher {
public:
  explicit LocalLauncher(const LaunchedRun& run): run(run) {}

  StartedCoordinator startCoordinator(ListenPlace place) override {
    return startCoordinatorHere(run, kj::mv(place));
  }
  kj::Array<RoleGroup> groups() const override { return groupsHere(run.experiment().cluster); }
  kj::Own<StartedGroup> start(const RoleGroup& group, kj::StringPtr coordinator) override {
    auto& first = group.roles[0];
    return kj::heap<RoleProcess>(
        run, group.name, run.optionsOf(first.role, first.index, coordinator));
  }

private:
  const LaunchedRun& run;
};

}  // namespace

void RoleReport::take(kj::StringPtr line) {
  if (line == LOST_ROLE_LINE) {
    hasLostRole = true;
  } else if (line.startsWith("error: ")) {
    cause = kj::str(line.slice(7));
  } else if (line.size() > 0) {
    view.say(kj::str(name, ": ", line));
  }
}

kj::Maybe<Failure> RoleReport::judge(int status) {
  if (WIFSIGNALED(status)) {
    int signal = WTERMSIG(status);
    return Failure{
        Failure::KILLED, kj::str(name, " was killed by signal ", signal, " (", strsignal(signal),
                             "); ", lastReportedStep(view.reportedStep()),
                             "; if nobody did that by hand, ", adviceOn(signal, isHere))};
  }
  int code = WEXITSTATUS(status);
  if (code == 0) return nullptr;
  // A worker that was asked to leave a job which continues without it.
  if (code == INTERRUPTED) {
    return Failure{Failure::KILLED,
        kj::str(name, " received SIGTERM; ", lastReportedStep(view.reportedStep()))};
  }
  if (cause.size() == 0) {
    cause = kj::str("ended with exit code ", code, " and without an error message");
  }
  auto rank = code == LOST_DEVICE_EXIT   ? Failure::KILLED
              : code == LOST_A_PEER_EXIT ? Failure::LOST_A_PEER
              : hasLostRole              ? Failure::SILENT
                                         : Failure::FAILED;
  return Failure{rank, saidBy(name, cause)};
}

kj::Array<kj::String> commandOf(const RoleOptions& options) {
  kj::Vector<kj::String> words;
  words.add(kj::str("runner"));
  words.add(kj::str("role"));
  words.add(kj::str("--role=", roleWord(options.role)));
  words.add(kj::str("--index=", options.index));
  words.add(kj::str("--folder=", options.folder.path));
  if (options.coordinator.size() > 0) {
    words.add(kj::str("--coordinator=", options.coordinator));
  }
  KJ_IF_MAYBE(place, options.listen) {
    if (!rpc::isLoopback(place->host)) words.add(kj::str("--listen=", place->host));
  }
  KJ_IF_MAYBE(steps, options.trace) words.add(kj::str("--trace-steps=", traceStepsText(*steps)));
  KJ_IF_MAYBE(data, options.data) {
    words.add(kj::str("--data=", data->folder));
    words.add(kj::str("--digest=", data->digest));
  }
  KJ_IF_MAYBE(workers, options.workersBefore) {
    words.add(kj::str("--workers-before=", *workers));
  }
  if (options.resumes) words.add(kj::str("--resume"));
  if (options.membershipOf.size() > 0) {
    words.add(kj::str("--membership=", options.membershipOf));
  }
  words.add(kj::str("--until-stdin-closes"));
  words.add(kj::str("--launched"));
  return words.releaseAsArray();
}

StartedCoordinator startCoordinatorHere(const LaunchedRun& run, ListenPlace place) {
  auto options = run.optionsOf(Role::COORDINATOR, 0, "");
  options.listen = kj::mv(place);
  auto process = kj::heap<RoleProcess>(run, roleName(Role::COORDINATOR, 0), options);
  auto events = process->events();
  return {kj::mv(events), kj::mv(process)};
}

kj::Own<Launcher> newLocalLauncher(const LaunchedRun& run) {
  return kj::heap<LocalLauncher>(run);
}

}  // namespace runner
