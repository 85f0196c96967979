#include "runner/system/output.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <kj/thread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/system/exit_code.h"
#include "runner/system/interrupts.h"
#include "tests/in_child.h"

namespace runner {
namespace {

// A pipe that nobody reads until the test does.
struct Pipe {
  Pipe() {
    int fds[2];
    KJ_SYSCALL(::pipe2(fds, O_CLOEXEC));
    from = kj::AutoCloseFd(fds[0]);
    to = kj::AutoCloseFd(fds[1]);
    KJ_SYSCALL(capacity = ::fcntl(to, F_GETPIPE_SZ));
  }

  // Returns the next `count` bytes.
  kj::String read(size_t count) {
    auto text = kj::heapString(count);
    kj::FdInputStream(from.get()).read(text.begin(), count);
    return text;
  }

  kj::AutoCloseFd from, to;
  size_t capacity;
};

TEST_CASE("OutputThread: nobody waits for a reader, and everything arrives in order") {
  Pipe pipe;
  // More than a pipe holds, and more than isOutputBehind() asks for.
  auto large = kj::str(kj::repeat('x', pipe.capacity + (1 << 17)));
  OutputThread thread;
  writeQuietly(pipe.to, kj::str(large));
  writeLineQuietly(pipe.to, "the \x1b end");
  std::atomic<int> error{0};
  writeOutput(pipe.to, kj::str("last"), error);
  CHECK(isOutputBehind());

  CHECK(pipe.read(large.size()) == large);
  CHECK(pipe.read(17) == "the \\x1b end\nlast");
  finishOutput();
  CHECK_FALSE(isOutputBehind());
  CHECK(error == 0);
}

TEST_CASE("OutputThread: finishes its work before it ends") {
  Pipe pipe;
  auto large = kj::str(kj::repeat('x', 2 * pipe.capacity));
  kj::String seen;
  auto reader = kj::heap<kj::Thread>([&]() { seen = pipe.read(large.size()); });
  {
    OutputThread thread;
    writeQuietly(pipe.to, kj::str(large));
  }
  reader = nullptr;
  CHECK(seen == large);
}

TEST_CASE("writeOutput: notes the first error, and writes nothing after it") {
  auto writeTwice = []() {
    std::atomic<int> error{0};
    writeOutput(-1, kj::str("text"), error);
    finishOutput();
    CHECK(error == EBADF);
    Pipe pipe;
    writeOutput(pipe.to, kj::str("more"), error);
    writeQuietly(pipe.to, kj::str("told"));
    finishOutput();
    CHECK(pipe.read(4) == "told");
  };
  writeTwice();
  OutputThread thread;
  writeTwice();
}

TEST_CASE("writeQuietly: an interrupted process does not wait for a reader") {
  auto ended = tests::inChild([]() {
    Pipe pipe;
    auto full = kj::heapArray<char>(pipe.capacity);
    KJ_ASSERT(::write(pipe.to, full.begin(), full.size()) == ssize_t(full.size()));
    endAtInterrupt("", []() { return true; });
    ::raise(SIGTERM);
    writeQuietly(pipe.to, kj::str("nobody reads this"));
    endInterrupted();
  });
  CHECK(WIFEXITED(ended.status));
  CHECK(WEXITSTATUS(ended.status) == INTERRUPTED);
}

TEST_CASE("isOutputBehind: is false without an OutputThread") {
  CHECK_FALSE(isOutputBehind());
}

}  // namespace
}  // namespace runner
