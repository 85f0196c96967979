// Checkpoints in modes whose bits depend on time, and checkpoints by time: no push is lost or
// counted twice, and no worker waits forever.
#include <capnp/message.h>
#include <doctest/doctest.h>
#include <stdlib.h>
#include <algorithm>

#include "runner/logs/events.h"
#include "tests/faults/resumable_run.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr RESUME = "--resume"_kj;

using Settings = kj::Array<kj::StringPtr>;

template <typename... Words>
Settings settings(Words... words) {
  return kj::heapArray<kj::StringPtr>({kj::StringPtr(words)...});
}

constexpr kj::StringPtr THREE = "cluster.workers=3"_kj;

kj::Array<Settings> timedModes() {
  kj::Vector<Settings> all;
  all.add(settings("kvstore.mode=dist_async"));
  all.add(settings("kvstore.mode=dist_async", "kvstore.transport=tcp",
      "kvstore.compression={ kind = \"2bit\" }"));
  all.add(settings("kvstore.mode=dist_async", "kvstore.staleness_aware=true", THREE));
  all.add(settings("kvstore.mode=dist_ssp", "kvstore.staleness=2"));
  all.add(settings("kvstore.mode=dist_ssp", "kvstore.staleness=1", THREE, "kvstore.transport=tcp"));
  all.add(settings("kvstore.mode=dc_asgd"));
  all.add(settings("kvstore.mode=dc_asgd", "kvstore.compensation={ adaptive = true }"));
  all.add(settings("kvstore.mode=easgd"));
  all.add(settings("kvstore.mode=easgd", "kvstore.period_steps=3", "kvstore.transport=tcp"));
  all.add(settings("kvstore.aggregate=1"));
  all.add(settings("kvstore.aggregate=2", THREE));
  all.add(settings("kvstore.aggregate=2", THREE, "kvstore.wire=float16", "kvstore.transport=tcp"));
  all.add(settings("kvstore.aggregate=2", "kvstore.aggregate_from=any"));
  all.add(settings("kvstore.aggregate=3", "kvstore.aggregate_from=any"));
  all.add(settings("kvstore.aggregate=4", "kvstore.aggregate_from=any", THREE));
  return all.releaseAsArray();
}

// The counts of a run that must not depend on time.
kj::String countsOf(const ResumableRun& run) {
  kj::Vector<kj::String> lines;
  for (auto& line: linesOf(run.read("events.jsonl"))) {
    capnp::MallocMessageBuilder message;
    auto event = message.initRoot<runner::Event>();
    runner::parseEvent(line, event);
    if (event.isCounted()) {
      auto counted = event.getCounted();
      lines.add(kj::str("server ", event.getIndex(), ", epoch ", counted.getEpoch(), ": ",
          counted.getPushes().getPushed(), " pushes"));
    } else if (event.isTrained()) {
      auto trained = event.getTrained();
      lines.add(kj::str("worker ", event.getIndex(), ", epoch ", trained.getEpoch(), ": ",
          trained.getImages(), " images in ", trained.getSteps(), " steps, step ",
          trained.getStep()));
    } else if (event.isValidated()) {
      lines.add(kj::str(
          "worker ", event.getIndex(), ", epoch ", event.getValidated().getEpoch(), ": validated"));
    }
  }
  std::sort(lines.begin(), lines.end());
  return kj::strArray(lines, "\n");
}

TEST_CASE("modes that depend on time lose no push, and count none twice, if a run is resumed") {
  bool isLong = ::getenv("ALL_MODES") != nullptr;
  kj::StringPtr chosen[] = {"kvstore.mode=dist_ssp", "kvstore.mode=easgd", "kvstore.aggregate=3"};
  uint kills = 0;
  for (auto& mode: timedModes()) {
    if (!isLong) {
      bool isChosen = false;
      for (auto name: chosen) isChosen = isChosen || mode[0] == name;
      for (auto word: mode) isChosen = isChosen && word != "kvstore.transport=tcp";
      if (!isChosen) continue;
    }
    auto text = kj::strArray(mode, " ");
    CAPTURE(text);
    ResumableRun undisturbed(mode);
    undisturbed.train();
    ResumableRun run(mode);
    kills += run.killAfter(SAVED, 2);
    kills += run.killAfter("\"validated\":{\"epoch\":1,", 1, {RESUME});
    run.resume();
    CHECK(countsOf(run) == countsOf(undisturbed));
  }
  CHECK(kills > 0);
}

TEST_CASE("timed checkpoints in many short epochs change no bit, and let no worker wait forever") {
  bool isLong = ::getenv("ALL_MODES") != nullptr;
  kj::Vector<Settings> modes;
  modes.add(settings("kvstore.mode=dist_sync"));
  if (isLong) {
    modes.add(settings("kvstore.transport=tcp", "kvstore.wire=float16"));
    modes.add(settings("kvstore.mode=local", "cluster.servers=0", "cluster.workers=1"));
    modes.add(settings("kvstore.mode=allreduce", "cluster.servers=0"));
    modes.add(settings("kvstore.mode=local_sgd"));
    modes.add(settings("kvstore.update=worker"));
    modes.add(settings("cluster.launcher=inline"));
    for (auto& mode: timedModes()) modes.add(kj::mv(mode));
  }
  uint saves = 0;
  for (auto& mode: modes) {
    auto text = kj::strArray(mode, " ");
    CAPTURE(text);
    // 5 steps per epoch. A role reports its progress five times per silence time-out.
    kj::Vector<kj::StringPtr> all;
    all.addAll(settings("data.held_out=59800", "train.epochs=100", "cluster.silence_timeout_s=3",
        "checkpoint.every_steps=1000000"));
    all.addAll(mode);
    ResumableRun without(all);
    auto bits = without.train().weightsSha256;
    all.add("checkpoint.every_s=0.1");
    ResumableRun with(all);
    auto saved = with.train();
    saves += countOf(with.read("events.jsonl"), SAVED);
    CHECK(countsOf(with) == countsOf(without));
    bool isExact = true;
    for (auto& timed: timedModes()) isExact = isExact && mode[0] != timed[0];
    if (isExact) CHECK(saved.weightsSha256 == bits);
  }
  // A run that takes less than 0.1 s is not saved.
  MESSAGE(saves, " checkpoints");
  CHECK(saves > 0);
}

}  // namespace
}  // namespace tests
