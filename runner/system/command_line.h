// runner/system/command_line.h: how commands use the shell: exit codes and standard streams.
#pragma once

#include <kj/exception.h>
#include <kj/function.h>
#include <kj/main.h>
#include <kj/vector.h>

#include "runner/system/exit_code.h"

namespace runner {

// A process context of kj, which ends with WRONG_INPUT after usage errors. (kj's own context ends
// with 1.) The process always ends by _exit, because threads of a failed run cannot be joined. A
// program must therefore complete its own work before it ends.
class CommandLine final: public kj::ProcessContext {
public:
  explicit CommandLine(kj::StringPtr programName): programName(programName) {}

  // Ends the process with `code`. If output of print() was lost, RUN_FAILED replaces OK and MISSED,
  // unless the only reason is that the reader of a pipe has ended.
  [[noreturn]] void endWith(ExitCode code);

  // Calls `take` with the exit code right before the process ends, unless a signal ends it (see
  // writeAtInterrupt()). `take` may be called from any thread, and must not throw.
  void atEnd(kj::Function<void(int code)> take) { takeCode = kj::mv(take); }

  kj::StringPtr getProgramName() override { return programName; }
  [[noreturn]] void exit() override { endWith(OK); }
  void warning(kj::StringPtr message) override;
  void error(kj::StringPtr message) override;
  [[noreturn]] void exitError(kj::StringPtr message) override;
  [[noreturn]] void exitInfo(kj::StringPtr message) override;
  void increaseLoggingVerbosity() override {}

  // Calls `work`, which uses files or values that the command line names. If it throws, prints the
  // reason as an error and ends the process with WRONG_INPUT.
  void orWrongInput(kj::FunctionParam<void()> work);

  // Adds `command` to the words that run() suggests for an unknown first word.
  void addCommand(kj::StringPtr command) { commands.add(command); }

  // Runs `main` over the arguments of the process. `-h` means `--help`, and a negative number after
  // an option is its value. An exception is printed on stderr as one line, `error: …`. The process
  // then ends with RUN_FAILED, or with `disconnected` if the exception's type is DISCONNECTED. A
  // bug is printed with its stack trace.
  [[noreturn]] void run(kj::MainFunc main, int argc, char* argv[], int disconnected = RUN_FAILED);
  // Prints the exception as run() does, and ends the process with `code`. Can be called from any
  // thread.
  [[noreturn]] void endWith(const kj::Exception& exception, int code);

private:
  [[noreturn]] void end(int code);
  void checkCommand(kj::ArrayPtr<const kj::StringPtr> words);

  kj::StringPtr programName;
  kj::Maybe<kj::Function<void(int code)>> takeCode;
  kj::Vector<kj::StringPtr> commands;
};

// Opens /dev/null for those standard streams that are closed, so that no file gets their numbers.
// print() remembers that there was no stdout. Ends the program with RUN_FAILED and one sentence if
// /dev/null cannot be opened.
void openStandardStreams();

// Sets environment variables that oneDNN's threading runtime reads when it is loaded, before main.
// Starts the program again if that changed anything. The program chooses its number of threads
// itself, and a waiting thread must not spin because other workers share the cores. Call this first
// in main.
void setThreadEnvironment(char* argv[]);

// Writes all of `text` to stdout. On a terminal, control characters are shown as
// configs::printableLines() shows them. If a write fails (a full disk), all later output is
// dropped, but the program completes its work. CommandLine then ends it with RUN_FAILED and one
// sentence. A pipe whose reader has ended (`runner explain FILE | head`) is not a failure. Call it
// from one thread at a time.
void print(kj::StringPtr text);

// Does the same for sentences. On a terminal, wrapped() breaks them for its width.
void printWrapped(kj::StringPtr text);

// Whether output of print() was lost, for example because the reader of a pipe has ended.
bool isOutputLost();

}  // namespace runner
