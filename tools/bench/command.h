// tools/bench/command.h: what the benches share that take an experiment file.
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
  // The command line must outlive it.
  ExperimentCommand(runner::CommandLine& commandLine, uint steps)
      : commandLine(commandLine), steps(steps) {}

protected:
  runner::CommandLine& commandLine;
  uint steps;

  // Adds those arguments; `stepsDoc` says what --steps does.
  void addArguments(kj::MainBuilder& builder, kj::StringPtr stepsDoc);
  // Reads and checks the file; ends the process, with all that is wrong, if it cannot be run.
  runner::LoadedExperiment load();
  const kj::String& path() const { return file; }
  // What --set said.
  kj::ArrayPtr<const kj::StringPtr> settings() const { return overrides; }

private:
  kj::String file;
  kj::Vector<kj::StringPtr> overrides;
};

// Takes the argument of an option: a whole number from 1 to a million. `to` must outlive it.
kj::Function<kj::MainBuilder::Validity(kj::StringPtr)> numberSetter(uint& to);

// `a,b,c`: its parts.
kj::Vector<kj::String> splitAtCommas(kj::StringPtr words);

// Whole, from `least` to `most`; null if the word is no such number.
kj::Maybe<uint64_t> numberOf(kj::StringPtr word, uint64_t least, uint64_t most);

// The number of seconds or the like that a word is: above 0 and at most `most`; else null.
kj::Maybe<double> amountOf(kj::StringPtr word, double most);

}  // namespace tools
