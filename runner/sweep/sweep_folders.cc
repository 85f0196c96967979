#include "runner/sweep/sweep_folders.h"

#include <errno.h>
#include <kj/debug.h>
#include <unistd.h>

#include "configs/language/warning.h"
#include "runner/checkpoints/weights.h"
#include "runner/logs/events.h"
#include "runner/roles/instruction_set_choice.h"
#include "runner/system/files.h"
#include "runner/system/reason.h"
#include "runner/tables/run_tables.h"
#include "runner/text/numbers.h"

namespace runner {

kj::String SweepFolders::parent() const {
  return kj::str(runs, "/", experimentOf(0).name);
}

const Experiment& SweepFolders::experimentOf(size_t index) const {
  return KJ_ASSERT_NONNULL(all.runs[index].loaded.experiment);
}

RunFolder SweepFolders::folderOf(size_t index) const {
  return runFolder(runs, experimentOf(index).name, all.runs[index].name);
}

kj::String SweepFolders::nameOf(size_t index) const {
  auto& run = all.runs[index];
  return kj::str(
      "run ", index + 1, "/", all.runs.size(), " ", runner::nameOf(run.settings, all.shortKeys));
}

kj::Maybe<RunRecord> SweepFolders::recordOf(size_t index) const {
  auto folder = folderOf(index);
  bool isThere = ::access(folder.events().cStr(), F_OK) == 0;
  if (!isThere && (errno == ENOENT || errno == ENOTDIR)) return nullptr;
  auto record = readRecordToResume(folder.path);
  if (record.digest != all.runs[index].loaded.digest) return nullptr;
  return kj::mv(record);
}

kj::Maybe<RunRecord> SweepFolders::endedBefore(size_t index) const {
  auto known = recordOf(index);
  KJ_IF_MAYBE(record, known) {
    auto rule = stopRule();
    bool done = record->state == RunRecord::FINISHED ||
                (record->state == RunRecord::STOPPED && rule.size() > 0 && record->rule == rule);
    if (!done) return nullptr;
  }
  return known;
}

kj::Maybe<RunRecord> SweepFolders::begunBefore(size_t index) const {
  auto known = recordOf(index);
  KJ_IF_MAYBE(record, known) {
    if (record->state == RunRecord::STOPPED) return nullptr;
  }
  return known;
}

kj::Maybe<RunRecord> SweepFolders::prepare(const HeldRunFolder& held, size_t index) const {
  auto begun = begunBefore(index);
  kj::StringPtr level = AUTO_INSTRUCTION_SET;
  KJ_IF_MAYBE(record, begun) {
    if (record->instructionSet.size() > 0) level = record->instructionSet;
  } else {
    bool isUnknown = recordOf(index) == nullptr;
    if (isUnknown) {
      KJ_IF_MAYBE(sentence, setResultsAside(held.folder)) {
        configs::warn(kj::str(nameOf(index), ": ", *sentence));
      }
    }
    held.empty();
  }
  writeWhole(held.folder.experiment(), withInstructionSet(all.runs[index].loaded.resolved, level));
  return begun;
}

kj::Maybe<kj::String> SweepFolders::whyNoWeights(size_t index, const RunRecord& record) const {
  if (record.state != RunRecord::FINISHED) return nullptr;
  return whyNotWeights(folderOf(index).weights(), record.weightsSha256);
}

kj::Maybe<kj::String> SweepFolders::damageOf(size_t index) const {
  RunRecord record;
  auto read = [&]() { record = readRecordToResume(folderOf(index).path); };
  if (kj::runCatchingExceptions(read) != nullptr) return nullptr;
  return damageText(record);
}

kj::Maybe<RunRecord> SweepFolders::doneBefore(size_t index) const {
  auto ended = endedBefore(index);
  KJ_IF_MAYBE(record, ended) {
    bool isMissing = false;
    auto look = [&]() { isMissing = whyNoWeights(index, *record) != nullptr; };
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(look)) {
      configs::warn(kj::str(nameOf(index), " has finished, but its weights cannot be checked: ",
          reasonOf(*e), ". It is not run again"));
    }
    if (isMissing) return nullptr;
  }
  return ended;
}

void SweepFolders::writeOrder() const {
  auto names = KJ_MAP(run, all.runs)->kj::StringPtr {
    return run.name;
  };
  makeFolders(parent());
  writeRunOrder(parent(), names);
}

RunRecord SweepFolders::recordElsewhere(size_t index) const {
  auto folder = folderOf(index);
  RunRecord record;
  // The run may not have written its first event yet.
  auto ignored = kj::runCatchingExceptions([&]() { record = readRunRecord(folder.path); });
  record.folder = kj::str(folder.path);
  record.state = RunRecord::RUNNING;
  record.reason = holderOf(folder);
  return record;
}

kj::String SweepFolders::stopRule() const {
  KJ_IF_MAYBE(config, KJ_ASSERT_NONNULL(all.sweep).stop) return config->print();
  return nullptr;
}

RunRecord SweepFolders::failedRecord(size_t index, kj::String reason) const {
  auto folder = folderOf(index);
  RunRecord record;
  // A run that failed early has no events.
  auto ignored = kj::runCatchingExceptions([&]() { record = readRunRecord(folder.path); });
  record.folder = kj::str(folder.path);
  record.state = RunRecord::FAILED;
  record.reason = kj::mv(reason);
  return record;
}

kj::String SweepFolders::skippedText(size_t index, const RunRecord& record) const {
  return kj::str(nameOf(index), ": skipped, it ",
      record.state == RunRecord::STOPPED ? "was stopped" : "has finished", " before");
}

kj::String SweepFolders::endedText(size_t index, const RunRecord& record) const {
  auto text = kj::str(stateWord(record.state), record.reason.size() > 0 ? ": " : "", record.reason);
  if (record.state == RunRecord::FINISHED && record.epochRecords.size() > 0) {
    KJ_IF_MAYBE(accuracy, record.epochRecords.back().validationAccuracy) {
      text =
          kj::str("accuracy ", figureText(*accuracy, 4), " in ", figureText(record.run_s, 1), " s");
    }
  }
  return kj::str(nameOf(index), ": ", text);
}

}  // namespace runner
