// What the end of a run makes of it: tables, report, expectations and their exit code; and `runner
// table` over what runs left.
#include <doctest/doctest.h>
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

TEST_CASE("a run that reaches what is expected ends with 0, one that does not with 3") {
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
  CHECK(isWellFormed(kj::str(good.folder, "/report.html")));
  CHECK(good.read("table.csv").startsWith("epoch,train-accuracy,valid-accuracy,time\n1,"));

  settings[1] = "expect.validation_accuracy.at_least=1";
  Run bad(MLP, settings);
  auto missed = bad.command.wait();
  CHECK(missed.exitCode == 3);
  CHECK(contains(missed.errors, "expectation missed: validation_accuracy of epoch 1 is 0."));
  CHECK(contains(missed.errors, ", expected at least 1\n"));
  // All ran: what a run leaves is there.
  CHECK(contains(missed.output, "weights sha256="));
  CHECK(bad.read("weights.safetensors").size() > 0);
}

TEST_CASE("runner table makes the same of a run as its end did, and one page of several") {
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
  CHECK(contains(both.output, "| seed | epochs | train-accuracy | "));
  CHECK(isWellFormed(kj::str(into, "/report.html")));
}

TEST_CASE("runner table says where there is no run") {
  auto nowhere = Command({RUNNER, "table", newFolder()}).wait();
  CHECK(nowhere.exitCode != 0);
  CHECK(contains(nowhere.errors, "there is no run in "));
}

}  // namespace
}  // namespace tests
