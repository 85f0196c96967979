#include "runner/commands/resumed_run.h"

#include "runner/roles/instruction_set_choice.h"
#include "runner/system/files.h"

namespace runner {

namespace {

// Whether the launcher has written the file of this experiment to the folder.
bool isOf(const LoadedExperiment& loaded, const RunFolder& folder) {
  constexpr uint64_t BYTES_MAX = 1 << 24;
  kj::String text;
  auto read = [&]() { text = readRegular(folder.experiment(), BYTES_MAX); };
  return kj::runCatchingExceptions(read) == nullptr && text == loaded.resolved;
}

}  // namespace

kj::Maybe<ResumedRun> newestRunOf(const LoadedExperiment& loaded, kj::StringPtr runs) {
  auto parent = kj::str(runs, "/", KJ_ASSERT_NONNULL(loaded.experiment).name);
  if (!isFolder(parent)) return nullptr;
  auto names = foldersIn(parent);
  kj::Maybe<ResumedRun> unbegun;
  for (size_t i = names.size(); i-- > 0;) {
    RunFolder folder{kj::str(parent, "/", names[i])};
    if (lastLineOf(folder.events()).size() == 0) {
      bool isFree = unbegun == nullptr && isOf(loaded, folder) && !isHeld(folder);
      if (isFree) unbegun = ResumedRun{kj::mv(folder), {}};
      continue;
    }
    auto record = readRunRecord(folder.path);
    if (record.digest == loaded.digest) return ResumedRun{kj::mv(folder), kj::mv(record)};
  }
  return unbegun;
}

void keepInstructionSet(LoadedExperiment& loaded, const RunRecord& record) {
  auto& cluster = KJ_ASSERT_NONNULL(loaded.experiment).cluster;
  if (cluster.instructionSet != AUTO_INSTRUCTION_SET || record.instructionSet.size() == 0) return;
  loaded.resolved = withInstructionSet(loaded.resolved, record.instructionSet);
}

}  // namespace runner
