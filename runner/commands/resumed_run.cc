#include "runner/commands/resumed_run.h"

#include <unistd.h>

#include "runner/roles/instruction_set_choice.h"
#include "runner/system/files.h"

namespace runner {

kj::Maybe<ResumedRun> newestRunOf(const LoadedExperiment& loaded, kj::StringPtr runs) {
  auto parent = kj::str(runs, "/", KJ_ASSERT_NONNULL(loaded.experiment).name);
  if (!isFolder(parent)) return nullptr;
  auto names = foldersIn(parent);
  for (size_t i = names.size(); i-- > 0;) {
    RunFolder folder{kj::str(parent, "/", names[i])};
    if (::access(folder.events().cStr(), F_OK) != 0) continue;
    auto record = readRunRecord(folder.path);
    if (record.digest == loaded.digest) return ResumedRun{kj::mv(folder), kj::mv(record)};
  }
  return nullptr;
}

void keepInstructionSet(LoadedExperiment& loaded, const RunRecord& record) {
  auto& cluster = KJ_ASSERT_NONNULL(loaded.experiment).cluster;
  if (cluster.instructionSet != AUTO_INSTRUCTION_SET || record.instructionSet.size() == 0) return;
  loaded.resolved = withInstructionSet(loaded.resolved, record.instructionSet);
}

}  // namespace runner
