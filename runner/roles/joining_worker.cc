#include "runner/roles/joining_worker.h"

#include <string.h>

#include "configs/language/failure.h"
#include "nn/chosen_plans.h"
#include "nn/cpu/instruction_set.h"
#include "runner/checkpoints/saved_part.h"
#include "runner/experiment/devices.h"
#include "runner/system/terminal.h"

namespace runner {

namespace {

// Returns the step after which a worker's part was saved.
uint64_t firstStepIn(kj::ArrayPtr<const kj::byte> part) {
  for (auto& tensor: tensorsIn(part)) {
    if (tensor.name != "worker.step" || tensor.values.size() != sizeof(uint64_t)) continue;
    uint64_t step;
    memcpy(&step, tensor.values.begin(), sizeof(step));
    return step;
  }
  configs::fail("a worker's part of the checkpoint has no `worker.step`");
}

}  // namespace

JoiningWorker::JoiningWorker(const LoadedExperiment& loaded, const RoleOptions& options)
    : facts(KJ_ASSERT_NONNULL(loaded.experiment)),
      ioThread(kj::heap<IoThread>(loaded, options, jobMessageLimits(facts), progress)) {}

void JoiningWorker::chooseInstructionSet(const LoadedExperiment& loaded) {
  auto& cluster = KJ_ASSERT_NONNULL(loaded.experiment).cluster;
  bool usesCpu = false;
  for (auto& device: cluster.devices) usesCpu = usesCpu || !isGpu(device);
  if (!usesCpu) return;
  auto& setting = cluster.instructionSet;
  bool isKnown = setting == "avx2" || setting == nn::offeredInstructionSet();
  nn::useInstructionSet(isKnown ? kj::str(setting) : ioThread->instructionSet());
  bool emulates = nn::instructionSet() == "avx512_amx" && !nn::hasAmx();
  if (emulates && highestLevelOf(KJ_ASSERT_NONNULL(loaded.experiment)) == "avx512_amx") {
    tell(
        "warning: this processor has no AMX. It computes the same bits, but takes several times as "
        "long. cluster.instruction_set = \"avx512\" is faster here, but gives other bits");
  }
}

uint64_t JoiningWorker::fetchSaved() {
  enters = ioThread->enters();
  KJ_IF_MAYBE(part, ioThread->savedPart()) {
    saved = kj::mv(*part);
    // The devices have not chosen their instructions yet.
    nn::wantPlans(KJ_MAP(note, notesIn(saved)) {
      return nn::ChosenPlan{kj::mv(note.name), kj::mv(note.text)};
    });
    return firstStepIn(saved);
  }
  return 0;
}

}  // namespace runner
