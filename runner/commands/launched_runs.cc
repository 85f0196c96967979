#include "runner/commands/launched_runs.h"

#include <kj/debug.h>
#include <kj/vector.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "runner/launch/slurm_queue.h"
#include "runner/logs/run_lock.h"
#include "runner/logs/run_record.h"
#include "runner/logs/run_tree.h"
#include "runner/system/files.h"
#include "runner/system/reason.h"
#include "runner/tables/run_tables.h"

namespace runner {

namespace {

bool exists(kj::StringPtr path) {
  return ::access(path.cStr(), F_OK) == 0;
}

double beginOf(const RunFolder& folder) {
  KJ_IF_MAYBE(holder, lastHolderOf(folder)) return holder->since_s;
  return 0;
}

// Returns the run to which the link `last` of an experiment's folder points.
kj::Maybe<RunFolder> lastRunIn(kj::StringPtr parent) {
  char name[NAME_MAX + 1] = {};
  auto link = kj::str(parent, "/last");
  if (::readlink(link.cStr(), name, sizeof(name) - 1) <= 0) return nullptr;
  RunFolder folder{kj::str(parent, "/", static_cast<const char*>(name))};
  if (!exists(folder.path)) return nullptr;
  return kj::mv(folder);
}

int codeOf(RunRecord::State state) {
  switch (state) {
    case RunRecord::FINISHED:
    case RunRecord::STOPPED:
      return OK;
    case RunRecord::INTERRUPTED:
      return INTERRUPTED;
    case RunRecord::FAILED:
    case RunRecord::RUNNING:
    case RunRecord::UNFINISHED:
      return RUN_FAILED;
  }
  KJ_UNREACHABLE;
}

}  // namespace

RunFolder launchedRun(kj::StringPtr path, CommandLine& commandLine) {
  size_t length = path.size();
  while (length > 1 && path[length - 1] == '/') --length;
  RunFolder own{kj::heapString(path.slice(0, length))};
  // A later run moves the link `last`.
  if (auto real = ::realpath(own.path.cStr(), nullptr)) {
    KJ_DEFER(::free(real));
    struct stat about;
    bool isLink = ::lstat(own.path.cStr(), &about) == 0 && S_ISLNK(about.st_mode);
    if (isLink) own.path = kj::str(real);
  }
  bool isOne = exists(own.events()) || isHeld(own) || slurmJobOf(own) != nullptr;
  if (isOne) return own;
  bool wasSweep = lastHolderOf(own) != nullptr;
  KJ_IF_MAYBE(last, lastRunIn(own.path)) {
    bool waits = isQueued(*last) && lastExitCodeOf(*last) == nullptr;
    if (!wasSweep || isHeld(*last) || waits || beginOf(*last) > beginOf(own)) {
      return kj::mv(*last);
    }
  }
  if (wasSweep) return own;
  commandLine.exitError(kj::str("error: there is no run in ", own.path,
      ": name the folder of a run, such as runs/<name>/1, or that of an experiment. `runner ps` "
      "lists the runs in progress"));
}

bool isSweep(const RunFolder& folder) {
  return exists(runOrderFile(folder.path));
}

kj::Maybe<RunFolder> sweepOf(const RunFolder& folder) {
  // A path such as `seed=1` or `.` does not name the folder above.
  auto real = ::realpath(folder.path.cStr(), nullptr);
  if (real == nullptr) return nullptr;
  KJ_DEFER(::free(real));
  kj::StringPtr path = real;
  auto slash = KJ_ASSERT_NONNULL(path.findLast('/'));
  RunFolder sweep{kj::heapString(path.slice(0, slash))};
  kj::Array<kj::String> names;
  // An order that cannot be read names no run.
  kj::runCatchingExceptions([&]() { names = runOrderIn(sweep.path); });
  for (auto& name: names) {
    if (name == path.slice(slash + 1)) return kj::mv(sweep);
  }
  return nullptr;
}

bool isQueued(const RunFolder& folder) {
  if (slurmJobOf(folder) == nullptr || isHeld(folder)) return false;
  KJ_IF_MAYBE(code, lastExitCodeOf(folder)) {
    // Slurm may put a job that it has interrupted back into the queue.
    return *code != OK && *code != MISSED;
  }
  return true;
}

kj::Array<RunFolder> foldersAtWork(
    kj::StringPtr runs, kj::FunctionParam<void(kj::StringPtr reason)> leaveOut) {
  kj::Vector<RunFolder> found;
  auto visit = [&](kj::StringPtr path, kj::StringPtr, bool) {
    RunFolder folder{kj::str(path)};
    if (isHeld(folder) || isQueued(folder)) found.add(kj::mv(folder));
  };
  if (exists(runs)) visitRunTree(runs, visit, kj::mv(leaveOut));
  return found.releaseAsArray();
}

LaunchEnd endOf(const RunFolder& folder) {
  auto code = lastExitCodeOf(folder);
  if (exists(folder.events())) {
    auto record = readRunRecord(folder.path);
    if (record.state == RunRecord::UNFINISHED && !isHeld(folder)) {
      record.reason = kj::str("its processes were killed; ",
          sweepOf(folder) != nullptr ? "the command of its sweep continues it"
                                     : "`runner run` continues it with --resume");
    }
    auto reason = record.reason.size() == 0 ? kj::str() : kj::str(": ", record.reason);
    return {code.orDefault(codeOf(record.state)), kj::str(stateWord(record.state), reason)};
  }
  KJ_IF_MAYBE(each, code) return {*each, kj::str("ended with exit code ", *each)};
  KJ_IF_MAYBE(job, slurmJobOf(folder)) {
    // The process that submits a run has its lock, too.
    auto holder = lastHolderOf(folder);
    bool hasBegun = holder != nullptr && KJ_ASSERT_NONNULL(holder).slurmJob.size() > 0;
    if (!hasBegun) {
      return {RUN_FAILED, kj::str("job ", *job, " of Slurm ended before the run began")};
    }
  }
  return {RUN_FAILED, kj::str("ended without an exit code: its process was killed")};
}

}  // namespace runner
