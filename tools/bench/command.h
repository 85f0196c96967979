// tools/bench/command.h: the common parts of sub-commands: their options and their lifetime.
#pragma once

#include <kj/main.h>
#include <kj/vector.h>

#include "runner/commands/option_values.h"
#include "runner/experiment/experiment.h"
#include "runner/system/command_line.h"

namespace tools {

using kj::uint;
using Validity = kj::MainBuilder::Validity;

// Returns the sub-command that `Bench::getMain()` builds. `commandLine` must outlive it.
template <typename Bench>
kj::MainFunc mainOf(runner::CommandLine& commandLine) {
  auto bench = kj::heap<Bench>(commandLine);
  auto main = bench->getMain();
  return [bench = kj::mv(bench), main = kj::mv(main)](kj::StringPtr program,
             kj::ArrayPtr<const kj::StringPtr> words) mutable { main(program, words); };
}

// Each of these functions returns a function for kj::MainBuilder that sets `to`. `to` must outlive
// it.
using TakesWord = kj::Function<Validity(kj::StringPtr)>;
// Takes an integer from 1 to a million.
TakesWord numberSetter(uint& to);
// Takes a number above 0 and at most `most`. `what` names it in messages: "seconds".
TakesWord amountSetter(double& to, double most, kj::StringPtr what);
// Takes any word that is not empty.
TakesWord wordSetter(kj::StringPtr& to);
// Takes one of two words. `yes` stands for true.
TakesWord choiceSetter(bool& to, kj::StringPtr yes, kj::StringPtr no);
// For an option without an argument: sets a flag.
using runner::flagSetter;

// A sub-command with the arguments `CONFIG --set KEY=VALUE… --steps N`, or without --steps.
class ExperimentCommand {
public:
  // The command line must outlive this object.
  ExperimentCommand(runner::CommandLine& commandLine, uint steps)
      : commandLine(commandLine), steps(steps) {}

protected:
  runner::CommandLine& commandLine;
  uint steps;

  // Adds these arguments. `stepsDoc` is the help of --steps. Null: there is no such option.
  void addArguments(kj::MainBuilder& builder, kj::StringPtr stepsDoc);
  // Reads and checks the file. If it has errors, prints all of them and ends the process.
  runner::LoadedExperiment load();
  kj::StringPtr path() const { return file; }
  // The arguments of --set.
  kj::ArrayPtr<const kj::StringPtr> settings() const { return overrides; }

private:
  kj::StringPtr file;
  kj::Vector<kj::StringPtr> overrides;
};

// Returns an integer from `least` to `most`. Null if the word is not such a number.
kj::Maybe<uint64_t> numberOf(kj::StringPtr word, uint64_t least, uint64_t most);

}  // namespace tools
