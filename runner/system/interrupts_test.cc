#include "runner/system/interrupts.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>

#include "runner/system/exit_code.h"
#include "tests/in_child.h"

namespace runner {
namespace {

TEST_CASE(
    "endAtInterrupt: a signal writes the words, whose memory is gone, without control "
    "characters") {
  auto ended = tests::inChild([]() {
    endAtInterrupt("earlier words");
    endAtInterrupt(kj::str("\nleft ", "a\x1b[31m", "\n"));
    ::raise(SIGTERM);
  });
  CHECK(WIFEXITED(ended.status));
  CHECK(WEXITSTATUS(ended.status) == INTERRUPTED);
  CHECK(ended.errors == "\nleft a\\x1b[31m\n");
}

}  // namespace
}  // namespace runner
