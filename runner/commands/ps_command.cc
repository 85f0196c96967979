#include "runner/commands/ps_command.h"

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/debug.h>
#include <time.h>

#include "runner/commands/launched_runs.h"
#include "runner/experiment/experiment.h"
#include "runner/launch/slurm_queue.h"
#include "runner/logs/run_lock.h"
#include "runner/logs/run_record.h"
#include "runner/system/files.h"
#include "runner/system/terminal.h"
#include "runner/system/version.h"
#include "runner/tables/terminal_table.h"
#include "runner/text/text_table.h"

namespace runner {

namespace {

constexpr uint64_t EXPERIMENT_BYTES_MAX = 1 << 24;
constexpr kj::StringPtr IMPORTANT[] = {"run"_kj, "epoch"_kj, "process"_kj, "since"_kj};

// Returns a time such as `2026-11-22 21:50`, in the time zone of this machine.
kj::String timeText(double since1970_s) {
  time_t seconds = since1970_s;
  tm local;
  char text[32];
  if (::localtime_r(&seconds, &local) == nullptr) return kj::str();
  return kj::heapString(text, ::strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &local));
}

// Returns `3/10`: the newest epoch from which a worker has reported its speed, or which all workers
// have done. Empty before the run's first event.
kj::String epochOf(const RunFolder& folder) {
  RunRecord record;
  auto read = [&]() { record = readRunRecord(folder.path); };
  if (kj::runCatchingExceptions(read) != nullptr) return kj::str();
  uint epoch = 1;
  for (auto& each: record.epochRecords) epoch = kj::max(epoch, each.epoch);
  for (auto& each: record.speeds) epoch = kj::max(epoch, each.epoch);
  return kj::str(epoch, "/", record.epochs);
}

// Returns the jobs of `queued` in Slurm's queue, in the order of these folders.
kj::Array<kj::Maybe<SlurmJob>> jobsOf(kj::ArrayPtr<const RunFolder> queued) {
  auto jobs = kj::heapArray<kj::Maybe<SlurmJob>>(queued.size());
  if (queued.size() == 0) return jobs;
  auto ids = KJ_MAP(folder, queued) {
    return slurmJobOf(folder).orDefault(kj::str());
  };
  kj::UnixEventPort::captureChildExit();
  auto io = kj::setupAsyncIo();
  KJ_IF_MAYBE(found, SlurmQueue(io).look(ids).wait(io.waitScope)) {
    for (auto& job: *found) {
      for (size_t i: kj::indices(ids)) {
        if (ids[i] != job.id || job.isOver()) continue;
        jobs[i] = kj::mv(job);
        break;
      }
    }
  } else {
    tell("warning: squeue does not answer, so runs that wait in the queue are not listed");
  }
  return jobs;
}

kj::Array<kj::String> rowOf(const RunFolder& folder, kj::Maybe<const SlurmJob&> job) {
  kj::String name, mode, since, process;
  auto read = [&]() {
    configs::Diagnostics diagnostics;
    auto text = readRegular(folder.experiment(), EXPERIMENT_BYTES_MAX);
    auto loaded =
        readExperiment(configs::parse(folder.experiment(), text, diagnostics), diagnostics);
    KJ_IF_MAYBE(experiment, loaded.experiment) {
      name = kj::str(experiment->name);
      mode = kj::str(experiment->kvstore.modeName());
    }
  };
  // A run that has just begun has no such file yet.
  auto unread = kj::runCatchingExceptions(read);
  if (unread != nullptr && isSweep(folder)) name = kj::str("(a sweep)");
  KJ_IF_MAYBE(waiting, job) {
    process = kj::str("job ", waiting->id, ": ", waiting->text());
  } else KJ_IF_MAYBE(holder, lastHolderOf(folder)) {
    since = timeText(holder->since_s);
    process = kj::str(holder->process.pid);
    KJ_IF_MAYBE(id, slurmJobOf(folder)) process = kj::str("job ", *id);
    if (!holder->process.isHere()) process = kj::str(process, " on ", holder->process.host);
  }
  return kj::arr(kj::str(folder.path), kj::mv(name), kj::mv(mode), epochOf(folder), kj::mv(since),
      kj::mv(process));
}

}  // namespace

kj::MainFunc PsCommand::getMain() {
  return kj::MainBuilder(commandLine, VERSION,
      "Lists the runs and sweeps in progress, also those of other machines that share the folder, "
      "and those that wait in the queue of Slurm. Shows folder, experiment, mode, epoch, start "
      "time, and the process to which they belong. `runner attach` follows one of them, and "
      "`runner stop` ends it.\n"
      "\n"
      "  runner ps\n"
      "  runner ps --runs /tmp/runs")
      .addOptionWithArg({"runs"}, folderSetter(runs, "name a folder, e.g. --runs runs"), "DIR",
          "where the folders of runs are (default: runs)")
      .callAfterParsing(KJ_BIND_METHOD(*this, list))
      .build();
}

Validity PsCommand::list() {
  kj::Vector<RunFolder> held, queued;
  auto warn = [this](kj::StringPtr reason) { commandLine.warning(reason); };
  for (auto& folder: foldersAtWork(runs, warn)) {
    auto& kind = isQueued(folder) ? queued : held;
    kind.add(kj::mv(folder));
  }
  auto jobs = jobsOf(queued);
  kj::Vector<kj::Array<kj::String>> rows;
  for (auto& folder: held) rows.add(rowOf(folder, nullptr));
  for (size_t i: kj::indices(queued)) {
    KJ_IF_MAYBE(job, jobs[i]) rows.add(rowOf(queued[i], *job));
  }
  if (rows.empty()) {
    tell(kj::str("no run is in progress in ", runs));
    return true;
  }
  TextTable table;
  table.header = kj::arr(kj::str("run"), kj::str("experiment"), kj::str("mode"), kj::str("epoch"),
      kj::str("since"), kj::str("process"));
  table.rows = rows.releaseAsArray();
  printTable(table, IMPORTANT);
  return true;
}

}  // namespace runner
