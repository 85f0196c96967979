#include "runner/roles/instruction_set_choice.h"

#include <string.h>

#include "configs/language/failure.h"
#include "nn/cpu/cpu.h"
#include "nn/cpu/instruction_set.h"
#include "runner/experiment/experiment.h"

namespace runner {

InstructionSetChoice::InstructionSetChoice(
    kj::StringPtr setting, kj::StringPtr highest, uint workers, kj::StringPtr before)
    : isOfCheckpoint(before.size() > 0),
      isNamed(isOfCheckpoint || setting != AUTO_INSTRUCTION_SET),
      chosen(kj::str(isOfCheckpoint ? before : (isNamed ? setting : highest))),
      missing(isNamed ? 0 : workers),
      complete(kj::newPromiseAndFulfiller<void>()),
      known(complete.promise.fork()) {
  if (!isNamed && workers == 0) {
    chosen = kj::str(nn::lowerLevel(nn::offeredInstructionSet(), chosen));
  }
  if (missing == 0) complete.fulfiller->fulfill();
}

void InstructionSetChoice::offer(kj::StringPtr worker, kj::StringPtr level) {
  if (missing == 0) {
    if (nn::canCompute(level, chosen)) return;
    if (!isNamed || isOfCheckpoint) {
      configs::fail(worker, " has only ", level, ", but the run has computed with ", chosen,
          " so far. Run this worker on a host that can compute with ", chosen);
    }
    configs::fail(worker, " has only ", level, ", and the file has cluster.instruction_set = \"",
        chosen, "\". Run this worker on another host, or choose \"", level, "\" or \"",
        AUTO_INSTRUCTION_SET, "\" for all roles");
  }
  chosen = kj::str(nn::lowerLevel(level, chosen));
  if (--missing == 0) complete.fulfiller->fulfill();
}

kj::Maybe<kj::StringPtr> InstructionSetChoice::level() const {
  if (missing > 0) return nullptr;
  return chosen.asPtr();
}

void requireSameInstructionSet(kj::StringPtr setting, kj::StringPtr before, kj::StringPtr folder) {
  if (before.size() == 0 || setting == AUTO_INSTRUCTION_SET || setting == before) return;
  configs::fail("the run in ", folder, " has computed with ", before,
      " so far, and cannot continue ", "with cluster.instruction_set = \"", setting,
      "\", because the bits of the weights depend on it. Choose \"", before, "\" or \"",
      AUTO_INSTRUCTION_SET, "\", or begin a new run without --resume");
}

namespace {

// The text with `value` as the value of `key`, if that is "auto".
kj::String replaced(kj::StringPtr text, kj::StringPtr key, kj::StringPtr value) {
  auto line = kj::str("\n", key, " = \"auto\"\n");
  auto found = ::strstr(text.cStr(), line.cStr());
  if (found == nullptr) return kj::str(text);
  size_t begin = found - text.begin();
  return kj::str(
      text.slice(0, begin), "\n", key, " = ", value, "\n", text.slice(begin + line.size()));
}

}  // namespace

kj::String withInstructionSet(kj::StringPtr resolved, kj::StringPtr level) {
  if (level == AUTO_INSTRUCTION_SET) return kj::str(resolved);
  auto withLevel = replaced(resolved, "instruction_set", kj::str('"', level, '"'));
  auto precision = wordOf(nn::automaticPrecision(level));
  return replaced(withLevel, "precision", kj::str("\"auto\"  # ", precision, " with ", level));
}

}  // namespace runner
