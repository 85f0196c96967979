// runner/commands/file_command.h: the common part of commands that take an experiment file.
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
  // The command line must outlive this object.
  explicit FileCommand(CommandLine& commandLine): commandLine(commandLine) {}
  KJ_DISALLOW_COPY(FileCommand);

protected:
  CommandLine& commandLine;

  // Adds the option --set and the argument FILE to `builder`. addFileAndSettings() also adds the
  // option --sweep.
  void addFileAndOverrides(kj::MainBuilder& builder);
  void addFileAndSettings(kj::MainBuilder& builder);

  // Sets the path of FILE, for a command whose argument may be something else.
  void setFile(kj::StringPtr word) { file = kj::str(word); }

  // The path of FILE, after the arguments are parsed.
  kj::StringPtr path() const { return file; }
  // Returns the file of one run, without errors. If it has errors, prints them and ends the
  // program.
  LoadedExperiment load();
  // Returns the file with all its runs, without errors. If it has errors, prints them and ends the
  // program.
  LoadedRuns loadAll();
  // Returns [data] of the file, without errors. If it has errors, prints them and ends the program.
  // The rest of the file may be wrong.
  LoadedData loadOnlyData();
  // Overrides one more value of the file, as --set does. `word` must outlive this object.
  Validity addOverride(kj::StringPtr word);

private:
  void checkFile();
  Validity addSweep(kj::StringPtr word);

  kj::String file;
  kj::Vector<kj::StringPtr> overrides;
  kj::Vector<kj::StringPtr> sweeps;
};

}  // namespace runner
