// tools/bench/process.h: other programs that a bench runs: for their figures, or to be in the way.
#pragma once

#include <kj/io.h>
#include <kj/string.h>
#include <kj/vector.h>
#include <sys/types.h>

namespace tools {

// How a program ended.
struct Ended {
  int exitCode;  // 127: it could not be started; 128 + signal: it was killed
  kj::String output;
  kj::String errors;
};

// Runs `words[0]`, looked up on the path if it has no slash, to its end. It does not get what
// runner::setThreadEnvironment() has set, and dies with this process. Ctrl-C
// ends it first: then this throws. Call it from one thread.
Ended runProgram(kj::ArrayPtr<const kj::String> words);

// A program that stays, and answers each line that it gets with one of its own. It dies with this
// object. Call it from one thread.
class AskedProgram {
public:
  // Starts as runProgram() does, but in a process group of its own, which dies with it.
  explicit AskedProgram(kj::ArrayPtr<const kj::String> words);
  ~AskedProgram() noexcept(false);
  KJ_DISALLOW_COPY(AskedProgram);

  // The next answer, a line, with exit code 0; how the program ended in its place, after which it
  // is not asked again. One that does not come within `limit_s` is exit code 124, as of timeout(1),
  // and the end of the program.
  Ended ask(kj::uint limit_s);

private:
  pid_t child;
  kj::AutoCloseFd stream, errors;
  kj::Maybe<int> exitCode;  // once it has ended

  bool readLine(kj::Vector<char>& line, kj::uint limit_s);
};

// In a child that was forked: it dies when `parent`, whose main thread forked it, does.
void dieWith(pid_t parent);

// The number behind `"key":` in a line of JSON; null if there is none.
kj::Maybe<double> numberIn(kj::StringPtr json, kj::StringPtr key);

// While it lives, a process computes without end on the last of the processors that this process
// may use.
class BusyCore {
public:
  BusyCore();
  ~BusyCore() noexcept(false);
  KJ_DISALLOW_COPY(BusyCore);

private:
  pid_t child;
};

}  // namespace tools
