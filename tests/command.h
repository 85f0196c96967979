// tests/command.h: a real program as a child process: its words, surroundings, streams and end.
#pragma once

#include <kj/array.h>
#include <kj/function.h>
#include <kj/io.h>
#include <kj/string.h>
#include <kj/vector.h>
#include <sys/types.h>

namespace tests {

using kj::uint;

// How long a test waits for what must come: a hang fails then. Nothing here takes a tenth of it.
constexpr uint PATIENCE_S = 120;

// How a program ended, and all that it wrote.
struct Ended {
  int exitCode = -1;  // -1: a signal killed it
  int signal = 0;     // 0: it exited
  kj::String output;
  kj::String errors;
};

// One program, from its start to its end, in a process group of its own. For one thread; the
// process may have no other child that it waits for.
class Command {
public:
  struct Surroundings {
    kj::StringPtr folder = nullptr;                           // where it works; empty: here
    kj::ArrayPtr<const kj::StringPtr> environment = nullptr;  // `NAME=value`, over this process's
  };

  // Starts `words[0]`, looked up on the path if it has no slash, with the others as its arguments.
  // Standard input is empty. A program that cannot be started ends with exit code 127.
  explicit Command(kj::ArrayPtr<const kj::StringPtr> words);
  Command(kj::ArrayPtr<const kj::StringPtr> words, const Surroundings& surroundings);
  // Kills its group if it still runs.
  ~Command() noexcept(false);
  KJ_DISALLOW_COPY(Command);

  // Of the program, and of its group.
  pid_t pid() const { return child; }

  // Sends `signal` to the program; to its whole group, as a terminal does for Ctrl-C.
  void kill(int signal);
  void killGroup(int signal);

  // Waits until the output so far holds `part`. False if it ends, or `seconds` pass, before.
  bool waitForOutput(kj::StringPtr part, uint seconds = PATIENCE_S);
  // The same of what it writes to standard error.
  bool waitForErrors(kj::StringPtr part, uint seconds = PATIENCE_S);
  // What it wrote so far.
  kj::String output() const { return kj::heapString(outputText); }
  kj::String errors() const { return kj::heapString(errorText); }

  // Waits for its end. Throws, with what it wrote, if that does not come within `seconds`.
  Ended wait(uint seconds = PATIENCE_S);

private:
  bool readUntil(uint seconds, kj::FunctionParam<bool()> enough);
  void reap();

  pid_t child = 0;
  kj::AutoCloseFd endFd;  // can be read when the program has ended
  kj::AutoCloseFd outputFd;
  kj::AutoCloseFd errorFd;
  kj::Vector<char> outputText;
  kj::Vector<char> errorText;
  kj::Maybe<int> status;  // of waitpid()
};

// A process of this machine.
struct Process {
  pid_t pid;
  kj::String commandLine;  // words, each followed by a space
};

// All that run now and have `part` in their command line.
kj::Array<Process> processesWith(kj::StringPtr part);

// Waits until none of `processes` runs. False if `seconds` pass before.
bool haveEnded(kj::ArrayPtr<const Process> processes, uint seconds);

// A new empty folder, absolute, that goes when the test program's folder does.
kj::String newFolder();

// The whole file at `path`. Throws if there is none.
kj::String readFile(kj::StringPtr path);
void writeFile(kj::StringPtr path, kj::StringPtr text);

}  // namespace tests
