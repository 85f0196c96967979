#include "runner/launch/slurm_queue.h"

#include <kj/debug.h>
#include <kj/map.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "configs/language/failure.h"
#include "runner/logs/run_lock.h"
#include "runner/logs/run_record.h"
#include "runner/system/child_process.h"
#include "runner/system/files.h"
#include "runner/system/line_stream.h"
#include "runner/system/reason.h"
#include "runner/system/slurm_job.h"

namespace runner {

namespace {

// How long runs have to end in order, and how long Slurm then takes to end the remaining processes.
constexpr uint IN_ORDER_S = 15, LIMIT_S = 120;

constexpr kj::StringPtr OVER[] = {"COMPLETED"_kj, "FAILED"_kj};
// States in which Slurm, or a person, has ended a job.
constexpr kj::StringPtr ENDED[] = {"BOOT_FAIL"_kj, "CANCELLED"_kj, "DEADLINE"_kj, "NODE_FAIL"_kj,
    "OUT_OF_MEMORY"_kj, "PREEMPTED"_kj, "REVOKED"_kj, "TIMEOUT"_kj};

// Why Slurm ended a job, and what to do.
struct SlurmEnd {
  kj::StringPtr state, advice;
};
constexpr SlurmEnd SLURM_ENDS[] = {
    {"TIMEOUT"_kj, "raise the limit, such as with SBATCH_TIMELIMIT=2:00:00"_kj},
    {"CANCELLED"_kj, "a user or an administrator has cancelled it (scancel)"_kj},
    {"NODE_FAIL"_kj, "one of its nodes failed: run it again"_kj},
    {"BOOT_FAIL"_kj, "one of its nodes did not boot: run it again"_kj},
    {"OUT_OF_MEMORY"_kj, "ask for more memory, such as with SBATCH_MEM_PER_CPU=4G"_kj},
    {"PREEMPTED"_kj, "a job of higher priority took its place: run it again"_kj},
};

bool contains(kj::ArrayPtr<const kj::StringPtr> words, kj::StringPtr word) {
  for (auto each: words) {
    if (each == word) return true;
  }
  return false;
}

// Returns the output of a Slurm command, on one line and without the command's name.
kj::String reasonIn(kj::ArrayPtr<const kj::String> errors) {
  constexpr kj::StringPtr MARK = "error: "_kj;
  auto sentences = KJ_MAP(line, errors) {
    auto found = strstr(line.cStr(), MARK.cStr());
    return found == nullptr ? kj::str(line) : kj::str(found + MARK.size());
  };
  return kj::strArray(sentences, "; ");
}

// Returns the job array of the task "17_3": "17". Returns the id of any other job unchanged.
kj::String arrayOf(kj::StringPtr id) {
  return kj::str(id.slice(0, id.findFirst('_').orDefault(id.size())));
}

// Whether the events of the run say how it ended. The process may have been killed before it could
// note an exit code.
bool hasEnding(const RunFolder& folder) {
  auto state = RunRecord::UNFINISHED;
  // A run that failed early has no events.
  kj::runCatchingExceptions([&]() { state = readRunRecord(folder.path).state; });
  return state != RunRecord::UNFINISHED;
}

}  // namespace

bool SlurmJob::wasEnded() const {
  return contains(ENDED, state);
}

bool SlurmJob::isOver() const {
  return wasEnded() || contains(OVER, state);
}

kj::String SlurmJob::text() const {
  return reason.size() == 0 ? kj::str(state) : kj::str(state, " (", reason, ")");
}

SlurmJob SlurmJob::clone() const {
  return {kj::str(id), kj::str(state), kj::str(reason), kj::str(nodes)};
}

SlurmJob slurmJobIn(kj::StringPtr line) {
  kj::String parts[4];
  for (auto& part: parts) {
    auto end = line.findFirst('|').orDefault(line.size());
    part = kj::heapString(line.slice(0, end));
    line = line.slice(kj::min(end + 1, line.size()));
  }
  if (parts[2] == "None") parts[2] = nullptr;
  return {kj::mv(parts[0]), kj::mv(parts[1]), kj::mv(parts[2]), kj::mv(parts[3])};
}

kj::String slurmTaskId(kj::StringPtr job, size_t i, size_t count) {
  return count == 1 ? kj::str(job) : kj::str(job, "_", i);
}

kj::String slurmJobFile(const RunFolder& folder) {
  return kj::str(folder.path, "/slurm_job");
}

void noteSlurmJob(const RunFolder& folder, kj::StringPtr id) {
  writeWhole(slurmJobFile(folder), kj::str(id, "\n"));
}

kj::Maybe<kj::String> slurmJobOf(const RunFolder& folder) {
  auto path = slurmJobFile(folder);
  if (::access(path.cStr(), F_OK) != 0) return nullptr;
  auto id = lastLineOf(path);
  if (id.size() == 0) return nullptr;
  return kj::mv(id);
}

bool isOwnSlurmJob(kj::StringPtr id) {
  KJ_IF_MAYBE(own, ownSlurmJob()) return *own == id;
  return false;
}

void forgetSlurmJob(const RunFolder& folder) {
  KJ_IF_MAYBE(id, slurmJobOf(folder)) {
    if (isOwnSlurmJob(*id)) return;
  }
  ::unlink(slurmJobFile(folder).cStr());
}

kj::Maybe<kj::String> whySlurmEnded(const RunFolder& folder, const kj::Maybe<SlurmJob>& job) {
  auto name = kj::str("job ", slurmJobOf(folder).orDefault(kj::str("?")));
  bool isKilled = lastExitCodeOf(folder) == nullptr && !hasEnding(folder);
  KJ_IF_MAYBE(last, job) {
    if (last->wasEnded()) {
      kj::StringPtr advice = "`scontrol show job` says more";
      for (auto& each: SLURM_ENDS) {
        if (each.state == last->state) advice = each.advice;
      }
      return kj::str("Slurm ended ", name, ": ", last->text(), "; ", advice);
    }
    if (!isKilled) return nullptr;
    bool hasBegun = ::access(folder.events().cStr(), F_OK) == 0;
    kj::StringPtr advice = hasBegun ? "its process was killed"_kj
                                    : "the nodes need this program and the folder of runs at the "
                                      "same paths as this machine"_kj;
    return kj::str(name, " of Slurm ended before its run ", hasBegun ? "had ended" : "began", ": ",
        last->text(), "; ", advice);
  }
  if (!isKilled) return nullptr;
  return kj::str("Slurm no longer has ", name, ", whose run has not ended");
}

kj::Promise<kj::Own<SlurmQueue::Said>> SlurmQueue::call(kj::Vector<kj::String> words) {
  auto process = kj::heap<ChildProcess>(
      words[0], kj::StringPtr(words[0]), words, nullptr, *io.lowLevelProvider, io.unixEventPort);
  auto said = kj::heap<Said>();
  auto output = readLines(
      *process->output, [&to = said->output](kj::StringPtr line) { to.add(kj::str(line)); });
  auto errors = readLines(
      *process->errors, [&to = said->errors](kj::StringPtr line) { to.add(kj::str(line)); });
  return kj::joinPromises(kj::arr(kj::mv(output), kj::mv(errors)))
      .then([&process = *process]() { return process.ended(); })
      .then([said = kj::mv(said)](int status) mutable {
        said->exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        return kj::mv(said);
      })
      .attach(kj::mv(process));
}

kj::Promise<kj::String> SlurmQueue::submit(kj::StringPtr path) {
  // With this variable, sbatch would return only at the end of the job.
  ::unsetenv("SBATCH_WAIT");
  kj::Vector<kj::String> words;
  for (auto word: {"sbatch"_kj, "--parsable"_kj, path}) words.add(kj::str(word));
  return call(kj::mv(words)).then([](kj::Own<Said>&& said) {
    if (said->exitCode != 0 || said->output.empty()) {
      configs::fail("Slurm does not take the job: ", reasonIn(said->errors));
    }
    // A site's own sbatch may print other lines first.
    auto& line = said->output.back();
    auto id = kj::heapString(line.slice(0, line.findFirst(';').orDefault(line.size())));
    bool isNumber = id.size() > 0 &&
                    std::all_of(id.begin(), id.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!isNumber) {
      configs::fail(
          "sbatch has not printed the number of the job, but: ", kj::strArray(said->output, "; "),
          ". See `squeue` for the job, and cancel it with ", "`scancel`");
    }
    return id;
  });
}

kj::Promise<void> SlurmQueue::noteOrCancel(
    kj::StringPtr job, kj::ArrayPtr<const RunFolder> folders) {
  auto note = [&]() {
    for (size_t i: kj::indices(folders)) {
      noteSlurmJob(folders[i], slurmTaskId(job, i, folders.size()));
    }
  };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(note)) {
    return cancel(kj::arr(kj::str(job)))
        .catch_([job = kj::str(job), why = reasonOf(*e)](kj::Exception&& refusal) {
          configs::fail("job ", job, " of Slurm was submitted, but its number cannot be noted (",
              why, "), and the job cannot be cancelled (", reasonOf(refusal),
              "). Cancel it with `scancel ", job, "`");
        })
        .then([e = kj::mv(*e)]() mutable -> kj::Promise<void> { return kj::mv(e); });
  }
  return kj::READY_NOW;
}

kj::Promise<kj::Maybe<SlurmQueue::Jobs>> SlurmQueue::look(kj::ArrayPtr<const kj::String> ids) {
  kj::Vector<kj::String> words;
  for (auto word: {"squeue", "--noheader", "--states=all", "--array", "--format=%i|%T|%r|%N"}) {
    words.add(kj::str(word));
  }
  // The ids of all tasks of a large sweep would be longer than an argument may be (128 KiB). The
  // arrays that the tasks belong to are few.
  constexpr size_t NAMED_MAX = 4096;
  kj::HashSet<kj::String> wanted, arrays;
  for (auto& id: ids) {
    wanted.upsert(kj::str(id), [](auto&, auto&&) {});
    arrays.upsert(ids.size() > NAMED_MAX ? arrayOf(id) : kj::str(id), [](auto&, auto&&) {});
  }
  auto named = KJ_MAP(id, arrays)->kj::StringPtr {
    return id;
  };
  words.add(kj::str("--jobs=", kj::strArray(named, ",")));
  auto said = call(kj::mv(words));
  return said.then([wanted = kj::mv(wanted)](kj::Own<Said>&& said) -> kj::Maybe<Jobs> {
    if (said->exitCode == 0) {
      kj::Vector<SlurmJob> jobs;
      for (auto& line: said->output) {
        auto job = slurmJobIn(line);
        if (wanted.contains(job.id) || wanted.contains(arrayOf(job.id))) jobs.add(kj::mv(job));
      }
      return jobs.releaseAsArray();
    }
    // If several jobs are named, squeue leaves out the ones that it no longer knows. If one is
    // named, that is an error.
    auto reason = reasonIn(said->errors);
    if (strstr(reason.cStr(), "Invalid job id") != nullptr) return Jobs();
    return nullptr;
  });
}

kj::Promise<void> SlurmQueue::signal(
    kj::ArrayPtr<const kj::String> ids, std::initializer_list<kj::StringPtr> options) {
  kj::Vector<kj::String> words;
  words.add(kj::str("scancel"));
  for (auto option: options) words.add(kj::str(option));
  for (auto& id: ids) words.add(kj::str(id));
  return call(kj::mv(words)).then([](kj::Own<Said>&& said) {
    auto reason = reasonIn(said->errors);
    for (auto refused: {"ermission", "ccess", "cannot start"}) {
      if (strstr(reason.cStr(), refused) != nullptr) configs::fail("scancel: ", reason);
    }
  });
}

kj::Promise<void> SlurmQueue::cancel(kj::Array<kj::String> ids) {
  auto owned = kj::heap<kj::Array<kj::String>>(kj::mv(ids));
  kj::ArrayPtr<const kj::String> all = *owned;
  return signal(all, {"--state=PENDING"})
      // Plain scancel also ends the roles, and `runner run` would then report one of them as lost.
      .then([this, all]() {
        return signal(all, {"--batch", "--signal=TERM"});
      })
      .then([this, all]() { return awaitEnd(all, 0); })
      .attach(kj::mv(owned));
}

kj::Promise<void> SlurmQueue::awaitEnd(kj::ArrayPtr<const kj::String> ids, uint waited_s) {
  return look(ids).then([this, ids, waited_s](kj::Maybe<Jobs>&& jobs) -> kj::Promise<void> {
    KJ_IF_MAYBE(known, jobs) {
      bool goesOn = false;
      for (auto& job: *known) goesOn = goesOn || !job.isOver();
      if (!goesOn) return kj::READY_NOW;
    }
    if (waited_s >= LIMIT_S) {
      configs::fail("Slurm has not ended job ", kj::strArray(ids, ", "), " within ", LIMIT_S,
          " s. See `squeue`, and ask its administrator");
    }
    kj::Promise<void> next = kj::READY_NOW;
    if (waited_s == IN_ORDER_S) next = signal(ids, {});
    return next.then([this]() { return io.provider->getTimer().afterDelay(1 * kj::SECONDS); })
        .then([this, ids, waited_s]() { return awaitEnd(ids, waited_s + 1); });
  });
}

}  // namespace runner
