// Slurm's commands are shell scripts here. tests/hosts has a real Slurm.
#include "runner/launch/slurm_launcher.h"

#include <doctest/doctest.h>
#include <kj/async-unix.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "runner/system/files.h"
#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

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

TEST_CASE("SlurmLauncher: lets the steps of several runs share the processors of an allocation") {
  kj::UnixEventPort::captureChildExit();
  auto io = kj::setupAsyncIo();
  RunFolder folder{tests::newFolder()};
  auto add = [&](kj::StringPtr name, kj::StringPtr script) {
    auto path = kj::str(folder.path, "/", name);
    writeWhole(path, kj::str("#!/bin/sh\n", script, "\n"));
    KJ_SYSCALL(::chmod(path.cStr(), 0700));
  };
  add("scontrol", "echo localhost");
  add("srun", "echo overlap: $SLURM_OVERLAP");
  ::setenv("PATH", kj::str(folder.path, ":/usr/bin:/bin").cStr(), 1);
  ::setenv("SLURM_JOB_NODELIST", "localhost", 1);
  kj::StringPtr overrides[] = {"cluster.launcher=slurm", "cluster.interface=lo"};
  auto loaded = loadExperiment("configs/fashion_mnist_dist_sync.toml", overrides);
  REQUIRE(loaded.errors == "");
  Said said;
  LaunchedRun run{loaded, folder, said, io};
  auto launcher = newSlurmLauncher(run);
  launcher->prepare().wait(io.waitScope);
  auto groups = launcher->groups();
  REQUIRE(groups.size() == 1);
  auto ranks = launcher->start(groups[0], "127.0.0.1:1");
  CHECK(ranks->ended().wait(io.waitScope) == nullptr);
  CHECK(tests::contains(said.text, "overlap: 1\n"));
}

}  // namespace
}  // namespace runner
