#include "runner/reason.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

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
  CHECK(reason("pipe2(fds): Too many open files in system") ==
        "pipe2(fds): Too many open files in system");
}

TEST_CASE("reasonOf: a process that may open no more files is told its limit, and no system call") {
  rlimit limit;
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(reason("::pipe2(fds, O_CLOEXEC): Too many open files") ==
        kj::str("cannot open more files: the limit (`ulimit -n`) is ", limit.rlim_cur,
            "; raise it: `ulimit -n 4096`"));
}

}  // namespace
}  // namespace runner
