#include "runner/roles/instruction_set_choice.h"

#include <string.h>

#include "configs/language/failure.h"
#include "nn/cpu/instruction_set.h"
#include "runner/experiment/cluster.h"

namespace runner {

InstructionSetChoice::InstructionSetChoice(kj::StringPtr setting, uint workers)
    : missing(setting == AUTO_INSTRUCTION_SET ? workers : 0),
      isNamed(setting != AUTO_INSTRUCTION_SET),
      complete(kj::newPromiseAndFulfiller<void>()),
      known(complete.promise.fork()) {
  if (isNamed) chosen = kj::str(setting);
  if (!isNamed && workers == 0) chosen = kj::str(nn::offeredInstructionSet());
  if (missing == 0) complete.fulfiller->fulfill();
}

void InstructionSetChoice::offer(kj::StringPtr worker, kj::StringPtr level) {
  if (missing == 0) {
    if (!isNamed || nn::canCompute(level, chosen)) return;
    configs::fail(worker, " has only ", level, ", and the file has cluster.instruction_set = \"",
        chosen, "\". Run this worker on another host, or choose \"", level, "\" or \"",
        AUTO_INSTRUCTION_SET, "\" for all roles");
  }
  chosen = kj::str(chosen.size() == 0 ? level : nn::lowerLevel(level, chosen));
  if (--missing == 0) complete.fulfiller->fulfill();
}

kj::Maybe<kj::StringPtr> InstructionSetChoice::level() const {
  if (missing > 0) return nullptr;
  return chosen.asPtr();
}

kj::String withInstructionSet(kj::StringPtr resolved, kj::StringPtr level) {
  auto line = kj::str("\ninstruction_set = \"", AUTO_INSTRUCTION_SET, "\"\n");
  auto found = ::strstr(resolved.cStr(), line.cStr());
  if (found == nullptr) return kj::str(resolved);
  return kj::str(resolved.slice(0, found - resolved.begin()), "\ninstruction_set = \"", level,
      "\"\n", resolved.slice(found - resolved.begin() + line.size()));
}

}  // namespace runner
