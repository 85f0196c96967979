// tests/command.h: runs a real program as a child process, and returns its output and how it ended.
#pragma once

#include <kj/array.h>
#include <kj/function.h>
#include <kj/io.h>
#include <kj/string.h>
#include <kj/vector.h>
#include <sys/types.h>

namespace tests {

using kj::uint;

// How long a test waits for something that must happen. It then fails, so that no test hangs.
// Nothing that a test waits for takes a tenth of this time.
// .bazelrc sets another value (the environment variable of this name) for programs that look for
// data races, which take some ten times as long.
extern const uint PATIENCE_S;

// How a program ended, and all that it wrote.
struct Ended {
  int exitCode = -1;  // -1: a signal killed it
  int signal = 0;     // 0: it exited
  kj::String output;
  kj::String errors;
};

// One program, from its start to its end, in a separate process group. For one thread. The test
// program must not wait for any other child process.
class Command {
public:
  struct Surroundings {
    kj::StringPtr folder = nullptr;  // its current folder; empty: that of this process
    // `NAME=value`: replaces variables of this process, or adds to them.
    kj::ArrayPtr<const kj::StringPtr> environment = nullptr;
  };

  // Starts `words[0]`, looked up on the path if it has no slash, with the others as its arguments.
  // Standard input is empty. A program that cannot be started ends with exit code 127.
  explicit Command(kj::ArrayPtr<const kj::StringPtr> words);
  Command(kj::ArrayPtr<const kj::StringPtr> words, const Surroundings& surroundings);
  // Kills its group if it still runs.
  ~Command() noexcept(false);
  KJ_DISALLOW_COPY(Command);

  // Returns the id of the program's process, which is also that of its group.
  pid_t pid() const { return child; }

  // Send `signal` to the program, or to its whole group, as a terminal does for Ctrl-C.
  void kill(int signal);
  void killGroup(int signal);

  // Waits until the output so far contains `part`. Returns false if the program ends or `seconds`
  // pass before.
  bool waitForOutput(kj::StringPtr part, uint seconds = PATIENCE_S);
  // The same for what it writes to standard error.
  bool waitForErrors(kj::StringPtr part, uint seconds = PATIENCE_S);
  // Return what the program has written so far.
  kj::String output() const { return kj::heapString(outputText); }
  kj::String errors() const { return kj::heapString(errorText); }

  // Whether the program has ended, as far as the calls above have seen.
  bool hasEnded() const { return status != nullptr; }

  // Waits until the program ends. If it does not end within `seconds`, throws with its output.
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

// Returns all running processes that have `part` in their command line.
kj::Array<Process> processesWith(kj::StringPtr part);

// Waits until none of `processes` runs. Returns false if `seconds` pass before.
bool haveEnded(kj::ArrayPtr<const Process> processes, uint seconds);

// Returns the absolute path of a new empty folder. It is removed with the test program's folder.
kj::String newFolder();

// Returns the whole text of the file at `path`. Throws if there is none.
kj::String readFile(kj::StringPtr path);
void writeFile(kj::StringPtr path, kj::StringPtr text);

}  // namespace tests
