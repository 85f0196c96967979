// Runs on a fake GPU that are killed and resumed.
#include <doctest/doctest.h>

#include "tests/faults/resumable_run.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr ON_HOST = "tests/gpu/runner_on_host"_kj;

void checkResumes(kj::ArrayPtr<const kj::StringPtr> mode) {
  auto text = kj::strArray(mode, " ");
  CAPTURE(text);
  kj::Vector<kj::StringPtr> settings;
  // Small: the host is slow.
  settings.addAll(kj::ArrayPtr<const kj::StringPtr>({"train.steps=60", "data.held_out=100",
      "data.validate_on=held_out", "checkpoint.every_steps=7", "train.lookahead={ every = 3 }"}));
  settings.addAll(mode);
  ResumableRun undisturbed(settings, ON_HOST);
  auto unbroken = undisturbed.train();
  ResumableRun run(settings, ON_HOST);
  bool wasKilled = run.killAfter(SAVED, 2);
  run.killAfter(SAVED, 4, {"--resume"_kj});
  auto resumed = run.resume();
  // A run may be faster than the signal.
  WARN(wasKilled);
  CHECK(resumed.weightsSha256 == unbroken.weightsSha256);
  CHECK(run.events() == undisturbed.events());
  CHECK(run.log() == undisturbed.log());
}

TEST_CASE("a GPU that updates its parameters itself goes on with the same bits") {
  checkResumes({"kvstore.mode=local"_kj, "cluster.servers=0"_kj, "cluster.workers=1"_kj,
      "cluster.devices=[\"cuda\"]"_kj});
}

TEST_CASE("several GPUs of a worker that update the parameters go on with the same bits") {
  checkResumes({"kvstore.mode=device"_kj, "cluster.servers=0"_kj, "cluster.workers=1"_kj,
      "cluster.devices=[\"cuda:0\", \"cuda:1\"]"_kj});
}

TEST_CASE("GPUs of several workers that push gradients go on with the same bits") {
  checkResumes({"cluster.devices=[\"cuda\"]"_kj});
}

}  // namespace
}  // namespace tests
