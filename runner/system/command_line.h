// runner/system/command_line.h: what the program's commands share with the shell: exit codes and
// streams.
#pragma once

#include <kj/exception.h>
#include <kj/main.h>
#include <kj/vector.h>

namespace runner {

// Exit codes of every program of the project.
enum ExitCode {
  OK = 0,
  RUN_FAILED = 1,
  WRONG_INPUT = 2,    // the command or the file is wrong
  MISSED = 3,         // all ran, but not all that was expected came out
  INTERRUPTED = 130,  // Ctrl-C
};

// A process whose usage errors end with WRONG_INPUT: kj's own context ends with 1. Everything ends
// by _exit: what a program of ours must finish, it finishes itself, and threads of a failed run
// cannot be joined.
class CommandLine final: public kj::ProcessContext {
public:
  explicit CommandLine(kj::StringPtr programName): programName(programName) {}

  // A program that ends well, but has lost what it printed, ends with RUN_FAILED: see print().
  [[noreturn]] void endWith(ExitCode code);

  kj::StringPtr getProgramName() override { return programName; }
  [[noreturn]] void exit() override { endWith(OK); }
  void warning(kj::StringPtr message) override;
  void error(kj::StringPtr message) override;
  [[noreturn]] void exitError(kj::StringPtr message) override;
  [[noreturn]] void exitInfo(kj::StringPtr message) override;
  void increaseLoggingVerbosity() override {}

  // Makes `command` one of those that an unknown first word is compared with: run() names the one
  // that was most likely meant, and all of them.
  void addCommand(kj::StringPtr command) { commands.add(command); }

  // Runs `main` over the arguments of the process; `-h` is `--help`, and a negative number behind
  // an option is its value. An exception is printed as one line, `error: …`, on stderr, and ends
  // with RUN_FAILED, or with `disconnected` if its type is DISCONNECTED; a bug with its trace.
  [[noreturn]] void run(kj::MainFunc main, int argc, char* argv[], int disconnected = RUN_FAILED);
  // Ends the process so, from any thread.
  [[noreturn]] void endWith(const kj::Exception& exception, int disconnected);

private:
  void checkCommand(kj::ArrayPtr<const kj::StringPtr> words);

  kj::StringPtr programName;
  kj::Vector<kj::StringPtr> commands;
};

// Opens /dev/null in place of those standard streams that are closed: files must not get their
// numbers. print() remembers that there was no stdout. Ends the program with RUN_FAILED and one
// sentence if /dev/null cannot be opened.
void openStandardStreams();

// Sets what the runtime of oneDNN's threads reads when it is loaded, before main, and starts the
// program again if that changed anything. Threads are ours to count, and a waiting one must not
// spin: other workers share the cores. The first thing that a main does.
void setThreadEnvironment(char* argv[]);

// Writes all of `text` to stdout; to a terminal with control characters as
// configs::printableLines() shows them. If it cannot be written (a full disk), what follows is
// dropped too, the program does the rest of its work, and CommandLine ends it with RUN_FAILED and
// one sentence. If the reader of a pipe has gone (`runner explain FILE | head`), that is no
// failure. Call it from one thread at a time.
void print(kj::StringPtr text);

// The same for sentences: on a terminal they are wrapped() to its width.
void printWrapped(kj::StringPtr text);

}  // namespace runner
