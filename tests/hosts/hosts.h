// tests/hosts/hosts.h: several hosts on this machine, for the tests of jobs that use more than one
// host.
#pragma once

#include "tests/run.h"

namespace tests {

// Hosts h1, h2, … on one bridge. Each has its own network (one address per IP version), host name,
// process ids, System V IPC, HOME, /tmp, /dev/shm and /run, and its own monotonic clock if the
// kernel has namespaces for that. All other folders, such as that of newFolder(), are those of this
// machine: they stand for a shared file system. Needs root. The kernel removes all hosts and their
// processes when this object or the test program ends, however it ends.
class Hosts {
public:
  struct Settings {
    // Each host runs sshd. `ssh h2` works on each host, with keys made for this object in ~/.ssh.
    bool hasSshd = false;
    // The last host lacks the shared libraries that `runner` needs and sshd does not.
    bool lastLacksLibraries = false;
  };

  // Returns why this machine cannot have such hosts. Null if it can.
  static kj::Maybe<kj::String> whyNot();
  static kj::Maybe<kj::String> whyNot(const Settings& settings);

  explicit Hosts(uint count);
  Hosts(uint count, const Settings& settings);
  KJ_DISALLOW_COPY(Hosts);

  uint size() const { return count; }

  // The hosts count from 0. The name of host 0 is h1.
  static kj::String name(uint host) { return kj::str("h", host + 1); }
  static kj::String address(uint host) { return kj::str("10.77.0.", host + 1); }
  static kj::String ipv6Address(uint host) { return kj::str("fd77::", host + 1); }

  // Starts a program on a host, in this process's folder, with `environment` as in
  // Command::Surroundings. The program's pid in /proc is not that of the Command. A signal reaches
  // the program by Command::killGroup() only.
  kj::Own<Command> start(uint host, kj::ArrayPtr<const kj::StringPtr> words,
      kj::ArrayPtr<const kj::StringPtr> environment = nullptr) const;
  // Does the same for a line of shell. Waits for its end. Throws unless the exit code is 0. Returns
  // its output.
  kj::String shell(uint host, kj::StringPtr line) const;

  // Gives these variables (`NAME=value`) to all programs that start on a host from now on, by
  // start() or by ssh. They replace those of an earlier call.
  void setVariables(uint host, kj::ArrayPtr<const kj::StringPtr> given);

  // Returns the processes on a host, without those of the host itself (such as sshd). The pids are
  // those of this machine, so kill() and haveEnded() take them. Empty for a crashed host.
  kj::Array<Process> processes(uint host) const;

  // The bridge silently drops all packets to and from a host, until join().
  void cut(uint host) const;
  void join(uint host) const;

  // Ends a host as a power failure does: no process there runs any more, and no other host hears
  // that from the network.
  void crash(uint host);
  // Starts a crashed host again, with its old addresses and keys.
  void reboot(uint host);

private:
  // Its processes live in namespaces that the kernel removes with `init`.
  struct Host {
    kj::Own<Command> init;
    pid_t pid;                  // of process 1 of the host, on this machine
    kj::Array<Process> itsOwn;  // those that ran there when it had started
  };

  kj::Own<Host> boot(uint host) const;
  void connect(uint host, pid_t pid) const;
  // Runs `ip` with the words of `line` in the network of the bridge.
  void onBridge(kj::StringPtr line) const;

  const Settings settings;
  const uint count;
  const kj::String folder;  // the files that the hosts copy when they start
  kj::Own<Command> bridge;
  kj::Vector<kj::Maybe<kj::Own<Host>>> hosts;   // null: crashed
  kj::Array<kj::Vector<kj::String>> variables;  // of each host
};

// Returns which of `programs` is missing here, as the reason to skip a test. Null if all are there.
// A name without a slash is looked up on the path.
kj::Maybe<kj::String> whyNotInstalled(kj::ArrayPtr<const kj::StringPtr> programs);

}  // namespace tests
