#include "runner/system/copied_program.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/command.h"

namespace runner {
namespace {

TEST_CASE("CopiedProgram: this test is not a program that a launcher has copied") {
  CHECK(CopiedProgram::find() == nullptr);
}

TEST_CASE("CopiedProgram: removes copies that nobody has used for a month, and no other folders") {
  auto programs = tests::newFolder();
  auto path = [&](char digit, kj::StringPtr end) {
    auto digits = kj::heapString(64);
    for (auto& each: digits) each = digit;
    return kj::str(programs, "/", digits, end);
  };
  // `days`: how long ago it was used.
  auto make = [&](kj::StringPtr folder, uint days) {
    REQUIRE(::mkdir(folder.cStr(), 0777) == 0);
    tests::writeFile(kj::str(folder, "/runner"), "program");
    struct timespec used = {::time(nullptr) - time_t(days) * 24 * 60 * 60, 0};
    struct timespec times[] = {used, used};
    REQUIRE(::utimensat(AT_FDCWD, folder.cStr(), times, 0) == 0);
  };
  auto isThere = [](kj::StringPtr folder) { return ::access(folder.cStr(), F_OK) == 0; };
  auto own = path('a', ""), old = path('b', ""), cut = path('c', ".tar.new"), young = path('d', "");
  auto other = kj::str(programs, "/mine");
  make(own, 40);
  make(old, 31);
  make(cut, 31);
  make(young, 29);
  make(other, 99);

  CopiedProgram program(kj::str(own));
  program.noteUse();
  program.removeUnused();
  CHECK(isThere(own));
  CHECK_FALSE(isThere(old));
  CHECK_FALSE(isThere(cut));
  CHECK(isThere(young));
  CHECK(isThere(other));

  // This copy was marked as used above, so it stays.
  CopiedProgram(kj::str(young)).removeUnused();
  CHECK(isThere(own));
}

}  // namespace
}  // namespace runner
