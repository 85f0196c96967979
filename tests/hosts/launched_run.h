// tests/hosts/launched_run.h: `runner run` on one of several hosts, by a launcher that uses them
// all.
#pragma once

#include "tests/hosts/hosts.h"

namespace tests {

// A run that was started on host 0. `hosts` must outlive it.
class LaunchedRun {
public:
  LaunchedRun(const Hosts& hosts, kj::StringPtr file, kj::ArrayPtr<const kj::StringPtr> settings);

  kj::Own<Command> command;
  // Returns the path of the run's folder.
  kj::StringPtr path() const { return folder; }

  // Return the text of a file in the run's folder, and whether the file exists.
  kj::String read(kj::StringPtr name) const { return readFile(kj::str(folder, "/", name)); }
  bool has(kj::StringPtr name) const;

  // Returns the process of `runner run`, or the role that a host started last. Throws if there is
  // none.
  Process launcher() const;
  Process youngestRole(uint host) const;

  // Checks that no process but the hosts' own runs any more on any host, or ends within 5 s.
  void checkNothingRuns() const;

private:
  const Hosts& hosts;
  kj::String folder;
};

}  // namespace tests
