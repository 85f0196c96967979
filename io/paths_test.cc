#include "io/paths.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/left_out.h"
#include "io/testing/scratch.h"

namespace io {

TEST_CASE("baseName, folderName: cut at the last slash") {
  CHECK(baseName("a/b/c") == "c");
  CHECK(baseName("c") == "c");
  CHECK(folderName("a/b/c") == "a/b");
  CHECK(folderName("c") == "");
}

TEST_CASE("allBelow: follows links, and names entries that are hidden, empty, or of another kind") {
  Scratch scratch;
  scratch.write("f/b/x.jpg", kj::StringPtr("1").asBytes());
  REQUIRE(::symlink("b/x.jpg", scratch.path("f/a.jpg").cStr()) == 0);
  REQUIRE(::symlink("nowhere", scratch.path("f/z.jpg").cStr()) == 0);
  REQUIRE(::mkfifo(scratch.path("f/b/pipe").cStr(), 0666) == 0);
  scratch.write("f/b/.x.jpg", nullptr);
  scratch.write("f/.c/x.jpg", nullptr);
  for (auto name: {"f/d", "f/d/e", "f/b/g"}) {
    REQUIRE(::mkdir(scratch.path(name).cStr(), 0777) == 0);
  }
  auto below = allBelow(scratch.path("f"));
  CHECK(kj::strArray(below.files, " ") == "a.jpg b/x.jpg");
  CHECK(kj::strArray(below.notRegular, ", ") == "b/pipe (a pipe), z.jpg (a link to nothing)");
  CHECK(kj::strArray(below.hidden, ", ") == ".c, b/.x.jpg");
  CHECK(kj::strArray(below.empty, ", ") == "b/g, d/e");
  CHECK(below.unreadable.size() == 0);
}

TEST_CASE("allBelow: names links that lead to themselves or back to a folder above them") {
  Scratch scratch;
  scratch.write("f/a/x.jpg", nullptr);
  scratch.write("f/b/y.jpg", nullptr);
  REQUIRE(::symlink("z", scratch.path("f/z").cStr()) == 0);
  // If links were followed without end, two links would make two paths at each level.
  REQUIRE(::symlink("..", scratch.path("f/a/up").cStr()) == 0);
  REQUIRE(::symlink("../../f", scratch.path("f/a/top").cStr()) == 0);
  auto below = allBelow(scratch.path("f"));
  CHECK(kj::strArray(below.files, " ") == "a/x.jpg b/y.jpg");
  CHECK(kj::strArray(below.notRegular, ", ") ==
        "a/top (a link to a folder that it lies in), a/up (a link to a folder that it lies in), "
        "z (a link to itself)");
}

TEST_CASE("allBelow: follows a link to a folder beside it") {
  Scratch scratch;
  scratch.write("f/a/x.jpg", nullptr);
  REQUIRE(::symlink("a", scratch.path("f/b").cStr()) == 0);
  CHECK(kj::strArray(allBelow(scratch.path("f")).files, " ") == "a/x.jpg b/x.jpg");
}

TEST_CASE("allBelow: names a folder that may not be searched, whether or not it may be listed") {
  Scratch scratch;
  for (auto name: {"f/a/x.jpg", "f/b/c/x.jpg", "f/d/x.jpg"}) scratch.write(name, nullptr);
  REQUIRE(::symlink("../b/c/x.jpg", scratch.path("f/d/link.jpg").cStr()) == 0);
  AsOrdinaryUser user;
  REQUIRE(::chmod(scratch.path("f/a").cStr(), 0444) == 0);
  REQUIRE(::chmod(scratch.path("f/b/c").cStr(), 0000) == 0);
  auto below = allBelow(scratch.path("f"));
  CHECK(kj::strArray(below.files, " ") == "d/x.jpg");
  CHECK(kj::strArray(below.unreadable, ", ") ==
        "a (Permission denied), b/c (Permission denied), d/link.jpg (Permission denied)");
  CHECK(below.notRegular.size() == 0);
  CHECK(thrownBy([&]() { allBelow(scratch.path("f/a")); }) ==
        kj::str("cannot read the folder ", scratch.path("f/a"), ": Permission denied"));
  CHECK(KJ_ASSERT_NONNULL(whyUnreadable(scratch.path("f/a/x.jpg"))) == "Permission denied");
  CHECK(whyNeither(scratch.path("f/a/x.jpg")) == nullptr);
  CHECK(whyUnreadable(scratch.path("f/none")) == nullptr);
  for (auto name: {"f/a", "f/b/c"}) REQUIRE(::chmod(scratch.path(name).cStr(), 0755) == 0);
}

TEST_CASE("withoutDot, withoutSlash: remove the parts of a path that have no meaning") {
  CHECK(withoutDot("././a/./b") == "a/./b");
  CHECK(withoutDot(".//a") == "a");
  CHECK(withoutDot("../a") == "../a");
  CHECK(withoutSlash("a/b//") == "a/b");
  CHECK(withoutSlash("/") == "/");
}

TEST_CASE("replaced: replaces each occurrence once") {
  CHECK(replaced("x.part: x.part/a", "x.part", "x.part.part") == "x.part.part: x.part.part/a");
  CHECK(replaced("x", "y", "z") == "x");
}

TEST_CASE("hiddenPartOf: ends with the first hidden name") {
  CHECK(hiddenPartOf("a/b.jpg") == nullptr);
  CHECK(hiddenPartOf("../a/./b.jpg") == nullptr);
  CHECK(KJ_ASSERT_NONNULL(hiddenPartOf("a/.b/.c/d.jpg")) == "a/.b");
  CHECK(KJ_ASSERT_NONNULL(hiddenPartOf("._d.jpg")) == "._d.jpg");
  CHECK(KJ_ASSERT_NONNULL(hiddenPartOf("__MACOSX/a/d.jpg")) == "__MACOSX");
}

TEST_CASE("LeftOut: counts all and names the first five") {
  LeftOut leftOut;
  for (auto name: {"a", "b", "c", "d", "e"}) leftOut.add(name);
  CHECK(leftOut.names() == "a, b, c, d, e");
  leftOut.add("f");
  CHECK(leftOut.count() == 6);
  CHECK(leftOut.names() == "a, b, c, d, e, …");
}

TEST_CASE("readFile: refuses by name a file that is too large or absent") {
  Scratch scratch;
  auto path = scratch.write("x", kj::StringPtr("twelve bytes").asBytes());
  CHECK(kj::heapString(readFile(path, 12).asChars()) == "twelve bytes");
  CHECK(thrownBy([&]() { readFile(path, 11); }) ==
        kj::str(path, " has 12 bytes, but at most 11 are allowed"));
  auto none = scratch.path("none");
  CHECK(thrownBy([&]() { readFile(none, 11); }) ==
        kj::str(none, " cannot be opened: No such file or directory"));
}

TEST_CASE("readFile: does not wait for the writer of a pipe") {
  Scratch scratch;
  auto pipe = scratch.path("pipe");
  REQUIRE(::mkfifo(pipe.cStr(), 0600) == 0);
  CHECK(thrownBy([&]() { readFile(pipe, 11); }) == kj::str(pipe, " is not a regular file"));
}

}  // namespace io
