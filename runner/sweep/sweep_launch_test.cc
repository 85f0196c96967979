#include "runner/sweep/sweep_launch.h"

#include <capnp/message.h>
#include <doctest/doctest.h>
#include <kj/async-unix.h>
#include <kj/debug.h>
#include <signal.h>
#include <stdlib.h>

#include "runner/logs/events.h"
#include "runner/system/files.h"

namespace runner {
namespace {

LoadedRuns load(kj::StringPtr sweep) {
  auto path = kj::str(::getenv("TEST_TMPDIR"), "/x.toml");
  writeWhole(path, kj::str("name = \"x\"\n"
                           "[data]\n"
                           "dataset = \"fashion_mnist\"\n"
                           "[model]\n"
                           "network = \"mlp\"\n"
                           "[train]\n"
                           "optimizer = { kind = \"sgd\", learning_rate = 0.1 }\n"
                           "[kvstore]\n"
                           "mode = \"dist_sync\"\n"
                           "[cluster]\n"
                           "servers = 1\n"
                           "workers = 2\n"
                           "threads_per_worker = 2\n"
                           "[sweep]\n",
                       sweep));
  auto all = loadRuns(path, nullptr, nullptr);
  REQUIRE(all.errors == "");
  return all;
}

TEST_CASE("parallelRuns: as many of the largest runs as the cores can hold, but at least one") {
  auto all = load("grid = { \"cluster.workers\" = [1, 3, 2] }\n");
  CHECK(parallelRuns(all, 1) == 1);
  CHECK(parallelRuns(all, 11) == 1);
  CHECK(parallelRuns(all, 12) == 2);
  CHECK(parallelRuns(all, 64) == 10);
}

TEST_CASE("parallelRuns: each device of a worker has its own threads") {
  auto all = load(
      "grid = { \"cluster.devices\" = [[\"cpu\"], [\"cpu:0\", \"cpu:1\"]] }\n"
      "zip = { \"data.batch_size\" = [128] }\n");
  CHECK(parallelRuns(all, 16) == 2);
}

TEST_CASE("parallelRuns: parallel_runs takes precedence over what the cores can hold") {
  auto all = load("grid = { \"cluster.workers\" = [1, 2] }\nparallel_runs = 5\n");
  CHECK(parallelRuns(all, 1) == 5);
  CHECK(parallelRuns(all, 64) == 5);
}

TEST_CASE("SweepLaunch: notices a signal before it has read all runs that have ended") {
  auto all = load(
      "grid = { \"cluster.workers\" = [1, 2] }\n"
      "stop = { kind = \"asha\", first_epoch = 1, keep_one_in = 2 }\n");
  auto runs = kj::str(::getenv("TEST_TMPDIR"), "/runs");
  SweepFolders folders(all, runs);
  for (size_t i: kj::indices(all.runs)) {
    auto folder = folders.folderOf(i);
    makeFolders(folder.path);
    auto line = [](auto&& fill) {
      capnp::MallocMessageBuilder message;
      auto event = message.initRoot<Event>();
      fill(event);
      return kj::str(formatEvent(event), "\n");
    };
    writeWhole(
        folder.events(), kj::str(line([&](Event::Builder event) {
          event.initStarted().setDigest(all.runs[i].loaded.digest);
        }),
                             line([&](Event::Builder event) {
                               event.initStopped().setRule(
                                   KJ_ASSERT_NONNULL(KJ_ASSERT_NONNULL(all.sweep).stop).print());
                             })));
  }
  kj::UnixEventPort::captureSignal(SIGTERM);
  auto io = kj::setupAsyncIo();
  SweepLaunch sweep(all, runs, io);
  size_t done = 0;
  auto ended = sweep.run().then([&](kj::Array<RunRecord>&& records) { done = records.size(); });
  auto signal = io.unixEventPort.onSignal(SIGTERM).ignoreResult();
  ::raise(SIGTERM);
  ended.exclusiveJoin(kj::mv(signal)).wait(io.waitScope);
  CHECK(done == 0);
}

}  // namespace
}  // namespace runner
