// tests/faults/resumable_run.h: runs that are killed and resumed, and the results in which they
// must equal an undisturbed run.
#pragma once

#include "tests/run.h"

namespace tests {

constexpr kj::StringPtr RESUMABLE = "tests/faults/resumable.toml"_kj;

// The runs of one experiment, each the first one below a folder of its own.
class ResumableRun {
public:
  // `settings` are arguments of `--set`, such as `train.seed=2`. They and the path of the program
  // must outlive this object.
  explicit ResumableRun(kj::ArrayPtr<const kj::StringPtr> settings, kj::StringPtr program = RUNNER);

  // Starts `runner run` with `words`, such as --resume.
  kj::Own<Command> start(kj::ArrayPtr<const kj::StringPtr> words = nullptr) const;
  // Does the same, and waits for the end. Throws if the exit code is not 0.
  Trained train(kj::ArrayPtr<const kj::StringPtr> words = nullptr) const;
  // `runner run --resume`, to the end.
  Trained resume() const { return train({"--resume"}); }

  // Starts with `words`, and kills the launcher once events.jsonl has `part` `count` times. Returns
  // when no role of the run is left. Returns false if the run has finished before.
  bool killAfter(kj::StringPtr part, uint count, kj::ArrayPtr<const kj::StringPtr> words = nullptr);

  // The same for a run that has just begun. On a busy machine, the run may end before it is killed;
  // then it begins again.
  void trainUntil(
      kj::StringPtr part, uint count, kj::ArrayPtr<const kj::StringPtr> words = nullptr);

  // Returns the path of its newest checkpoint. Throws if it has none.
  kj::String newestCheckpoint() const;

  const kj::String runs;    // --runs
  const kj::String folder;  // of its first run
  kj::String read(kj::StringPtr name) const { return readFile(kj::str(folder, "/", name)); }

  // Returns the events of the run without times, role by role, in their order. Leaves out the
  // events that say that the run was saved or continued.
  kj::String events() const;
  // Returns the sorted lines of log.txt, without figures of speed and time.
  kj::String log() const;
  // Returns the output of `runner table`, without columns of times.
  kj::String table() const;

private:
  kj::Array<kj::StringPtr> settings;
  kj::StringPtr program;
};

// The mark of the event of a checkpoint in events.jsonl.
constexpr kj::StringPtr SAVED = "\"saved\":{"_kj;

}  // namespace tests
