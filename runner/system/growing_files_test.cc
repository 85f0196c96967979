#include "runner/system/growing_files.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/checksum.h"
#include "runner/system/files.h"
#include "runner/system/reason.h"
#include "tests/command.h"

namespace runner {
namespace {

kj::String failureOf(GrowingFiles& files, kj::StringPtr name, uint64_t bytes) {
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { files.sumOf(name, bytes, "the log"); })) {
    return reasonOf(*e);
  }
  return kj::str();
}

TEST_CASE("GrowingFiles: the checksum of a growing file is that of its first bytes") {
  auto folder = tests::newFolder();
  LineFile file(kj::str(folder, "/log"));
  GrowingFiles files(folder);
  kj::Vector<char> written;
  for (auto line: {"one", "two", "three"}) {
    file.append(line);
    written.addAll(kj::StringPtr(line));
    written.add('\n');
    CHECK(files.sumOf("log", written.size(), "the log") == io::crc32(written.asPtr().asBytes()));
  }
  SUBCASE("also if it is asked for fewer bytes than before") {
    CHECK(files.sumOf("log", 4, "the log") == io::crc32("one\n"_kj.asBytes()));
    CHECK(files.sumOf("log", 8, "the log") == io::crc32("one\ntwo\n"_kj.asBytes()));
  }
  SUBCASE("and it does not read the bytes again that it knows") {
    files.sumOf("log", 8, "the log");
    writeWhole(kj::str(folder, "/log"), "xxxxxxxxthree\n");
    CHECK(files.sumOf("log", 14, "the log") == io::crc32(written.asPtr().asBytes()));
    CHECK(GrowingFiles(folder).sumOf("log", 14, "the log") ==
          io::crc32("xxxxxxxxthree\n"_kj.asBytes()));
  }
}

TEST_CASE("GrowingFiles: a file that is too short, missing or not regular has no checksum") {
  auto folder = tests::newFolder();
  LineFile(kj::str(folder, "/log")).append("one");
  REQUIRE(::mkfifo(kj::str(folder, "/pipe").cStr(), 0600) == 0);
  GrowingFiles files(folder);
  CHECK(failureOf(files, "log", 5) == "the log is cut short");
  CHECK(failureOf(files, "pipe", 5) == "the log is not a regular file");
  CHECK(failureOf(files, "none", 0) == "the log cannot be read: No such file or directory");
  CHECK(files.sumOf("log", 4, "the log") == io::crc32("one\n"_kj.asBytes()));
}

}  // namespace
}  // namespace runner
