// Runs on a fake GPU that are killed and resumed.
#include <doctest/doctest.h>
#include <stdlib.h>

#include "tests/faults/failure.h"
#include "tests/faults/resumable_run.h"
#include "tests/faults/roles_by_hand.h"
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

TEST_CASE("a run whose GPU updates its parameters itself is resumed with the same bits") {
  checkResumes({"kvstore.mode=local"_kj, "cluster.servers=0"_kj, "cluster.workers=1"_kj,
      "cluster.devices=[\"cuda\"]"_kj});
}

TEST_CASE("a run with several GPUs that update the parameters is resumed with the same bits") {
  checkResumes({"kvstore.mode=device"_kj, "cluster.servers=0"_kj, "cluster.workers=1"_kj,
      "cluster.devices=[\"cuda:0\", \"cuda:1\"]"_kj});
}

TEST_CASE("a run whose workers push gradients from GPUs is resumed with the same bits") {
  checkResumes({"cluster.devices=[\"cuda\"]"_kj});
}

// One GPU breaks in the way that the variable `way` of HostDevice names. The run continues, and
// reports `why`.
void checkSurvives(kj::StringPtr way, kj::StringPtr why) {
  auto flag = kj::str(newFolder(), "/has broken");
  kj::StringPtr settings[] = {"train.steps=60", "data.held_out=100", "data.validate_on=held_out",
      "checkpoint.every_steps=7", "cluster.devices=[\"cuda\"]", "cluster.on_loss=restart",
      "cluster.stall_timeout_s=3"};
  auto unbroken = ResumableRun(settings, ON_HOST).train();
  ResumableRun run(settings, ON_HOST);
  ::setenv(way.cStr(), flag.cStr(), 1);
  auto ended = run.start()->wait();
  ::unsetenv(way.cStr());
  INFO(ended.errors);
  CHECK(contains(ended.errors, why));
  CHECK(finished(ended, run.folder).weightsSha256 == unbroken.weightsSha256);
}

TEST_CASE("a run with cluster.on_loss = \"restart\" survives a GPU that fails") {
  checkSurvives("HOST_BREAKS", "uncorrectable ECC error encountered");
}

TEST_CASE("a run with cluster.on_loss = \"restart\" survives a GPU that hangs") {
  checkSurvives(
      "HOST_HANGS", " has made no progress for 3 s, although it waits for no other role; ");
}

TEST_CASE("a run with cluster.on_loss = \"restart\" survives a GPU that hangs at the start") {
  checkSurvives("HOST_HANGS_AT_START", "waits for no other role; no step was reported yet; ");
}

TEST_CASE("roles that were started by hand end if the GPU of a worker hangs") {
  auto flag = kj::str(newFolder(), "/has hung"), folder = kj::str(newFolder(), "/run");
  auto hangs = kj::str("HOST_HANGS=", flag);
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache, hangs};
  auto start = [&](kj::ArrayPtr<const kj::StringPtr> own) {
    kj::Vector<kj::StringPtr> words;
    words.addAll(kj::ArrayPtr<const kj::StringPtr>({ON_HOST, "role", RESUMABLE}));
    words.addAll(own);
    words.addAll(kj::ArrayPtr<const kj::StringPtr>({"--set", "data.held_out=100", "--set",
        "data.validate_on=held_out", "--set", "cluster.devices=[\"cuda\"]", "--set",
        "cluster.servers=1", "--set", "cluster.stall_timeout_s=3"}));
    return kj::heap<Command>(words.asPtr(), Command::Surroundings{.environment = environment});
  };
  auto coordinator = start({"--role", "coordinator", "--folder", folder});
  auto address = addressOf(*coordinator);
  auto server = start({"--role", "server", "--coordinator", address});
  kj::Own<Command> workers[] = {
      start({"--role", "worker", "--index", "0", "--coordinator", address}),
      start({"--role", "worker", "--index", "1", "--coordinator", address})};
  checkFailed(coordinator->wait(), {"has made no progress for 3 s"});
  CHECK(server->wait(FAILS_WITHIN_S).exitCode == 75);
  uint hanging = 0;
  for (auto& worker: workers) {
    auto ended = worker->wait(FAILS_WITHIN_S);
    CHECK(ended.exitCode == 75);
    if (contains(ended.errors, "This worker still has not finished its step")) hanging++;
  }
  CHECK(hanging == 1);
}

TEST_CASE("a GPU that fails ends a run by default, and the error says so") {
  auto flag = kj::str(newFolder(), "/has failed");
  kj::StringPtr settings[] = {"train.steps=60", "data.held_out=100", "data.validate_on=held_out",
      "cluster.devices=[\"cuda\"]"};
  ::setenv("HOST_BREAKS", flag.cStr(), 1);
  auto ended = ResumableRun(settings, ON_HOST).start()->wait();
  ::unsetenv("HOST_BREAKS");
  INFO(ended.errors);
  CHECK(ended.exitCode == 1);
  CHECK(contains(ended.errors, ": cuda:0 cannot launch recorded work: uncorrectable ECC error"));
}

TEST_CASE("a resumed run computes by the plans that its GPU chose at the beginning") {
  kj::StringPtr settings[] = {
      "model.layers=[{ kind = \"conv\", filters = 2, kernel = 5, stride = 5 }, "
      "{ kind = \"dense\", units = 10 }]",
      "train.steps=60", "data.held_out=100", "data.validate_on=held_out",
      "checkpoint.every_steps=7", "cluster.devices=[\"cuda\"]"};
  ResumableRun run(settings, ON_HOST);
  auto planned = [&]() {
    auto part = kj::str(run.newestCheckpoint(), "/worker-1.safetensors");
    return Command({ON_HOST, "inspect", part}).wait().output;
  };
  constexpr kj::StringPtr FORWARD = "\nhost, direction 0: 20 images, "_kj;
  ::setenv("HOST_PLAN", "the first plan", 1);
  run.trainUntil(SAVED, 2);
  auto before = planned();
  INFO(before);
  CHECK(contains(before, FORWARD));
  CHECK(contains(before, ": the first plan\n"));
  ::setenv("HOST_PLAN", "a faster plan", 1);
  auto resumed = run.start({"--resume"_kj})->wait();
  ::unsetenv("HOST_PLAN");
  INFO(resumed.errors);
  CHECK(resumed.exitCode == 0);
  CHECK_FALSE(contains(resumed.errors, "no longer have the plans"));
  auto after = planned();
  INFO(after);
  CHECK(contains(after, ": the first plan\n"));
  CHECK_FALSE(contains(after, "a faster plan"));
}

}  // namespace
}  // namespace tests
