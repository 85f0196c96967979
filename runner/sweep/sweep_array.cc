#include "runner/sweep/sweep_array.h"

#include <kj/debug.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "runner/launch/slurm_launcher.h"
#include "runner/launch/slurm_queue.h"
#include "runner/logs/run_lock.h"
#include "runner/system/files.h"
#include "runner/system/reason.h"
#include "runner/system/terminal.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

constexpr auto QUEUE_INTERVAL = 2 * kj::SECONDS;

kj::Maybe<const SlurmJob&> jobIn(kj::ArrayPtr<const SlurmJob> jobs, kj::StringPtr id) {
  for (auto& job: jobs) {
    if (job.id == id) return job;
  }
  return nullptr;
}

// Returns why a run that has not finished has ended, by its events or its messages.
kj::String reasonIn(const RunFolder& folder) {
  RunRecord record;
  // A run that failed early has no events.
  kj::runCatchingExceptions([&]() { record = readRunRecord(folder.path); });
  if (record.reason.size() > 0) return kj::mv(record.reason);
  return kj::str("see ", folder.messages());
}

}  // namespace

SweepArray::SweepArray(const LoadedRuns& all, kj::StringPtr runs, kj::AsyncIoContext& io)
    : all(all),
      folders(all, runs),
      io(io),
      queue(io),
      progress(STDERR_FILENO),
      records(kj::heapArray<RunRecord>(all.runs.size())),
      began(io.provider->getTimer().now()) {}

kj::Promise<kj::Array<RunRecord>> SweepArray::run() {
  folders.writeOrder();
  for (size_t index: kj::indices(all.runs)) {
    // sort() reports why the number of a job cannot be read.
    kj::runCatchingExceptions([&]() {
      KJ_IF_MAYBE(job, slurmJobOf(folders.folderOf(index))) earlier.add(kj::mv(*job));
    });
  }
  kj::Promise<kj::Maybe<SlurmQueue::Jobs>> asked = kj::Maybe<SlurmQueue::Jobs>(SlurmQueue::Jobs());
  if (!earlier.empty()) asked = queue.look(earlier);
  return asked
      .then([this](kj::Maybe<SlurmQueue::Jobs>&& queued) {
        KJ_IF_MAYBE(known, queued) {
          auto own = kj::heap(kj::mv(*known));
          auto sorted = sortFrom(0, *own);
          return sorted.attach(kj::mv(own));
        }
        configs::fail(
            "squeue does not answer, so the runs of the sweep that wait in the queue are not "
            "known. Run this command on a machine with Slurm's commands");
      })
      .then([this]() {
        earlier.clear();
        submission = submit().fork();
        return submission.addBranch();
      })
      .then([this]() { return follow(); })
      .then([this]() {
        progress.clear();
        return kj::mv(records);
      });
}

kj::Promise<void> SweepArray::sortFrom(size_t index, kj::ArrayPtr<const SlurmJob> queued) {
  if (index == all.runs.size()) return kj::READY_NOW;
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { sort(index, queued); })) {
    finish(index, folders.failedRecord(index, reasonOf(*e)));
  }
  // As in SweepLaunch::sort().
  return io.provider->getTimer().afterDelay(0 * kj::SECONDS).then([this, index, queued]() {
    return sortFrom(index + 1, queued);
  });
}

void SweepArray::sort(size_t index, kj::ArrayPtr<const SlurmJob> queued) {
  auto folder = folders.folderOf(index);
  KJ_IF_MAYBE(record, folders.doneBefore(index)) {
    before++;
    say(folders.skippedText(index, *record));
    records[index] = kj::mv(*record);
    return;
  }
  KJ_IF_MAYBE(problem, all.runs[index].problem) {
    return finish(index, folders.failedRecord(index, kj::str(*problem)));
  }
  KJ_IF_MAYBE(id, slurmJobOf(folder)) {
    KJ_IF_MAYBE(job, jobIn(queued, *id)) {
      if (!job->isOver()) {
        say(kj::str(folders.nameOf(index), ": is job ", *id, " of Slurm already"));
        jobs.add(kj::str(*id));
        followed.add(Followed{index, kj::mv(*id)});
        return;
      }
    }
  }
  KJ_IF_MAYBE(lock, lockOf(folder)) {
    HeldRunFolder held({kj::str(folder.path)}, kj::mv(*lock));
    folders.prepare(held, index);
    // Otherwise the task would find the job of an earlier submission noted here, and conclude that
    // another job works on its run.
    forgetSlurmJob(held.folder);
    toSubmit.add(index);
  } else {
    records[index] = folders.recordElsewhere(index);
    say(folders.endedText(index, records[index]));
  }
}

kj::Promise<void> SweepArray::submit() {
  auto& name = folders.experimentOf(0).name;
  auto summary = kj::str("sweep ", name, ": ", counted(all.runs.size() - before, "run"), " to do, ",
      before, " done before");
  if (toSubmit.empty()) {
    say(summary);
    return kj::READY_NOW;
  }
  auto runs = KJ_MAP(index, toSubmit)->const Experiment* {
    return &folders.experimentOf(index);
  };
  auto places = KJ_MAP(index, toSubmit) {
    return folders.folderOf(index);
  };
  auto limit = KJ_ASSERT_NONNULL(all.sweep).parallelRuns;
  auto script = kj::str(folders.parent(), "/slurm.sh");
  writeWhole(script, slurmScript(runs, places, limit));
  auto submitted = queue.submit(script);
  return submitted.attach(kj::mv(script))
      .then([this, places = kj::mv(places)](kj::String&& job) {
        auto noted = queue.noteOrCancel(job, places);
        return noted.then([job = kj::mv(job)]() mutable { return kj::mv(job); });
      })
      .then([this, limit, summary = kj::mv(summary)](kj::String&& job) {
        size_t count = toSubmit.size();
        for (size_t i: kj::indices(toSubmit)) {
          followed.add(Followed{toSubmit[i], slurmTaskId(job, i, count)});
        }
        auto atATime = kj::str();
        KJ_IF_MAYBE(n, limit) atATime = kj::str(", at most ", *n, " at a time");
        say(kj::str(summary, ", as job ", job, " of Slurm with ", counted(count, "run"), atATime));
        jobs.add(kj::mv(job));
      });
}

kj::Promise<void> SweepArray::follow() {
  if (followed.empty()) return kj::READY_NOW;
  return queue.look(jobs).then([this](kj::Maybe<SlurmQueue::Jobs>&& answer) -> kj::Promise<void> {
    if (hasAnswer && answer == nullptr) {
      say("warning: squeue does not answer, so the state of the runs is not known");
    }
    hasAnswer = answer != nullptr;
    take(answer);
    if (followed.empty()) return kj::READY_NOW;
    KJ_IF_MAYBE(known, answer) show(*known);
    return io.provider->getTimer().afterDelay(QUEUE_INTERVAL).then([this]() { return follow(); });
  });
}

void SweepArray::take(const kj::Maybe<SlurmQueue::Jobs>& answer) {
  kj::Vector<Followed> goOn;
  for (auto& each: followed) {
    kj::Maybe<SlurmJob> job;
    KJ_IF_MAYBE(known, answer) {
      KJ_IF_MAYBE(found, jobIn(*known, each.id)) job = found->clone();
    }
    bool isOver = answer != nullptr;  // Slurm may have forgotten it
    KJ_IF_MAYBE(last, job) isOver = last->isOver();
    if (isOver) {
      finish(each.index, recordOf(each.index, job));
    } else {
      goOn.add(kj::mv(each));
    }
  }
  followed = kj::mv(goOn);
}

RunRecord SweepArray::recordOf(size_t index, const kj::Maybe<SlurmJob>& job) const {
  kj::Maybe<RunRecord> done;
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { done = folders.doneBefore(index); })) {
    return folders.failedRecord(index, reasonOf(*e));
  }
  KJ_IF_MAYBE(record, done) return kj::mv(*record);
  auto folder = folders.folderOf(index);
  KJ_IF_MAYBE(reason, whySlurmEnded(folder, job)) {
    return folders.failedRecord(index, kj::mv(*reason));
  }
  return folders.failedRecord(index, reasonIn(folder));
}

void SweepArray::show(kj::ArrayPtr<const SlurmJob> known) {
  uint waiting = 0;
  kj::StringPtr reason;
  for (auto& each: followed) {
    KJ_IF_MAYBE(job, jobIn(known, each.id)) {
      if (!job->isWaiting()) continue;
      waiting++;
      reason = job->reason;
    }
  }
  uint done = all.runs.size() - followed.size();
  uint ended = done - before;
  kj::Maybe<double> eta_s;
  double elapsed_s = (io.provider->getTimer().now() - began) / kj::MILLISECONDS / 1e3;
  if (ended > 0) eta_s = elapsed_s / ended * followed.size();
  auto why = reason.size() == 0 ? kj::str() : kj::str(" (", reason, ")");
  auto text = progressText(done, all.runs.size(), failed, eta_s);
  progress.show(
      kj::str(text, "  ", followed.size() - waiting, " running  ", waiting, " waiting", why));
}

void SweepArray::finish(size_t index, RunRecord record) {
  if (record.state == RunRecord::FAILED) failed++;
  say(folders.endedText(index, record));
  records[index] = kj::mv(record);
}

kj::Promise<void> SweepArray::cancel() {
  progress.clear();
  // Without its number, a job could not be cancelled.
  return submission.addBranch().then([this]() -> kj::Promise<void> {
    // Until Slurm has answered, it is not known which of these are over.
    for (auto& job: earlier) jobs.add(kj::mv(job));
    earlier.clear();
    if (jobs.empty()) return kj::READY_NOW;
    return queue.cancel(jobs.releaseAsArray());
  });
}

void SweepArray::say(kj::StringPtr line) {
  progress.clear();
  tell(line);
}

}  // namespace runner
