// tools/bench/command.h: the common part of benches that take an experiment file.
#pragma once

#include <kj/main.h>
#include <kj/vector.h>

#include "runner/experiment/experiment.h"
#include "runner/system/command_line.h"

namespace tools {

using kj::uint;

// A sub-command with the arguments `CONFIG --set KEY=VALUE… --steps N`.
class ExperimentCommand {
public:
  // The command line must outlive this object.
  ExperimentCommand(runner::CommandLine& commandLine, uint steps)
      : commandLine(commandLine), steps(steps) {}

protected:
  runner::CommandLine& commandLine;
  uint steps;

  // Adds these arguments. `stepsDoc` is the help of --steps.
  void addArguments(kj::MainBuilder& builder, kj::StringPtr stepsDoc);
  // Reads and checks the file. If it has errors, prints all of them and ends the process.
  runner::LoadedExperiment load();
  const kj::String& path() const { return file; }
  // The arguments of --set.
  kj::ArrayPtr<const kj::StringPtr> settings() const { return overrides; }

private:
  kj::String file;
  kj::Vector<kj::StringPtr> overrides;
};

// Returns a function that takes the argument of an option: an integer from 1 to a million. `to`
// must outlive it.
kj::Function<kj::MainBuilder::Validity(kj::StringPtr)> numberSetter(uint& to);

// Returns the parts of `a,b,c`.
kj::Vector<kj::String> splitAtCommas(kj::StringPtr words);

// Returns an integer from `least` to `most`. Null if the word is not such a number.
kj::Maybe<uint64_t> numberOf(kj::StringPtr word, uint64_t least, uint64_t most);

// Returns a number above 0 and at most `most`, for example of seconds. Null if the word is not such
// a number.
kj::Maybe<double> amountOf(kj::StringPtr word, double most);

}  // namespace tools
