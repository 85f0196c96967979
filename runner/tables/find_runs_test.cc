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

kj::Array<FoundRun> runsIn(kj::StringPtr path) {
  return findRuns(path, [](kj::StringPtr reason) { FAIL(reason.cStr()); });
}

kj::String labelsOf(kj::StringPtr path) {
  auto labels = KJ_MAP(run, runsIn(path)) {
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

TEST_CASE("findRuns: sorts the runs below a folder by number, and leaves out links to them") {
  addRun("many/x/10");
  addRun("many/x/2");
  addRun("many/y/1");
  auto all = folder("many");
  folder("many/empty");
  REQUIRE(::symlink("10", kj::str(all, "/x/last").cStr()) == 0);
  CHECK(labelsOf(all) == "x/2 x/10 y/1");
  CHECK(runsIn(all)[0].folder == kj::str(all, "/x/2"));
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
  CHECK_THROWS(runsIn(folder("none")));
  CHECK_THROWS(runsIn("/nowhere"));
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
