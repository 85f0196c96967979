// Slurm's commands are shell scripts here. tests/hosts has a real Slurm.
#include "runner/launch/slurm_launcher.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include "runner/testing/ranks_of.h"
#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

TEST_CASE("SlurmLauncher: lets the steps of several runs share the processors of an allocation") {
  RunFolder folder{tests::newFolder()};
  writeScript(folder, "scontrol", "echo localhost");
  writeScript(folder, "srun", "echo overlap: $SLURM_OVERLAP");
  ::setenv("PATH", kj::str(folder.path, ":/usr/bin:/bin").cStr(), 1);
  ::setenv("SLURM_JOB_NODELIST", "localhost", 1);
  kj::StringPtr overrides[] = {"cluster.launcher=slurm", "cluster.interface=lo"};
  CHECK(tests::contains(ranksOf(folder, overrides, newSlurmLauncher), "overlap: 1"));
}

}  // namespace
}  // namespace runner
