#include "runner/system/reason.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

namespace runner {
namespace {

kj::String reason(kj::StringPtr description) {
  return reasonOf(
      kj::Exception(kj::Exception::Type::FAILED, __FILE__, __LINE__, kj::heapString(description)));
}

TEST_CASE("reasonOf: gives one line, without the words of RPC") {
  CHECK(reason("server 0: remote exception: remote exception: no room\nleft") ==
        "server 0: no room left");
  CHECK(reason("") == "");
}

TEST_CASE("reasonOf: says what to do if a resource of this process ran out") {
  CHECK(reason("std::bad_alloc: std::bad_alloc").startsWith("memory ran out: "));
  CHECK(reason("pipe2(fds): Too many open files in system") ==
        "pipe2(fds): Too many open files in system");
}

TEST_CASE("reasonOf: names the limit on open files, and no system call") {
  rlimit limit;
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(reason("::pipe2(fds, O_CLOEXEC): Too many open files") ==
        kj::str("cannot open more files: the limit (`ulimit -n`) is ", limit.rlim_cur,
            "; raise it: `ulimit -n 4096`"));
}

TEST_CASE("reasonOf: names no limit of this process if another process has reached its own") {
  CHECK(reason("remote exception: memfd_create(): Too many open files") ==
        "memfd_create(): Too many open files; raise the limit of that process (`ulimit -n`)");
  CHECK(reason("remote exception: std::bad_alloc").startsWith("memory ran out: make "));
}

// Sets a lower limit on `resource` while this object lives.
struct Limited {
  __rlimit_resource resource;
  rlimit before;

  Limited(__rlimit_resource resource, rlim_t limit): resource(resource) {
    REQUIRE(::getrlimit(resource, &before) == 0);
    rlimit lower = {limit, before.rlim_max};
    REQUIRE(::setrlimit(resource, &lower) == 0);
  }
  ~Limited() { ::setrlimit(resource, &before); }
};

TEST_CASE("reasonOf: names a limit on memory, and does not blame a file") {
  constexpr kj::StringPtr MAPPING =
      "cannot open the record database a.rdb: it cannot be mapped: Cannot allocate memory; delete "
      "this file"_kj;
  CHECK(reason(MAPPING).startsWith("memory ran out: make data.batch_size smaller"));
  // No address of today's processors is above this limit.
  Limited limited(RLIMIT_AS, 1ull << 60);
  for (auto text: {MAPPING, "std::bad_alloc: std::bad_alloc"_kj}) {
    CHECK(reason(text) ==
          "memory ran out: the limit (`ulimit -v`) is 1125899906842624 kB; raise it: "
          "`ulimit -v unlimited`");
    CHECK(reason(kj::str("remote exception: ", text)).startsWith("memory ran out: make "));
  }
}

TEST_CASE("reasonOf: names the limits on processes and memory if no process can be started") {
  Limited limited(RLIMIT_NPROC, 1000);
  for (auto text: {"::fork(): Resource temporarily unavailable; cannot start a process"_kj,
           "pthread_create: Resource temporarily unavailable"_kj}) {
    CHECK(reason(text).startsWith(
        "cannot start another process or thread; raise the limit on processes and threads "
        "(`ulimit -u`), which is 1000"));
  }
}

}  // namespace
}  // namespace runner
