// runner/roles/instruction_set_choice.h: chooses the instructions that all workers of a job compute
// with. The bits of the weights depend on them.
#pragma once

#include <kj/async.h>
#include <kj/string.h>

namespace runner {

// The coordinator's choice, which depends on cluster.instruction_set and on the levels of the
// workers' hosts. Levels are those of nn/cpu/instruction_set.h.
class InstructionSetChoice {
public:
  // `setting` is "auto" or a level. With "auto", the level is not above `highest`. `workers` is how
  // many workers call offer(): 0 if all workers run on this machine. `before` is the level of the
  // checkpoint from which the run continues. That level is then chosen again. `before` is empty if
  // the run begins.
  InstructionSetChoice(kj::StringPtr setting, kj::StringPtr highest, kj::uint workers,
      kj::StringPtr before = nullptr);
  KJ_DISALLOW_COPY(InstructionSetChoice);

  // Takes `level`, the highest level that the host of `worker` has. Call it once per worker.
  // `worker` is the name in messages. Throws, with a sentence for the user, if the host cannot
  // compute with a level that is already known.
  void offer(kj::StringPtr worker, kj::StringPtr level);
  // Returns the level, or null while it is not known.
  kj::Maybe<kj::StringPtr> level() const;
  // Resolves when the level is known.
  kj::Promise<void> whenKnown() { return known.addBranch(); }

private:
  const bool isOfCheckpoint;
  const bool isNamed;  // by the file or by a checkpoint
  kj::String chosen;   // the lowest level so far
  kj::uint missing;    // offers
  kj::PromiseFulfillerPair<void> complete;
  kj::ForkedPromise<void> known;
};

// Throws, and says what to do, unless a run that has computed with `before` until its checkpoint
// may continue with `setting`, the value of cluster.instruction_set. `folder` is that of the run.
// If `before` is empty, the level is not known.
void requireSameInstructionSet(kj::StringPtr setting, kj::StringPtr before, kj::StringPtr folder);

// Returns the text of the resolved experiment `resolved` with `level` in place of "auto". If the
// precision is "auto", adds a comment with the precision that it stands for on this level. The
// value stays, because an experiment with another precision is another experiment. If `level` is
// "auto" itself, changes nothing.
kj::String withInstructionSet(kj::StringPtr resolved, kj::StringPtr level);

}  // namespace runner
