// tests/hosts/slurm_hosts.h: a separate Slurm for a test.
#pragma once

#include "tests/hosts/hosts.h"

namespace tests {

// A Slurm of four hosts with 8 processors each, and a folder of runs that they share. Its
// controller is on h1. It ends with the hosts.
class Slurm {
public:
  // Returns why this machine cannot have one. Null if it can.
  static kj::Maybe<kj::String> whyNot();

  Slurm();

  // Calls a line of shell on a host. `$1` is the folder of Slurm's files. Returns its output.
  // Throws if its exit code is not 0.
  kj::String call(uint host, kj::StringPtr script) const;

  // Starts a program on a host, with `environment` as in Command::Surroundings.
  kj::Own<Command> start(uint host, kj::ArrayPtr<const kj::StringPtr> words,
      kj::ArrayPtr<const kj::StringPtr> environment = nullptr) const;

  // Settings of 2 servers and 3 workers.
  static constexpr kj::StringPtr ROLES[] = {"cluster.servers=2"_kj, "cluster.workers=3"_kj};

  // Starts `runner run` with launcher slurm in an allocation of all nodes.
  kj::Own<Command> run(
      kj::StringPtr file, kj::ArrayPtr<const kj::StringPtr> settings = ROLES) const;
  // Starts it with 2 servers and 3 workers on h1, outside of any allocation.
  kj::Own<Command> submit(kj::StringPtr file, kj::ArrayPtr<const kj::StringPtr> more = nullptr,
      kj::ArrayPtr<const kj::StringPtr> environment = nullptr) const;

  // Returns a process on a host that has `part` in its command line. Throws if there is none.
  Process find(uint host, kj::StringPtr part) const;

  // Checks that roles end within 5 s on every node.
  void checkNoRoleRuns() const;
  // Checks that no job of that name waits or runs.
  void checkNoJob(kj::StringPtr name) const;

  Hosts hosts;
  const kj::String folder, runs;

private:
  const kj::String setting, cache;
};

}  // namespace tests
