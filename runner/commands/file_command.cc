#include "runner/commands/file_command.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/system/reason.h"
#include "runner/system/terminal.h"

namespace runner {

void FileCommand::addFileAndOverrides(kj::MainBuilder& builder) {
  builder.addOptionWithArg({"set"}, KJ_BIND_METHOD(*this, addOverride), "KEY=VALUE",
      "override a value of the file, e.g. --set train.epochs=2; may be repeated");
  builder.expectArg("FILE", [this](kj::StringPtr word) {
    file = kj::str(word);
    return true;
  });
}

void FileCommand::addFileAndSettings(kj::MainBuilder& builder) {
  builder.addOptionWithArg({"sweep"}, KJ_BIND_METHOD(*this, addSweep), "KEY=V1,V2",
      "make one run for each of these values, e.g. --sweep data.batch_size=64,128. The value may "
      "also be a range as in [sweep]. Replaces the values that the file's grid has for the key. "
      "With several --sweep, there is a run for every combination");
  addFileAndOverrides(builder);
}

LoadedExperiment FileCommand::load() {
  checkFile();
  LoadedExperiment loaded;
  commandLine.orWrongInput(
      [&]() { loaded = loadExperiment(file, overrides, terminalColumns(STDERR_FILENO)); });
  if (loaded.experiment == nullptr) commandLine.exitError(loaded.errors);
  return loaded;
}

LoadedRuns FileCommand::loadAll() {
  checkFile();
  LoadedRuns all;
  commandLine.orWrongInput(
      [&]() { all = loadRuns(file, overrides, sweeps, terminalColumns(STDERR_FILENO)); });
  if (all.errors.size() > 0) commandLine.exitError(all.errors);
  return all;
}

LoadedData FileCommand::loadOnlyData() {
  checkFile();
  LoadedData loaded;
  commandLine.orWrongInput([&]() { loaded = loadData(file, terminalColumns(STDERR_FILENO)); });
  if (loaded.config == nullptr) commandLine.exitError(loaded.errors);
  return loaded;
}

void FileCommand::checkFile() {
  char folder[PATH_MAX];
  if (::getcwd(folder, sizeof(folder)) == nullptr && errno == ENOENT) {
    commandLine.exitError(
        "error: the current folder was removed: change to one that exists (`cd`)");
  }
  struct stat about;
  if (::access(file.cStr(), R_OK) != 0 || ::stat(file.cStr(), &about) != 0) {
    commandLine.exitError(kj::str("error: cannot read ", file, ": ", strerror(errno)));
  }
  if (!S_ISREG(about.st_mode)) {
    commandLine.exitError(kj::str("error: ", file,
        S_ISDIR(about.st_mode) ? " is a directory" : " is not a regular file",
        "; give the path of a .toml file"));
  }
}

Validity FileCommand::addOverride(kj::StringPtr word) {
  if (word.findFirst('=') == nullptr) return kj::str("write --set KEY=VALUE");
  overrides.add(word);
  return true;
}

Validity FileCommand::addSweep(kj::StringPtr word) {
  if (word.findFirst('=') == nullptr) return kj::str("write --sweep KEY=V1,V2");
  auto key = configs::keyOf(word);
  for (auto other: sweeps) {
    if (configs::keyOf(other) != key) continue;
    return kj::str("--sweep names ", key, " twice: write all its values in one --sweep");
  }
  sweeps.add(word);
  return true;
}

}  // namespace runner
