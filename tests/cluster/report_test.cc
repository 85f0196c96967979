// The output of a run at its end: tables, report, missed expectations and an exit code. Also the
// output of `runner table` for finished runs.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <unistd.h>

#include "tests/run.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr MLP = "tests/cluster/mlp.toml"_kj;

// Whether Python's XML parser takes the file.
bool isWellFormed(kj::StringPtr path) {
  return Command({"python3", "-c", "import sys, xml.dom.minidom as m; m.parse(sys.argv[1])", path})
             .wait()
             .exitCode == 0;
}

TEST_CASE("a run that meets its expectation ends with 0, and one that misses it with 3") {
  kj::StringPtr settings[] = {"train.steps=20", "expect.validation_accuracy.at_least=0.3",
      "published.source=\"a <page> & more\"",
      "published.rows=[{ validation_accuracy = 0.5 }, { where = { \"cluster.workers\" = 1 }, "
      "loss = 9 }]"};
  Run good(MLP, settings);
  auto ended = good.command.wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, "Published: a <page> & more\n"));
  CHECK(contains(ended.output, "| the end | validation accuracy | "));
  CHECK_FALSE(contains(ended.output, "train loss"));
  CHECK_FALSE(contains(ended.errors, "expectation missed"));
  CHECK(contains(good.read("report.html"), "a &lt;page&gt; &amp; more"));
  CHECK(contains(good.read("report.html"), "<h2>Store</h2>\n"));
  CHECK(isWellFormed(kj::str(good.folder, "/report.html")));
  CHECK(good.read("table.csv").startsWith("epoch,train-accuracy,valid-accuracy,time\n1,"));

  settings[1] = "expect.validation_accuracy.at_least=1";
  Run bad(MLP, settings);
  auto missed = bad.command.wait();
  CHECK(missed.exitCode == 3);
  CHECK(contains(missed.errors, "expectation missed: validation_accuracy of epoch 1 is 0."));
  CHECK(contains(missed.errors, ", expected at least 1\n"));
  // The run is complete, and its files are there.
  CHECK(contains(missed.output, "weights sha256="));
  CHECK(bad.read("weights.safetensors").size() > 0);
}

TEST_CASE("the report shows the learning rate that each epoch trained with") {
  auto run = train(MLP, {"train.epochs=2", "train.schedule={ kind = \"step\", epochs = [1] }"});
  auto page = readFile(kj::str(run.folder, "/report.html"));
  CHECK(contains(page, "<td class=\"n\">0.05</td></tr>"));
  CHECK(contains(page, "<td class=\"n\">0.005</td></tr>"));
}

TEST_CASE("runner table writes the same pages as the run did, and one page for several runs") {
  auto first = train(MLP, {"train.steps=20"});
  auto second = train(MLP, {"train.steps=20", "train.seed=2"});
  auto table = readFile(kj::str(first.folder, "/table.md"));
  auto page = readFile(kj::str(first.folder, "/report.html"));
  for (auto name: {"/table.md", "/report.html"}) {
    REQUIRE(::unlink(kj::str(first.folder, name).cStr()) == 0);
  }

  auto again = Command({RUNNER, "table", first.folder}).wait();
  CHECK(again.exitCode == 0);
  CHECK(again.output == table);
  CHECK(readFile(kj::str(first.folder, "/table.md")) == table);
  CHECK(readFile(kj::str(first.folder, "/report.html")) == page);

  auto into = kj::str(newFolder(), "/both");
  auto both = Command({RUNNER, "table", first.folder, second.folder, "--into", into}).wait();
  INFO(both.errors);
  CHECK(both.exitCode == 0);
  CHECK(both.output == readFile(kj::str(into, "/table.md")));
  CHECK(contains(both.output, "| seed | epochs done | train-accuracy | "));
  CHECK(isWellFormed(kj::str(into, "/report.html")));
}

// Removes the lines of the run's events that contain `old`, and appends `last`.
void endAnew(kj::StringPtr folder, kj::StringPtr old, kj::StringPtr last) {
  auto path = kj::str(folder, "/events.jsonl");
  auto text = readFile(path);
  kj::Vector<char> kept;
  for (kj::StringPtr rest = text; rest.size() > 0;) {
    size_t end = KJ_ASSERT_NONNULL(rest.findFirst('\n')) + 1;
    auto line = kj::heapString(rest.slice(0, end));
    if (!contains(line, old)) kept.addAll(line);
    rest = rest.slice(end);
  }
  writeFile(path, kj::str(kept, last));
}

TEST_CASE("runner table shows failed and stopped runs, and does not need log.txt") {
  auto whole = train(MLP, {"train.steps=20", "expect.validation_accuracy.at_least=0.3"});
  auto failed = train(MLP, {"train.steps=20", "train.seed=2"});
  endAnew(failed.folder, "\"finished\":", "{\"failed\":{\"reason\":\"a | b\"}}\n");
  REQUIRE(::unlink(kj::str(failed.folder, "/log.txt").cStr()) == 0);
  auto stopped = train(MLP, {"train.steps=20", "train.seed=3", "log.style=schlag"});
  endAnew(stopped.folder, "\"finished\":", "{\"stopped\":{\"epoch\":1,\"reason\":\"behind\"}}\n");
  endAnew(stopped.folder, "\"speed\":", "");
  writeFile(kj::str(stopped.folder, "/log.txt"), "");

  auto alone = Command({RUNNER, "table", failed.folder}).wait();
  INFO(alone.errors);
  CHECK(alone.exitCode == 0);
  CHECK(alone.output.startsWith("| epoch | train-accuracy | valid-accuracy | time |\n"));
  CHECK(contains(alone.output, " failed: a | b\n"));
  auto early = Command({RUNNER, "table", stopped.folder}).wait();
  CHECK(early.exitCode == 0);
  CHECK(early.errors == "");
  CHECK(contains(early.output, " | stopped |\n"));

  auto all = Command({RUNNER, "table", whole.folder, failed.folder, stopped.folder}).wait();
  CHECK(all.exitCode == 0);
  CHECK(contains(all.output, "failed: a | b\n"));
  CHECK_FALSE(contains(all.errors, "warning"));
  CHECK(contains(all.errors, "the report of several RUNS is not written"));
}

TEST_CASE(
    "runner table reports missed expectations as the run did, and names runs by their paths") {
  auto good = train(MLP, {"train.steps=20"});
  Run bad(MLP, {"train.steps=20", "expect.validation_accuracy.at_least=1"});
  CHECK(bad.command.wait().exitCode == 3);
  auto alone = Command({RUNNER, "table", bad.folder}).wait();
  CHECK(alone.exitCode == 3);
  CHECK(contains(alone.errors, "expectation missed: validation_accuracy of epoch 1 is 0."));

  auto both = Command({RUNNER, "table", good.folder, bad.folder}).wait();
  CHECK(both.exitCode == 3);
  CHECK(contains(both.output, kj::str("| ", good.folder, " | 1 |")));
  CHECK(contains(both.errors, kj::str("expectation missed: ", bad.folder, ": ")));
}

}  // namespace
}  // namespace tests
