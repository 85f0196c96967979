#include "runner/commands/resumed_run.h"

#include <errno.h>
#include <kj/map.h>
#include <unistd.h>

#include <algorithm>

#include "configs/language/failure.h"
#include "runner/checkpoints/checkpoints.h"
#include "runner/experiment/model_facts.h"
#include "runner/logs/events.h"
#include "runner/logs/run_lock.h"
#include "runner/roles/carry_over.h"
#include "runner/roles/instruction_set_choice.h"
#include "runner/system/files.h"
#include "runner/system/terminal.h"

namespace runner {

namespace {

// Whether the folder of a run that has not begun has the experiment.toml of this experiment.
bool isOf(const LoadedExperiment& loaded, const RunFolder& folder) {
  bool result = false;
  // A folder without the file, or with that of another version, has another experiment.
  kj::runCatchingExceptions([&]() {
    auto written = loadExperiment(folder.experiment(), nullptr);
    if (written.experiment == nullptr) return;
    addRecords(written);
    result = written.digest == loaded.digest;
  });
  return result;
}

// Returns the experiment in the folder of a run, if the run may continue as `loaded`.
kj::Maybe<LoadedExperiment> relatedIn(
    const RunFolder& folder, const RunRecord& record, const LoadedExperiment& loaded) {
  kj::Maybe<LoadedExperiment> result;
  // A folder without the file, or with that of another version, has another experiment.
  kj::runCatchingExceptions([&]() {
    auto written = loadExperiment(folder.experiment(), nullptr);
    if (written.experiment == nullptr || !differOnlyInRoles(written, loaded)) return;
    addRecords(written);
    if (written.digest == record.digest) result = kj::mv(written);
  });
  return result;
}

[[noreturn]] void refuse(
    const ResumedRun& run, const Experiment& wanted, kj::StringPtr why, kj::StringPtr wayOut) {
  configs::fail("the run in ", run.folder.path, " has ",
      KJ_ASSERT_NONNULL(KJ_ASSERT_NONNULL(run.written).experiment).cluster.roles(),
      ", and cannot continue with ", wanted.cluster.roles(), ": ", why, ". ", wayOut,
      ", or leave --resume out to begin a new run");
}

// Returns the options of `runner run` that ask for the numbers of workers and servers of `run`.
kj::String numbersOf(const ResumedRun& run) {
  return kj::str("--set cluster.workers=", run.record.workers,
      run.record.servers > 0 ? kj::str(" --set cluster.servers=", run.record.servers) : kj::str());
}

// Returns the newest checkpoint at the end of an epoch. Throws if the run has no such checkpoint.
FoundCheckpoint endOfEpochIn(const ResumedRun& run, const Experiment& wanted) {
  auto digest = run.record.digest.asPtr();
  auto found = newestCheckpoint(
      run.folder, digest, [](kj::String why) { tell(why); }, Standing::AT_EPOCH_END);
  KJ_IF_MAYBE(end, found) return kj::mv(*end);
  auto resume = kj::str("Continue it with `--resume ", numbersOf(run), "`");
  // newestCheckpoint() has printed the reasons above.
  KJ_IF_MAYBE(other, newestCheckpoint(run.folder, digest, [](kj::String) {})) {
    refuse(run, wanted,
        kj::str(
            "that is possible only at the end of an epoch, and its newest checkpoint is of step ",
            other->point.step, ", in the middle of epoch ", other->point.epoch),
        kj::str("Train another epoch with `--resume ", numbersOf(run),
            "` and checkpoint.every_s > 0, so that its end is saved"));
  }
  refuse(run, wanted, "it has no checkpoint", resume);
}

}  // namespace

bool ResumedRun::hasNumbersOf(const Experiment& experiment) const {
  auto& cluster = experiment.cluster;
  return record.workers == cluster.workers && record.servers == cluster.servers;
}

kj::Maybe<ResumedRun> newestRunOf(const LoadedExperiment& loaded, kj::StringPtr runs) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  auto parent = kj::str(runs, "/", experiment.name);
  if (::access(parent.cStr(), F_OK) != 0 && errno == ENOENT) return nullptr;
  auto names = KJ_MAP(folder, foldersAndLinksIn(parent)) {
    return kj::mv(folder.name);
  };
  // The runs of sweeps have names. They count as older than all runs that have numbers, because a
  // sweep continues its runs itself.
  std::stable_partition(names.begin(), names.end(), [](kj::StringPtr name) {
    return !std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  });
  kj::Maybe<ResumedRun> unbegun, other;
  kj::HashSet<kj::String> continued;  // runs that an unfinished run continues
  for (size_t i = names.size(); i-- > 0;) {
    RunFolder folder{kj::str(parent, "/", names[i])};
    if (lastLineOf(folder.events()).size() == 0) {
      if (!isOf(loaded, folder)) continue;
      ResumedRun run{kj::mv(folder), {}};
      // Whoever takes its lock says which process works there.
      if (isHeld(run.folder)) return kj::mv(run);
      if (unbegun == nullptr) unbegun = kj::mv(run);
      continue;
    }
    auto record = readRecordToResume(folder.path);
    if (record.digest.size() == 0) {
      // A run that failed before it had begun has nothing to continue.
      if (beginsWithEvent(folder)) continue;
      tell(kj::str("the run in ", folder.path, " is not used: ", folder.events(),
          " does not begin with an event of a run"));
      continue;
    }
    ResumedRun run{kj::mv(folder), kj::mv(record)};
    bool isSame = run.record.digest == loaded.digest;
    if (!isSame) run.written = relatedIn(run.folder, run.record, loaded);
    if (!isSame && run.written == nullptr) continue;
    bool isUnfinished = run.record.state != RunRecord::FINISHED;
    if (isUnfinished) {
      for (auto& resize: run.record.resizes) {
        if (!continued.contains(resize.goesOnFrom)) continued.insert(kj::str(resize.goesOnFrom));
      }
    }
    if (continued.contains(names[i])) continue;
    if (isSame) return kj::mv(run);
    if (run.hasNumbersOf(experiment)) {
      // Only [continued] makes their digests differ.
      if (experiment.continued == nullptr) return kj::mv(run);
    } else if (isUnfinished && other == nullptr) {
      other = kj::mv(run);
    }
  }
  if (other != nullptr) return other;
  return unbegun;
}

RunFolder goOnFrom(const ResumedRun& run, kj::StringPtr runs, const Experiment& wanted,
    kj::FunctionParam<LoadedExperiment&(kj::String setting)> reload) {
  auto& written = KJ_ASSERT_NONNULL(run.written);
  auto& before = KJ_ASSERT_NONNULL(written.experiment);
  if (isHeld(run.folder)) {
    refuse(run, wanted, kj::str(holderOf(run.folder), " works on it"),
        kj::str("End it with `runner stop ", run.folder.path, "`"));
  }
  if (hasChangedMembers(run.folder)) {
    refuse(run, wanted, "workers have left or joined it",
        kj::str("Continue it with `--resume ", numbersOf(run), "`"));
  }
  auto checkpoint = endOfEpochIn(run, wanted);
  ModelFacts facts(before);
  auto continued = continuedAt(before, facts, checkpoint.point);
  auto& loaded = reload(continued.setting());
  keepInstructionSet(loaded, run.record);
  auto folder = newRunFolder(runs, before.name);
  KJ_ON_SCOPE_FAILURE(removeNewRun(folder));
  auto resize = carryOver(written, run.folder, checkpoint, loaded, folder);
  tell(kj::str("run ", folder.path, " continues from ", run.folder.path, " after epoch ",
      resize.epoch, ", with ", numbersText(resize), factsText(resize)));
  return folder;
}

void keepInstructionSet(LoadedExperiment& loaded, const RunRecord& record) {
  kj::StringPtr setting = KJ_ASSERT_NONNULL(loaded.experiment).cluster.instructionSet;
  if (record.instructionSet.size() == 0 || record.instructionSet == setting) return;
  if (setting == AUTO_INSTRUCTION_SET) {
    loaded.resolved = withInstructionSet(loaded.resolved, record.instructionSet);
    return;
  }
  // A run without a checkpoint begins again, and may then compute with other instructions. The
  // coordinator reports damaged checkpoints.
  RunFolder folder{kj::str(record.folder)};
  KJ_IF_MAYBE(found, newestCheckpoint(folder, record.digest.asPtr(), [](kj::String) {})) {
    requireSameInstructionSet(setting, found->point.instructionSet, folder.path);
  }
}

bool repeatsMembers(const RunFolder& folder) {
  bool isNoted = false;
  KJ_IF_MAYBE(last, lastHolderOf(folder)) isNoted = last->repeatsMembers;
  if (!isNoted || ::access(folder.events().cStr(), F_OK) != 0) return false;
  bool hasBegun = true;
  auto read = [&]() { hasBegun = readRecordToResume(folder.path).digest.size() > 0; };
  // Whoever continues the run reads the events once more, and says why they cannot be read.
  kj::runCatchingExceptions(read);
  return hasBegun;
}

void refuseWithoutMembership(const RunFolder& folder) {
  configs::fail("the run in ", folder.path, " repeats the losses and joins of workers of another ",
      "run. Name that run again with --membership RUN");
}

}  // namespace runner
