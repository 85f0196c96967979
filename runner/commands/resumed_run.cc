#include "runner/commands/resumed_run.h"

#include <kj/map.h>

#include "configs/language/failure.h"
#include "runner/checkpoints/checkpoints.h"
#include "runner/experiment/model_facts.h"
#include "runner/roles/carry_over.h"
#include "runner/roles/instruction_set_choice.h"
#include "runner/system/files.h"
#include "runner/system/terminal.h"

namespace runner {

namespace {

// Whether the launcher has written the file of this experiment to the folder.
bool isOf(const LoadedExperiment& loaded, const RunFolder& folder) {
  constexpr uint64_t BYTES_MAX = 1 << 24;
  kj::String text;
  auto read = [&]() { text = readRegular(folder.experiment(), BYTES_MAX); };
  return kj::runCatchingExceptions(read) == nullptr && text == loaded.resolved;
}

// Returns the experiment in the folder of a run, if that run may go on as `loaded`.
kj::Maybe<LoadedExperiment> kinIn(
    const RunFolder& folder, const RunRecord& record, const LoadedExperiment& loaded) {
  kj::Maybe<LoadedExperiment> result;
  // A folder without the file, or with that of another version, has another experiment.
  kj::runCatchingExceptions([&]() {
    auto written = loadExperiment(folder.experiment(), nullptr);
    if (written.experiment == nullptr || !areKin(written, loaded)) return;
    addRecords(written);
    if (written.digest == record.digest) result = kj::mv(written);
  });
  return result;
}

[[noreturn]] void refuse(
    const ResumedRun& run, const Experiment& wanted, kj::StringPtr why, kj::StringPtr wayOut) {
  configs::fail("the run in ", run.folder.path, " has ",
      KJ_ASSERT_NONNULL(KJ_ASSERT_NONNULL(run.written).experiment).cluster.roles(),
      ", and cannot go on with ", wanted.cluster.roles(), ": ", why, ". ", wayOut,
      ", or leave --resume out to begin a new run");
}

// Returns the settings that the run in `folder` has, for a command.
kj::String numbersOf(const ResumedRun& run) {
  return kj::str("--set cluster.workers=", run.record.workers,
      run.record.servers > 0 ? kj::str(" --set cluster.servers=", run.record.servers) : kj::str());
}

// Returns the newest checkpoint at the end of an epoch. Throws if there is none.
FoundCheckpoint endOfEpochIn(const ResumedRun& run, const Experiment& wanted) {
  auto digest = run.record.digest.asPtr();
  auto found = newestCheckpoint(
      run.folder, digest, [](kj::String why) { tell(why); }, true);
  KJ_IF_MAYBE(end, found) return kj::mv(*end);
  auto resume = kj::str("Go on with `--resume ", numbersOf(run), "`");
  KJ_IF_MAYBE(other, newestCheckpoint(run.folder, digest, [](kj::String) {})) {
    refuse(run, wanted,
        kj::str(
            "that is possible only at the end of an epoch, and its newest checkpoint is of step ",
            other->point.step, ", in the middle of epoch ", other->point.epoch),
        kj::str(resume,
            " until an epoch has ended and was saved (checkpoint.every_s, or "
            "checkpoint.every_steps "
            "= the steps of an epoch)"));
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
  if (!isFolder(parent)) return nullptr;
  auto names = foldersIn(parent);
  kj::Maybe<ResumedRun> unbegun, other;
  kj::HashSet<kj::String> leftBehind;  // unfinished runs go on from these
  for (size_t i = names.size(); i-- > 0;) {
    RunFolder folder{kj::str(parent, "/", names[i])};
    if (lastLineOf(folder.events()).size() == 0) {
      bool isFree = unbegun == nullptr && isOf(loaded, folder) && !isHeld(folder);
      if (isFree) unbegun = ResumedRun{kj::mv(folder), {}};
      continue;
    }
    auto record = readRunRecord(folder.path);
    bool isLeft = leftBehind.contains(names[i]);
    if (record.digest == loaded.digest) {
      if (!isLeft) return ResumedRun{kj::mv(folder), kj::mv(record)};
    } else {
      KJ_IF_MAYBE(written, kinIn(folder, record, loaded)) {
        ResumedRun run{kj::mv(folder), kj::mv(record), kj::mv(*written)};
        if (run.hasNumbersOf(experiment)) {
          // Of two experiments with the same numbers, only one has gone on from others.
          if (!isLeft && experiment.continued == nullptr) return kj::mv(run);
          continue;
        }
        if (run.record.state == RunRecord::FINISHED) continue;
        if (run.record.resizes.size() > 0) {
          auto& from = run.record.resizes.back().goesOnFrom;
          if (!leftBehind.contains(from)) leftBehind.insert(kj::str(from));
        }
        if (!isLeft && other == nullptr) other = kj::mv(run);
      }
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
    refuse(run, wanted, "workers of it were lost or have joined",
        kj::str("Go on with `--resume ", numbersOf(run), "`"));
  }
  auto checkpoint = endOfEpochIn(run, wanted);
  ModelFacts facts(before);
  auto continued = continuedAt(before, facts, checkpoint.point);
  auto& loaded = reload(continued.setting());
  keepInstructionSet(loaded, run.record);
  auto folder = newRunFolder(runs, before.name);
  auto resize = carryOver(written, run.folder, checkpoint, loaded, folder);
  tell(kj::str("run ", folder.path, " goes on from ", run.folder.path, " after epoch ",
      resize.epoch, ", with ", numbersText(resize),
      resize.facts.size() == 0 ? kj::str() : kj::str(": ", kj::strArray(resize.facts, "; "))));
  return folder;
}

void keepInstructionSet(LoadedExperiment& loaded, const RunRecord& record) {
  auto& cluster = KJ_ASSERT_NONNULL(loaded.experiment).cluster;
  if (cluster.instructionSet != AUTO_INSTRUCTION_SET || record.instructionSet.size() == 0) return;
  loaded.resolved = withInstructionSet(loaded.resolved, record.instructionSet);
}

}  // namespace runner
