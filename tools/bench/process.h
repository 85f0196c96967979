// tools/bench/process.h: runs other programs for a bench: for their figures, or to disturb it.
#pragma once

#include <kj/io.h>
#include <kj/string.h>
#include <kj/vector.h>
#include <sys/types.h>

namespace tools {

// How a program ended.
struct Ended {
  int exitCode;  // 127: it could not be started; 128 + signal: a signal killed it
  kj::String output;
  kj::String errors;
};

// Runs `words[0]`, looked up on the path if it has no slash, to its end. It does not inherit the
// variables of runner::setThreadEnvironment(), and dies with this process. Ctrl-C ends it first;
// this function then throws. Call it from one thread.
Ended runProgram(kj::ArrayPtr<const kj::String> words);

// A program that keeps running, and answers each line that it gets with one line. It dies with this
// object. Call it from one thread.
class AskedProgram {
public:
  // Starts the program as runProgram() does, but in its own process group, which dies with it.
  explicit AskedProgram(kj::ArrayPtr<const kj::String> words);
  ~AskedProgram() noexcept(false);
  KJ_DISALLOW_COPY(AskedProgram);

  // Asks for the next answer, and returns that line with exit code 0. If the program ends instead,
  // returns how. Do not ask it again then. If no answer comes within `limit_s`, ends the program
  // and returns exit code 124, like timeout(1).
  Ended ask(kj::uint limit_s);

private:
  pid_t child;
  kj::AutoCloseFd stream, errors;
  kj::Maybe<int> exitCode;  // set when it has ended

  bool readLine(kj::Vector<char>& line, kj::uint limit_s);
};

// Call it in a forked child: the child dies when `parent`, whose main thread forked it, does.
void dieWith(pid_t parent);

// Returns the number after `"key":` in a line of JSON, or null.
kj::Maybe<double> numberIn(kj::StringPtr json, kj::StringPtr key);

// While it lives, a process computes without pause on the last processor that this process may use.
class BusyCore {
public:
  BusyCore();
  ~BusyCore() noexcept(false);
  KJ_DISALLOW_COPY(BusyCore);

private:
  pid_t child;
};

}  // namespace tools
