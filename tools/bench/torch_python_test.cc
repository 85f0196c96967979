#include "tools/bench/torch_python.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <stdlib.h>

#include "tests/command.h"
#include "tests/text.h"

namespace tools {
namespace {

// Makes a program that stands for a Python: it runs `script`.
kj::String newPython(kj::StringPtr folder, kj::StringPtr name, kj::StringPtr script) {
  auto path = kj::str(folder, '/', name);
  REQUIRE(tests::Command({"mkdir", "-p", folder}).wait().exitCode == 0);
  tests::writeFile(path, kj::str("#!/bin/sh\n", script, "\n"));
  REQUIRE(tests::Command({"chmod", "+x", path}).wait().exitCode == 0);
  return path;
}

constexpr kj::StringPtr NO_TORCH = "exit 77"_kj;
constexpr kj::StringPtr BROKEN =
    "echo 'ImportError: libcudart.so: cannot open shared object file' >&2; exit 1"_kj;

TEST_CASE("newestTorch: takes the newest version, in any order of the Pythons") {
  auto folder = tests::newFolder();
  kj::String programs[] = {newPython(folder, "a", "echo 1.13.0a0"),
      newPython(folder, "b", NO_TORCH), newPython(folder, "c", "echo 2.15.0+cu132"),
      newPython(folder, "d", "echo 2.9.1"), newPython(folder, "e", "echo 2.15.0")};
  auto search = newestTorch(programs);
  auto& newest = KJ_ASSERT_NONNULL(search.newest);
  CHECK(newest.program == programs[2]);
  CHECK(newest.version == "2.15.0+cu132");
  CHECK(search.notes.size() == 0);
}

TEST_CASE("newestTorch: names a PyTorch that does not load, and takes another one") {
  auto folder = tests::newFolder();
  kj::String programs[] = {newPython(folder, "a", BROKEN), newPython(folder, "b", "echo 1.13.0")};
  auto search = newestTorch(programs);
  CHECK(KJ_ASSERT_NONNULL(search.newest).program == programs[1]);
  REQUIRE(search.notes.size() == 1);
  CHECK(search.notes[0] == kj::str("PyTorch of ", folder,
                               "/a does not load: ImportError: "
                               "libcudart.so: cannot open shared object "
                               "file"));
}

TEST_CASE("newestTorch: says that there is no PyTorch, or why none loads") {
  auto folder = tests::newFolder();
  kj::String missing = kj::str(folder, "/missing");
  auto none = newPython(folder, "a", NO_TORCH);
  auto search = newestTorch(kj::arr(kj::mv(none), kj::mv(missing)));
  CHECK(search.newest == nullptr);
  CHECK(search.whyNone() == "no Python with PyTorch");
  search = newestTorch(kj::arr(newPython(folder, "b", BROKEN)));
  CHECK(search.newest == nullptr);
  CHECK(tests::contains(search.whyNone(), "/b does not load: ImportError: libcudart.so"));
}

TEST_CASE(
    "pythonsOn: lists each Python of the path once, and that of the virtual environment first") {
  auto folder = tests::newFolder();
  auto bin = kj::str(folder, "/bin"), environment = kj::str(folder, "/venv");
  newPython(bin, "python3.11", NO_TORCH);
  newPython(bin, "python3-config", NO_TORCH);
  newPython(bin, "python3.11-dbg", NO_TORCH);
  newPython(bin, "python", NO_TORCH);
  auto script =
      "cd \"$0\" && ln -s python3.11 bin/python3 && ln -s bin other && "
      "mkdir -p venv/bin && ln -s ../../bin/python3 venv/bin/python3"_kj;
  REQUIRE(tests::Command({"sh", "-c", script, folder}).wait().exitCode == 0);
  auto path = kj::str(bin, ":/nowhere::", folder, "/other");
  auto programs = pythonsOn(path, environment);
  REQUIRE(programs.size() == 2);
  CHECK(programs[0] == kj::str(environment, "/bin/python3"));
  CHECK(programs[1] == kj::str(bin, "/python3"));
  CHECK(pythonsOn(path, "").size() == 1);
}

TEST_CASE("findTorch: uses only the named Python, or that of the named environment") {
  auto folder = tests::newFolder();
  auto named = newPython(kj::str(folder, "/bin"), "python3", "echo 0.4.1");
  auto newer = newPython(folder, "newer", "echo 99.0");
  for (auto chosen: {named.asPtr(), folder.asPtr()}) {
    auto search = findTorch(chosen);
    CHECK(KJ_ASSERT_NONNULL(search.newest).version == "0.4.1");
    CHECK(KJ_ASSERT_NONNULL(search.newest).program == named);
  }
  ::setenv("RUNNER_PYTHON", newer.cStr(), true);
  CHECK(KJ_ASSERT_NONNULL(findTorch().newest).version == "99.0");
  CHECK(KJ_ASSERT_NONNULL(findTorch(named).newest).version == "0.4.1");
  ::unsetenv("RUNNER_PYTHON");
}

TEST_CASE("findTorch: a named Python without PyTorch is an error with a way out") {
  auto folder = tests::newFolder();
  auto failure = [](kj::StringPtr chosen) {
    KJ_IF_MAYBE(exception, kj::runCatchingExceptions([&]() { findTorch(chosen); })) {
      return kj::str(exception->getDescription());
    }
    return kj::String();
  };
  constexpr kj::StringPtr WAY_OUT =
      "Name another Python with --python or RUNNER_PYTHON, or none to search the path"_kj;
  auto none = newPython(folder, "none", NO_TORCH);
  CHECK(failure(none) == kj::str(none, " has no PyTorch. ", WAY_OUT));
  CHECK(failure("/nowhere/python3") == kj::str("cannot start /nowhere/python3. ", WAY_OUT));
  auto broken = newPython(folder, "broken", BROKEN);
  CHECK(failure(broken) == kj::str("PyTorch of ", broken,
                               " does not load: ImportError: libcudart.so: "
                               "cannot open shared object file. ",
                               WAY_OUT));
}

}  // namespace
}  // namespace tools
