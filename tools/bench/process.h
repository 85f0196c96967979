// tools/bench/process.h: child processes of benches, and other programs that they run.
#pragma once

#include <kj/function.h>
#include <kj/io.h>
#include <kj/string.h>
#include <kj/vector.h>
#include <sys/types.h>

namespace tools {

// A copy of this process that does something else. It is killed when this object is destroyed, and
// when the main thread of this process ends. That thread must have made it.
class Child {
public:
  // The child calls `work`, and then ends. If `work` throws, the child prints the reason and ends
  // with exit code 1.
  explicit Child(kj::FunctionParam<void()> work);
  ~Child() noexcept(false);
  KJ_DISALLOW_COPY(Child);

  pid_t pid() const { return child; }
  // Waits for the end. Returns the exit code, or 128 + signal if a signal killed it.
  int wait();

private:
  pid_t child;  // 0 after its end
};

// Runs `words[0]`, looked up on the path if it has no slash, in place of this process. Call it in a
// child.
[[noreturn]] void become(kj::ArrayPtr<const kj::String> words);

// How a program ended.
struct Ended {
  int exitCode;  // 127: it could not be started; 128 + signal: a signal killed it
  kj::String output;
  kj::String errors;

  // Returns the line of `errors` with the reason: the last one of Python, the first one of other
  // programs.
  kj::String reason() const;
};

// Runs `words[0]` as become() does, to its end. The program does not inherit the variables of
// runner::setThreadEnvironment(), and dies with this process. Ctrl-C ends the program. This
// function then throws. Call it from one thread.
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
  kj::AutoCloseFd stream, errors;
  kj::Maybe<kj::Own<Child>> child;  // null when it has ended

  bool readLine(kj::Vector<char>& line, kj::uint limit_s);
};

// Returns the parts of a text between the separators.
kj::Vector<kj::String> split(kj::StringPtr text, char separator);
// Returns the lines of a text that are not empty.
kj::Vector<kj::String> linesOf(kj::StringPtr text);

// Returns the number after `"key":` in a line of JSON, or null.
kj::Maybe<double> numberIn(kj::StringPtr json, kj::StringPtr key);

// The processor that a process is bound to, or any that this process may use.
using Core = int;
constexpr Core ANY_CORE = -1;
// Returns the processors that this process may use, in ascending order.
kj::Vector<Core> allowedCores();
// Binds the calling process to a processor.
void bindTo(Core core);

// While this object lives, a child process computes without pause on the last processor that the
// calling process may use.
class BusyCore {
public:
  BusyCore();
  KJ_DISALLOW_COPY(BusyCore);

private:
  Child child;
};

}  // namespace tools
