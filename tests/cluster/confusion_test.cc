// The confusion matrix of a run, and how its report shows it.
#include <doctest/doctest.h>
#include <unistd.h>

#include "tests/cluster/whole_runs.h"

namespace tests {
namespace {

TEST_CASE(
    "confusion.csv does not depend on who validates, and covers the images of the validation") {
  kj::StringPtr settings[] = {"train.steps=40", "cluster.launcher=inline", ""};
  auto with = [&](kj::StringPtr more) {
    settings[2] = more;
    return train(MLP, settings);
  };
  auto two = with("log.top_k=2");
  auto text = confusionOf(two);
  CHECK(text.startsWith("label,predicted,images\n0,0,"));
  // Every worker validates on all records, and one of them counts.
  auto whole = with("data.validation=whole");
  CHECK(whole.weightsSha256 == two.weightsSha256);
  CHECK(confusionOf(whole) == text);
  // One worker with two devices trains as two workers do.
  auto one =
      train(MLP, {"train.steps=40", "kvstore.mode=device", "cluster.servers=0", "cluster.workers=1",
                     "cluster.devices=[\"cpu\", \"cpu:1\"]", "data.batch_size=200"});
  CHECK(one.weightsSha256 == two.weightsSha256);
  CHECK(confusionOf(one) == text);
}

TEST_CASE("confusion.csv covers the held-out records if the run validates on them") {
  auto run = train(MLP, {"train.steps=5", "data.validate_on=held_out", "data.held_out=1000",
                            "cluster.launcher=inline"});
  confusionOf(run);
  CHECK(contains(readFile(kj::str(run.folder, "/report.html")), "1000 images of 10 classes"));
}

TEST_CASE("the report of a run has its classes, and runner table names a damaged confusion.csv") {
  auto run = train(MLP, {"train.steps=40"});
  auto page = readFile(kj::str(run.folder, "/report.html"));
  CHECK(contains(page, "<h2>Classes</h2>\n"));
  CHECK(contains(page, "10000 images of 10 classes"));
  auto path = kj::str(run.folder, "/confusion.csv");
  writeFile(path, "label,predicted,images\n0,0,1\n0,0,1\n");
  auto ended = Command({RUNNER, "table", run.folder}).wait();
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.errors, kj::str("the accuracy of each class is left out: ", path,
                                   ":3 is not the next label, prediction and number of images: ")));
  CHECK_FALSE(contains(readFile(kj::str(run.folder, "/report.html")), "<h2>Classes</h2>"));
  REQUIRE(::unlink(path.cStr()) == 0);
  CHECK(Command({RUNNER, "table", run.folder}).wait().errors == "");
}

}  // namespace
}  // namespace tests
