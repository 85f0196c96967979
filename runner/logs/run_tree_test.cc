#include "runner/logs/run_tree.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/logs/run_folder.h"
#include "runner/system/files.h"
#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;
using tests::newFolder;

// A folder of runs.
struct Tree {
  kj::String top = newFolder();
  kj::Vector<kj::String> leftOut;

  void add(kj::StringPtr run) {
    auto path = kj::str(top, "/", run);
    makeFolders(path);
    writeWhole(RunFolder{kj::mv(path)}.events(), "");
  }
  void link(kj::StringPtr name, kj::StringPtr target) {
    KJ_SYSCALL(::symlink(target.cStr(), kj::str(top, "/", name).cStr()));
  }
  // Returns the labels of all folders, those of runs with a star.
  kj::String visited() {
    kj::Vector<kj::String> labels;
    visitRunTree(
        top,
        [&](kj::StringPtr path, kj::StringPtr label, bool isRun) {
          CHECK(path == kj::str(top, "/", label));
          labels.add(kj::str(label, isRun ? "*" : ""));
        },
        [&](kj::StringPtr reason) { leftOut.add(kj::str(reason)); });
    return kj::strArray(labels, " ");
  }
};

TEST_CASE("visitRunTree: visits a folder before those in it, and does not look into runs") {
  Tree tree;
  for (auto run: {"x/10", "x/2", "x/2/inner", "y/a/1", "1/2/3/4/5"}) tree.add(run);
  CHECK(tree.visited() == "1 1/2 1/2/3 1/2/3/4 x x/2* x/10* y y/a y/a/1*");
}

TEST_CASE("visitRunTree: follows links to elsewhere, and visits no folder twice") {
  Tree elsewhere, tree;
  elsewhere.add("3");
  elsewhere.add("old/4");
  for (auto run: {"x/1", "x/20"}) tree.add(run);
  auto moved = kj::str(elsewhere.top, "/3");
  tree.link("x/3", moved);
  tree.link("x/last", "3");
  tree.link("x/same", "1");
  tree.link("best", "x/1");
  tree.link("all", elsewhere.top);
  tree.link("older", kj::str(elsewhere.top, "/old"));
  tree.link("x/loop", tree.top);
  tree.link("x/broken", "nowhere");
  // x/3 was visited as all/3, and `older` as all/old.
  CHECK(tree.visited() == "all all/3* all/old all/old/4* x x/1* x/20*");
  KJ_SYSCALL(::unlink(kj::str(tree.top, "/all").cStr()));
  CHECK(tree.visited() == "older older/4* x x/1* x/3* x/20*");
}

TEST_CASE("visitRunTree: links in a circle end, and lead to nothing that has its own path") {
  Tree tree;
  for (auto run: {"a/1", "b/1"}) tree.add(run);
  tree.link("a/l", "../b");
  tree.link("b/l", "../a");
  CHECK(tree.visited() == "a a/1* b b/1*");
}

TEST_CASE("visitRunTree: leaves out a folder whose order of runs cannot be read, and says why") {
  Tree tree;
  for (auto run: {"a/1", "b/1"}) tree.add(run);
  // The order must be a file.
  makeFolders(runOrderFile(kj::str(tree.top, "/a")));
  CHECK(tree.visited() == "a b b/1*");
  REQUIRE(tree.leftOut.size() == 1);
  CHECK(contains(tree.leftOut[0], "a/runs.txt"));
}

}  // namespace
}  // namespace runner
