#include "runner/experiment/published.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

// Returns the losses of the rows of `text` whose conditions its [run] meets.
struct Kept {
  kj::Vector<double> losses;
  kj::String errors;
};

Kept keep(kj::StringPtr text) {
  configs::Diagnostics diagnostics;
  auto document = configs::parse("x.toml", text, diagnostics);
  configs::Reading reading{diagnostics, {}};
  auto published = configs::readDocument(*document, reading, [](configs::Reader& reader) {
    reader.section("run", "A run.", [](configs::Reader& section) {
      section.integer("workers", "Of the job.", {}, 1);
      section.real("rate", "Of learning.", {}, 0.5);
      section.text("mode", "Who waits.", "sync"_kj);
      section.section("rule", "Of updates.", [](configs::Reader& rule) {
        rule.text("kind", "Which.", "adam"_kj);
        return 0;
      });
      return 0;
    });
    return reader.section("published", "Figures.", Published::read);
  });
  published.keepRowsOf(reading.resolved, diagnostics);
  Kept kept;
  for (auto& row: published.rows) kept.losses.add(KJ_ASSERT_NONNULL(row.loss));
  kept.errors = diagnostics.format("x.toml");
  return kept;
}

TEST_CASE("Published: keeps the rows whose conditions all hold") {
  auto kept = keep(R"([run]
workers = 2
rate = 1
[published]
source = "a page"
rows = [
  { loss = 1 },
  { where = { "run.workers" = 2 }, loss = 2 },
  { where = { "run.workers" = 3 }, loss = 3 },
  { where = { run.workers = 2, run.rate = 1.0 }, loss = 4 },
  { where = { "run.workers" = 2, "run.mode" = "async" }, loss = 5 },
  { where = { "run.mode" = "sync" }, loss = 6 },
]
)");
  CHECK(kept.errors == "");
  CHECK(kj::str(kept.losses) == "1, 2, 4, 6");
}

TEST_CASE("Published: reports a condition on an absent key at that key") {
  auto kept = keep(R"([published]
source = "a page"
rows = [{ where = { "run.worker" = 2 }, loss = 1 }]
)");
  CHECK(kept.errors == R"(x.toml:3:21: error: this experiment has no key `run.worker`
  3 | rows = [{ where = { "run.worker" = 2 }, loss = 1 }]
    |                     ^^^^^^^^^^^^
  help: did you mean `run.workers`?
1 error in x.toml; nothing was started.
)");
}

TEST_CASE("Published: reports a condition that compares a number with a string at that string") {
  auto kept = keep(R"([published]
source = "a page"
rows = [{ where = { "run.workers" = "1" }, loss = 1 }]
)");
  CHECK(kept.errors ==
        R"(x.toml:3:37: error: `run.workers` is a number, so this string matches no run
  3 | rows = [{ where = { "run.workers" = "1" }, loss = 1 }]
    |                                     ^^^
  help: write a number without quotes
1 error in x.toml; nothing was started.
)");
}

TEST_CASE("Published: a condition on a key of another `kind` is not an error, and never holds") {
  auto kept = keep(R"([published]
source = "a page"
rows = [{ where = { "run.rule.momentum" = 0.9 }, loss = 1 }, { loss = 2 }]
)");
  CHECK(kept.errors == "");
  CHECK(kj::str(kept.losses) == "2");
}

}  // namespace
}  // namespace runner
