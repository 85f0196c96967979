#include "rpc/modes.h"

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
  return {config, diagnostics.count()};
}

TEST_CASE("[kvstore]: without keys it is local, slices of 1 MiB, balanced") {
  auto outcome = read("");
  CHECK(outcome.errors == 0);
  CHECK(kj::StringPtr(outcome.config.mode->name) == "local");
  CHECK(!outcome.config.mode->hasServers);
  CHECK(outcome.config.slice_bytes == 1 << 20);
  CHECK(kj::StringPtr(outcome.config.placement->name) == "balanced");
}

TEST_CASE("[kvstore]: a mode is a whole word of the table, never a part of one") {
  CHECK(kj::StringPtr(read("mode = 'dist_async'").config.mode->name) == "dist_async");
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

TEST_CASE("Modes: an update takes a push of every worker, or each push is one") {
  for (auto& mode: MODES) {
    KvStoreConfig config{};
    config.mode = &mode;
    config.staleness = 1;
    bool alone = mode.counts == Mode::BY_ITSELF;
    CHECK(config.rounds(4).pushesPerUpdate() == (alone ? 1 : 4));
    CHECK(config.rounds(1).pushesPerUpdate() == 1);
  }
}

TEST_CASE("Modes: only local is bound to a worker with one device") {
  for (auto& mode: MODES) {
    CHECK(mode.severalDevices == (kj::StringPtr(mode.name) != "local"));
  }
}

}  // namespace
}  // namespace rpc
