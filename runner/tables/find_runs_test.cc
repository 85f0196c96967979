#include "runner/tables/find_runs.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <unistd.h>

#include "runner/logs/run_folder.h"
#include "runner/system/files.h"

namespace runner {
namespace {

kj::String folder(kj::StringPtr name) {
  auto path = kj::str(::getenv("TEST_TMPDIR"), "/", name);
  makeFolders(path);
  return path;
}

kj::String addRun(kj::StringPtr name) {
  auto path = folder(name);
  writeWhole(kj::str(path, "/events.jsonl"), "");
  return path;
}

kj::String labelsOf(kj::StringPtr path) {
  auto labels = KJ_MAP(run, findRuns(path)) {
    return kj::str(run.label);
  };
  return kj::strArray(labels, " ");
}

TEST_CASE("findRuns: the folder of a run is that run, whatever it contains") {
  auto run = addRun("alone/1");
  addRun("alone/1/inner");
  CHECK(labelsOf(run) == run);
  CHECK(labelsOf(kj::str(run, "/")) == run);
}

TEST_CASE("findRuns: sorts the runs below a folder by number, and leaves out links") {
  addRun("many/x/10");
  addRun("many/x/2");
  addRun("many/y/1");
  auto all = folder("many");
  folder("many/empty");
  REQUIRE(::symlink("10", kj::str(all, "/x/last").cStr()) == 0);
  CHECK(labelsOf(all) == "x/2 x/10 y/1");
  CHECK(findRuns(all)[0].folder == kj::str(all, "/x/2"));
}

TEST_CASE("findRuns: finds runs behind links to elsewhere, and none twice") {
  auto moved = addRun("elsewhere/3");
  addRun("linked/x/1");
  auto all = folder("linked");
  auto link = [&](kj::StringPtr target, kj::StringPtr name) {
    REQUIRE(::symlink(target.cStr(), kj::str(all, "/", name).cStr()) == 0);
  };
  link(moved, "x/3");
  link("../elsewhere", "y");
  link("3", "x/last");
  link(kj::str(all, "/x/1"), "x/same");
  link(all, "x/loop");
  link("nowhere", "x/broken");
  CHECK(labelsOf(all) == "x/1 x/3 y/3");
  CHECK(labelsOf(kj::str(all, "/x")) == "1 3");
}

TEST_CASE("findRuns: the runs of a sweep come in its order, before other runs in the folder") {
  for (auto name: {"b=1-aa", "b=2-bb", "b=10-cc", "a", "c"}) addRun(kj::str("sweep/", name));
  auto all = folder("sweep");
  writeWhole(runOrderFile(all), "b=10-cc\nnone\nb=1-aa\nb=2-bb\n");
  CHECK(labelsOf(all) == "b=10-cc b=1-aa b=2-bb a c");
}

TEST_CASE(
    "findRuns: the runs of a later sweep come first, and those of the earlier one keep their "
    "order") {
  for (auto name: {"b=1-aa", "b=2-bb", "b=10-cc", "a=1-dd"}) addRun(kj::str("sweeps/", name));
  auto all = folder("sweeps");
  writeRunOrder(all, {"b=10-cc"_kj, "b=2-bb"_kj, "b=1-aa"_kj});
  CHECK(labelsOf(all) == "b=10-cc b=2-bb b=1-aa a=1-dd");
  // One run belongs to both sweeps.
  writeRunOrder(all, {"a=1-dd"_kj, "b=2-bb"_kj});
  CHECK(labelsOf(all) == "a=1-dd b=2-bb b=10-cc b=1-aa");
}

TEST_CASE("findRuns: refuses a folder without runs, and a missing folder") {
  CHECK_THROWS(findRuns(folder("none")));
  CHECK_THROWS(findRuns("/nowhere"));
}

TEST_CASE("notThereIn: counts the runs of the latest sweep that have no events") {
  addRun("rest/b");
  folder("rest/c");
  CHECK(notThereIn(folder("rest")) == nullptr);
  // The last line is a run of an earlier sweep.
  writeWhole(runOrderFile(folder("rest")), "c\nb\na\n\nearlier\n");
  auto file = runOrderFile(folder("rest"));
  CHECK(KJ_ASSERT_NONNULL(notThereIn(folder("rest"))) ==
        kj::str("2 of the 3 runs of the latest sweep in ", file,
            " have no row in the table, because they have not begun or were removed: c and "
            "others"));
  addRun("rest/c");
  CHECK(KJ_ASSERT_NONNULL(notThereIn(folder("rest"))) ==
        kj::str("1 of the 3 runs of the latest sweep in ", file,
            " has no row in the table, because it has not begun or was removed: a"));
  addRun("rest/a");
  CHECK(notThereIn(folder("rest")) == nullptr);
}

}  // namespace
}  // namespace runner
