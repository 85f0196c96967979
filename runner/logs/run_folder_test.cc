#include "runner/logs/run_folder.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

TEST_CASE("newRunFolder: counts on from the largest run number, and ignores other names") {
  auto runs = tests::newFolder();
  CHECK(newRunFolder(runs, "x").path == kj::str(runs, "/x/1"));
  for (auto name: {"18446744073709551615", "18446744073709551616", "20261122", "007", "0", "9x",
           "-5", "+6", " 8"}) {
    makeFolders(kj::str(runs, "/x/", name));
  }
  CHECK(newRunFolder(runs, "x").path == kj::str(runs, "/x/2"));
  makeFolders(kj::str(runs, "/x/41"));
  CHECK(newRunFolder(runs, "x").path == kj::str(runs, "/x/42"));
}

TEST_CASE("newRunFolder: works despite a temporary link that a killed process has left") {
  auto runs = tests::newFolder();
  makeFolders(kj::str(runs, "/x"));
  KJ_SYSCALL(::symlink("7", kj::str(runs, "/x/.last-1").cStr()));
  CHECK(newRunFolder(runs, "x").path == kj::str(runs, "/x/1"));
  char target[16] = {};
  KJ_SYSCALL(::readlink(kj::str(runs, "/x/last").cStr(), target, sizeof(target) - 1));
  CHECK(kj::StringPtr(target) == "1");
}

TEST_CASE(
    "newRunFolder: names a file or a folder that is in the way, keeps it, and makes nothing") {
  auto runs = tests::newFolder();
  auto refusal = [&]() {
    auto e = kj::runCatchingExceptions([&]() { newRunFolder(runs, "x"); });
    return kj::str(KJ_ASSERT_NONNULL(e).getDescription());
  };
  auto parent = kj::str(runs, "/x");
  tests::writeFile(parent, "mine");
  CHECK(
      refusal() == kj::str("cannot make the folder ", parent,
                       ": a file has that name; rename it, or choose another folder with --runs"));
  KJ_SYSCALL(::unlink(parent.cStr()));

  auto last = kj::str(parent, "/last");
  auto expected = kj::str("cannot make the link ", last,
      " to the newest run: something else has that name; rename it, or choose another folder with "
      "--runs");
  makeFolders(last);
  CHECK(refusal() == expected);
  KJ_SYSCALL(::rmdir(last.cStr()));
  tests::writeFile(last, "mine");
  CHECK(refusal() == expected);
  CHECK(tests::readFile(last) == "mine");
  KJ_SYSCALL(::unlink(last.cStr()));
  KJ_SYSCALL(::rmdir(parent.cStr()));
}

TEST_CASE("makeFolders: says which folder cannot be made, and where else to write") {
  auto e = kj::runCatchingExceptions([]() { makeFolders("/proc/foo/bar", "choose another"); });
  CHECK(tests::contains(KJ_ASSERT_NONNULL(e).getDescription(),
      "cannot make the folder /proc/foo: No such file or directory; choose another"));
}

TEST_CASE("setResultsAside: renames checkpoints and weights, and replaces no earlier ones") {
  RunFolder folder{kj::str(::getenv("TEST_TMPDIR"), "/aside")};
  makeFolders(folder.path);
  CHECK((setResultsAside(folder) == nullptr));
  for (auto kept: {"weights.safetensors.refused", "weights.safetensors.refused-2"}) {
    CAPTURE(kept);
    makeFolders(folder.checkpoints());
    writeWhole(folder.weights(), kept);
    auto sentence = KJ_REQUIRE_NONNULL(setResultsAside(folder));
    CHECK(sentence.endsWith(kept));
    CHECK(readWhole(kj::str(folder.path, "/", kept), 100) == kept);
    CHECK(::access(folder.weights().cStr(), F_OK) != 0);
    CHECK(::access(folder.checkpoints().cStr(), F_OK) != 0);
  }
}

TEST_CASE("runOrderIn: a file that cannot be read is an error, and a missing one is empty") {
  auto parent = kj::str(::getenv("TEST_TMPDIR"), "/order");
  makeFolders(parent);
  CHECK(runOrderIn(parent).size() == 0);
  makeFolders(runOrderFile(parent));
  CHECK_THROWS(runOrderIn(parent));
}

}  // namespace
}  // namespace runner
