// runner/commands/file_command.h: what the commands share that take an experiment file.
#pragma once

#include <kj/main.h>
#include <kj/vector.h>

#include "runner/commands/option_values.h"
#include "runner/experiment/experiment.h"
#include "runner/sweep/loaded_runs.h"
#include "runner/system/command_line.h"

namespace runner {

// A command with the argument FILE.
class FileCommand {
public:
  // The command line must outlive it.
  explicit FileCommand(CommandLine& commandLine): commandLine(commandLine) {}
  KJ_DISALLOW_COPY(FileCommand);

protected:
  CommandLine& commandLine;

  // The argument FILE alone; with what is laid over it: --set and --sweep.
  void addFile(kj::MainBuilder& builder);
  void addFileAndSettings(kj::MainBuilder& builder);

  // The path of FILE, once the words are read.
  kj::StringPtr path() const { return file; }
  // The file of one run, without errors: with errors the program ends here.
  LoadedExperiment load();
  // The file with all its runs, likewise.
  LoadedRuns loadAll();

private:
  void checkFile();
  // Calls `read`. What it throws ends the program: the command is wrong.
  void orEnd(kj::FunctionParam<void()> read);
  Validity addOverride(kj::StringPtr word);
  Validity addSweep(kj::StringPtr word);

  kj::String file;
  kj::Vector<kj::StringPtr> overrides;
  kj::Vector<kj::StringPtr> sweeps;
};

}  // namespace runner
