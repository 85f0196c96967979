#include "io/records/mapped_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/testing/scratch.h"
#include "tests/in_child.h"
#include "tests/text.h"

namespace io {

namespace {

constexpr kj::StringPtr LOST = "a.mdb can no longer be read; delete it"_kj;
constexpr size_t BYTES = 1 << 16;

kj::String writeZeros(const Scratch& scratch, kj::StringPtr name) {
  return scratch.write(name, kj::heapArray<kj::byte>(BYTES));
}

// Reads the last byte of `mapped`, after its file at `path` was cut short.
void readPastEnd(kj::StringPtr path, kj::ArrayPtr<const kj::byte> mapped) {
  KJ_SYSCALL(::truncate(path.cStr(), 1));
  *const_cast<volatile const kj::byte*>(mapped.end() - 1);
}

}  // namespace

TEST_CASE("mapFile: a file that is cut short ends the process with exit code 1 and its line") {
  Scratch scratch;
  auto other = mapFile(writeZeros(scratch, "other"), "other");
  auto path = writeZeros(scratch, "a.mdb");
  auto mapped = mapFile(path, LOST);
  auto ended = tests::inChild([&]() { readPastEnd(path, mapped); });
  CHECK(WIFEXITED(ended.status));
  CHECK(WEXITSTATUS(ended.status) == 1);
  CHECK(ended.errors == kj::str("\nerror: ", LOST, "\n"));
}

TEST_CASE("mapFile: the line shows control characters instead of sending them to the terminal") {
  Scratch scratch;
  auto path = writeZeros(scratch, "a.mdb");
  auto mapped = mapFile(path, "a\x1b[31m.mdb became shorter");
  auto ended = tests::inChild([&]() { readPastEnd(path, mapped); });
  CHECK(ended.errors == "\nerror: a\\x1b[31m.mdb became shorter\n");
}

TEST_CASE("mapFile: a SIGBUS with another cause ends the process as before") {
  Scratch scratch;
  auto mapped = mapFile(writeZeros(scratch, "a.mdb"), LOST);
  auto path = writeZeros(scratch, "elsewhere");
  kj::AutoCloseFd file(::open(path.cStr(), O_RDONLY | O_CLOEXEC));
  auto begin = ::mmap(nullptr, BYTES, PROT_READ, MAP_SHARED, file, 0);
  REQUIRE(begin != MAP_FAILED);
  KJ_DEFER(::munmap(begin, BYTES));
  auto elsewhere = kj::arrayPtr(static_cast<const kj::byte*>(begin), BYTES);
  for (auto& ended: {tests::inChild([&]() { readPastEnd(path, elsewhere); }),
           tests::inChild([]() { ::raise(SIGBUS); })}) {
    CHECK(ended.status != 0);
    CHECK(!tests::contains(ended.errors, LOST));
  }
}

TEST_CASE(
    "mapFile: does not blame a file that is no longer mapped for an error at its old address") {
  Scratch scratch;
  auto path = writeZeros(scratch, "elsewhere");
  auto mapped = mapFile(writeZeros(scratch, "a.mdb"), LOST);
  auto address = const_cast<kj::byte*>(mapped.begin());
  mapped = nullptr;
  kj::AutoCloseFd file(::open(path.cStr(), O_RDONLY | O_CLOEXEC));
  auto begin = ::mmap(address, BYTES, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0);
  REQUIRE(begin == address);
  KJ_DEFER(::munmap(begin, BYTES));
  auto ended = tests::inChild([&]() { readPastEnd(path, kj::arrayPtr(address, BYTES)); });
  CHECK(ended.status != 0);
  CHECK(!tests::contains(ended.errors, LOST));
}

}  // namespace io
