#include "runner/reason.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

kj::String reason(kj::StringPtr description) {
  return reasonOf(
      kj::Exception(kj::Exception::Type::FAILED, __FILE__, __LINE__, kj::heapString(description)));
}

TEST_CASE("reasonOf: one line, without the words of RPC") {
  CHECK(reason("server 0: remote exception: remote exception: no room\nleft") ==
        "server 0: no room left");
  CHECK(reason("") == "");
}

TEST_CASE("reasonOf: what ran out comes with its way out") {
  CHECK(reason("std::bad_alloc: std::bad_alloc").startsWith("memory ran out: "));
  CHECK(reason("pipe2(fds): Too many open files") ==
        "pipe2(fds): Too many open files; raise the limit: `ulimit -n 4096`");
}

}  // namespace
}  // namespace runner
