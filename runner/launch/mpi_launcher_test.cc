// mpirun is a shell script here. tests/hosts has a real one.
#include "runner/launch/mpi_launcher.h"

#include <doctest/doctest.h>
#include <kj/async-unix.h>
#include <kj/debug.h>
#include <sys/stat.h>

#include "runner/system/files.h"
#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

// Keeps what is said.
class Said final: public RunView {
public:
  Said(): RunView(1, 1) {}
  void show(Event::Reader) override {}
  void say(kj::StringPtr line) override { text = kj::str(text, line, "\n"); }
  void showWait(kj::StringPtr) override {}
  void end() override {}

  kj::String text;
};

// Returns the words with which the launcher calls OpenMPI's mpirun.
kj::String wordsFor(kj::Maybe<kj::StringPtr> hosts) {
  kj::UnixEventPort::captureChildExit();
  auto io = kj::setupAsyncIo();
  RunFolder folder{tests::newFolder()};
  auto mpirun = kj::str(folder.path, "/mpirun");
  writeWhole(mpirun,
      "#!/bin/sh\nif [ \"$1\" = --version ];then echo Open MPI;else echo words: \"$*\";fi\n");
  KJ_SYSCALL(::chmod(mpirun.cStr(), 0700));
  auto command = kj::str("cluster.mpirun=", mpirun);
  kj::Vector<kj::StringPtr> overrides;
  for (kj::StringPtr each: {"cluster.launcher=mpi"_kj, "cluster.interface=lo"_kj}) {
    overrides.add(each);
  }
  overrides.add(command);
  KJ_IF_MAYBE(setting, hosts) overrides.add(*setting);
  auto loaded = loadExperiment("configs/fashion_mnist_dist_sync.toml", overrides);
  REQUIRE(loaded.errors == "");
  Said said;
  LaunchedRun run{loaded, folder, said, io};
  auto launcher = newMpiLauncher(run);
  launcher->prepare().wait(io.waitScope);
  auto groups = launcher->groups();
  REQUIRE(groups.size() == 1);
  auto ranks = launcher->start(groups[0], "127.0.0.1:1");
  CHECK(ranks->ended().wait(io.waitScope) == nullptr);
  REQUIRE(contains(said.text, "words: "));
  return kj::mv(said.text);
}

TEST_CASE("MpiLauncher: tells OpenMPI to place ranks by a file of hosts only if there is one") {
  auto placed = wordsFor("cluster.hosts=[\"localhost\"]"_kj);
  CHECK(contains(placed, "--map-by seq "));
  CHECK(contains(placed, "--hostfile "));
  auto unplaced = wordsFor(nullptr);
  CHECK_FALSE(contains(unplaced, "--map-by"));
  CHECK_FALSE(contains(unplaced, "--hostfile"));
  CHECK(contains(unplaced, " -n 4 "));
}

}  // namespace
}  // namespace runner
