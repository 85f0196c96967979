#include "rpc/modes/modes.h"

#include <doctest/doctest.h>

#include "configs/language/document.h"
#include "configs/language/reader.h"

namespace rpc {
namespace {

struct Outcome {
  KvStoreConfig config;
  size_t errors;
};

Outcome read(kj::StringPtr text) {
  configs::Diagnostics diagnostics;
  auto document = configs::parse("x.toml", text, diagnostics);
  configs::Reading reading{diagnostics, {}};
  auto config = configs::readDocument(*document, reading, KvStoreConfig::read);
  return {kj::mv(config), diagnostics.count()};
}

bool isAsynchronous(const ModeRow& mode) {
  kj::StringPtr name = mode.name;
  return name == "dist_async" || name == "dist_ssp" || name == "dc_asgd" || name == "easgd";
}

TEST_CASE("[kvstore]: the defaults are local, slices of 1 MiB and balanced") {
  auto outcome = read("");
  CHECK(outcome.errors == 0);
  CHECK(kj::StringPtr(outcome.config.modeName()) == "local");
  CHECK(!outcome.config.hasServers());
  CHECK(outcome.config.slice_bytes == 1 << 20);
  CHECK(kj::StringPtr(outcome.config.placement->name) == "balanced");
}

TEST_CASE("[kvstore]: a mode is a whole word of the table, never a part of one") {
  CHECK(kj::StringPtr(read("mode = 'dist_async'").config.modeName()) == "dist_async");
  CHECK(read("mode = 'dist_sync'").errors == 0);
  CHECK(read("mode = 'dist'").errors == 1);
  CHECK(read("mode = 'dist_sync_device'").errors == 1);
}

TEST_CASE("[kvstore]: slice_bytes has limits") {
  CHECK(read("slice_bytes = 4095").errors == 1);
  CHECK(read("slice_bytes = 4096").errors == 0);
  CHECK(read("slice_bytes = 268435456").errors == 0);
  CHECK(read("slice_bytes = 268435457").errors == 1);
}

TEST_CASE("[kvstore]: a key of another mode is an error, even with its default value") {
  struct {
    kj::StringPtr key, mode;
  } rows[] = {{"staleness = 3", "dist_ssp"}, {"aggregate = 1", "dist_sync"},
      {"staleness_aware = false", "dist_async"}, {"staleness_aware = true", "dist_ssp"},
      {"staleness_aware = true", "dc_asgd"}, {"compensation = { adaptive = true }", "dc_asgd"}};
  for (auto& row: rows) {
    for (auto& mode: MODES) {
      CAPTURE(row.key.cStr());
      CAPTURE(mode.name);
      // easgd does not push gradients.
      bool isAware =
          row.key.startsWith("staleness_aware") && isAsynchronous(mode) && mode.name != "easgd"_kj;
      bool fits = row.mode == mode.name || isAware;
      auto text = kj::str("mode = '", mode.name, "'\n", row.key);
      CHECK(read(text).errors == (fits ? 0 : 1));
    }
  }
  // `aggregate_from` says whose gradients count, so it needs `aggregate`.
  CHECK(read("mode = 'dist_sync'\naggregate_from = 'any'").errors == 1);
  CHECK(read("mode = 'dist_sync'\naggregate = 2\naggregate_from = 'any'").errors == 0);
  CHECK(read("mode = 'dist_sync'\naggregate = 2\naggregate_from = 'all'").errors == 1);
  CHECK(read("mode = 'dist_sync'\naggregate = 0").errors == 1);
}

TEST_CASE(
    "[kvstore]: a round that needs pushes of more different workers than the job has is refused") {
  auto mistakes = [](kj::StringPtr text, uint workers) {
    configs::Diagnostics diagnostics;
    auto document = configs::parse("x.toml", kj::str("[kvstore]\n", text), diagnostics);
    configs::Reading reading{diagnostics, {}};
    configs::readDocument(*document, reading, [&](configs::Reader& reader) {
      auto config = reader.section("kvstore", "", KvStoreConfig::read);
      config.mode->check(reader, workers);
      return true;
    });
    return diagnostics.count();
  };
  CHECK(mistakes("mode = 'dist_sync'\naggregate = 2", 1) == 1);
  CHECK(mistakes("mode = 'dist_sync'\naggregate = 2", 2) == 0);
  CHECK(mistakes("mode = 'dist_sync'\naggregate = 2\naggregate_from = 'any'", 1) == 0);
  // The only error is that `local` does not have the key.
  CHECK(mistakes("mode = 'local'\naggregate = 2", 1) == 1);
}

TEST_CASE("Modes: a bound of 0 counts like dist_sync, and so does an aggregate of all workers") {
  auto sync = read("mode = 'dist_sync'").config.rounds(4);
  for (auto text: {"mode = 'dist_ssp'\nstaleness = 0"_kj, "mode = 'dist_sync'\naggregate = 4"_kj}) {
    CAPTURE(text.cStr());
    auto rounds = read(text).config.rounds(4);
    CHECK(rounds.counted == sync.counted);
    CHECK(rounds.aggregate == sync.aggregate);
    CHECK(rounds.staleness == sync.staleness);
    CHECK(rounds.keepsSeen == sync.keepsSeen);
    CHECK(rounds.pushesPerUpdate() == sync.pushesPerUpdate());
    CHECK(rounds.divisor(4) == sync.divisor(4));
    CHECK(rounds.needsRest() == sync.needsRest());
  }
  CHECK(read("mode = 'dist_ssp'").config.rounds(4).staleness == 3);
  CHECK(read("mode = 'dist_sync'\naggregate = 3").config.rounds(4).counted == Rounds::FIRST);
  CHECK(
      read("mode = 'dist_sync'\naggregate = 4\naggregate_from = 'any'").config.rounds(4).counted ==
      Rounds::ANY);
  CHECK(read("mode = 'dc_asgd'").config.rounds(4).keepsSeen);
}

TEST_CASE(
    "Modes: each push is an update in asynchronous modes, else an update takes one per worker") {
  for (auto& mode: MODES) {
    CAPTURE(mode.name);
    auto config = read(kj::str("mode = '", mode.name, "'")).config;
    CHECK(config.rounds(4).pushesPerUpdate() == (isAsynchronous(mode) ? 1 : 4));
    CHECK(config.rounds(1).pushesPerUpdate() == 1);
  }
}

TEST_CASE("Modes: only local is limited to a worker with one device") {
  for (auto& mode: MODES) {
    CHECK(mode.severalDevices == (kj::StringPtr(mode.name) != "local"));
  }
}

}  // namespace
}  // namespace rpc
