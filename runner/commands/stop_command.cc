#include "runner/commands/stop_command.h"

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/common.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "runner/commands/launched_runs.h"
#include "runner/launch/slurm_queue.h"
#include "runner/logs/run_lock.h"
#include "runner/system/process_identity.h"
#include "runner/system/terminal.h"
#include "runner/system/version.h"

namespace runner {

namespace {

// How long to wait. A launcher ends all roles within 10 s. A sweep in the queue of Slurm gives up
// after 120 s.
constexpr uint END_LIMIT_S = 150;

// Returns the process that works on `folder`. Null if it has already ended.
kj::Maybe<kj::AutoCloseFd> launcherOf(const RunFolder& folder) {
  KJ_IF_MAYBE(holder, lastHolderOf(folder)) {
    auto& process = holder->process;
    auto found = process.open();
    if (found != nullptr || !isHeld(folder)) return found;
    if (process.boot.size() == 0) {
      configs::fail(folder.path, " belongs to ", holderOf(folder), ", which this command cannot ",
          "identify (its machine has no /proc). `kill ", process.pid, "` ends it there");
    }
    configs::fail(folder.path, " belongs to ", holderOf(folder),
        process.isHere() ? " in another container of this machine" : "",
        ". Run this command there: `runner stop ", folder.path, "`. If the process was killed, ",
        "and the file system has no locks, remove ", folder.path, "/.lock");
  }
  configs::fail("it is not known which process works on ", folder.path,
      ", because its lock file could not be written (is the disk full?). End it in its terminal");
}

// Whether a process works on the run in `folder` for a sweep.
bool isHeldBySweep(const RunFolder& folder) {
  KJ_IF_MAYBE(holder, lastHolderOf(folder)) return holder->isSweep && isHeld(folder);
  return false;
}

// Returns `folder` if a process works on the run or sweep there. Otherwise returns a run of that
// sweep on which a process works: several may share a sweep, and only the first one holds the
// sweep's own lock. Null if no process works on either.
kj::Maybe<RunFolder> heldIn(const RunFolder& folder) {
  if (isHeld(folder)) return RunFolder{kj::str(folder.path)};
  if (!isSweep(folder)) return nullptr;
  for (auto& name: runOrderIn(folder.path)) {
    RunFolder run{kj::str(folder.path, "/", name)};
    if (name.size() > 0 && isHeldBySweep(run)) return kj::mv(run);
  }
  return nullptr;
}

// Ends the process that works on `folder`, and waits for its end.
void endProcessOf(const RunFolder& folder) {
  KJ_IF_MAYBE(launcher, launcherOf(folder)) {
    int error = sendSignal(*launcher, SIGTERM);
    // A launcher that a signal has stopped would take the signal only when it continues.
    if (error == 0) error = sendSignal(*launcher, SIGCONT);
    auto who = holderOf(folder);
    if (error != 0) {
      configs::fail("cannot end ", who, ", which works on ", folder.path, ": ", strerror(error),
          ". Only its user and root can");
    }
    if (!waitForEnd(*launcher, END_LIMIT_S)) {
      configs::fail(who, ", which works on ", folder.path, ", has not ended within ", END_LIMIT_S,
          " s. `kill -9` ends it, and its roles end with it");
    }
  }
}

// Cancels the run's Slurm job. Returns false if the run has no job, or has ended.
bool cancelJobOf(const RunFolder& folder) {
  if (!isHeld(folder) && !isQueued(folder)) return false;
  KJ_IF_MAYBE(job, slurmJobOf(folder)) {
    kj::UnixEventPort::captureChildExit();
    auto io = kj::setupAsyncIo();
    SlurmQueue queue(io);
    auto ids = kj::arr(kj::mv(*job));
    KJ_IF_MAYBE(found, queue.look(ids).wait(io.waitScope)) {
      if (found->size() == 0 || (*found)[0].isOver()) {
        noteSlurmJobIsOver(folder, ids[0]);
        return false;
      }
      queue.cancel(kj::mv(ids)).wait(io.waitScope);
      return true;
    }
    // The run has ended. Slurm may have put its job back into the queue, but this is unlikely.
    if (!isHeld(folder) && lastExitCodeOf(folder) != nullptr) return false;
    configs::fail("squeue does not answer, so the state of job ", ids[0], ", which works on ",
        folder.path, ", is not known. Run this command on a machine with Slurm's commands");
  }
  return false;
}

}  // namespace

kj::MainFunc StopCommand::getMain() {
  return kj::MainBuilder(commandLine, VERSION,
      "Ends a run or a sweep as Ctrl-C in its terminal would, waits until no process of it is "
      "left, and says how it ended. RUN is the folder of a run, or the folder of an experiment, "
      "which stands for its newest run. If the run has ended already, does nothing and ends with "
      "exit code 0.\n"
      "\n"
      "  runner stop runs/fashion_mnist_dist_sync\n"
      "  runner stop runs/fashion_mnist_dist_sync/3")
      .expectArg("RUN", textSetter(path, "name a folder, e.g. runs/fashion_mnist_dist_sync"))
      .callAfterParsing(KJ_BIND_METHOD(*this, stop))
      .build();
}

Validity StopCommand::stop() {
  auto folder = launchedRun(path, commandLine);
  bool hasEnded = false;
  for (;;) {
    // A process that was ended may have submitted the run to Slurm before.
    if (cancelJobOf(folder)) {
      bool hasBegun =
          ::access(folder.events().cStr(), F_OK) == 0 || lastExitCodeOf(folder) != nullptr;
      tell(kj::str(
          folder.path, ": ", hasBegun ? endOf(folder).text : kj::str("cancelled before it began")));
      return true;
    }
    KJ_IF_MAYBE(held, heldIn(folder)) {
      if (isHeldBySweep(folder)) {
        auto sweep =
            sweepOf(folder).orDefault([&]() { return RunFolder{kj::str(folder.path, "/..")}; });
        configs::fail(folder.path, " is a run of a sweep, whose process works on all of its runs. ",
            "`runner stop ", sweep.path, "` ends the sweep. The same command continues it later");
      }
      endProcessOf(*held);
      hasEnded = true;
    } else {
      break;
    }
  }
  tell(kj::str(folder.path, hasEnded ? ": " : " is over: ", endOf(folder).text));
  return true;
}

}  // namespace runner
