#include "tools/results/page.h"

#include <doctest/doctest.h>

#include "configs/language/document.h"
#include "tests/text.h"

namespace tools {
namespace {

constexpr kj::StringPtr HEAD = R"([[machines]]
cluster = "here"
processor = "one"
cores = 2
memory = "1 GiB"
network = "none"
[[datasets]]
name = "digits"
classes = 10
image = "8×8|1"
training = 1200
validation = 100
)"_kj;

constexpr kj::StringPtr ONE_RUN = R"([[experiments]]
name = "small"
dataset = "digits"
[[experiments.runs]]
log = "a"
cluster = "here"
batch_size = 10
kvstore = "local"
)"_kj;

struct Read {
  configs::Diagnostics diagnostics;
  kj::Own<configs::Document> document;
  configs::Reading reading{diagnostics, {}};
  ResultsIndex index;

  Read(kj::StringPtr text, kj::ArrayPtr<const kj::StringPtr> logs)
      : document(configs::parse("index.toml", text, diagnostics)),
        index(configs::readDocument(*document, reading, [&](configs::Reader& reader) {
          return ResultsIndex::read(
              reader, logs, [](kj::StringPtr file) { return file == "configs/a.toml"; });
        })) {}
};

// The log of two workers and two epochs. The second epoch takes 2 s on average.
KeptLog logOf(kj::StringPtr name) {
  return {kj::str(name), kj::str("Node[0] Epoch[0] Train-accuracy=0.5\n"
                                 "Node[0] Epoch[0] Time cost=9\n"
                                 "Node[0] Epoch[0] Validation-accuracy=0.25\n"
                                 "Node[1] Epoch[0] Train-accuracy=0.75\n"
                                 "Node[1] Epoch[0] Validation-accuracy=0.25\n"
                                 "Node[0] Epoch[1] Train-accuracy=0.875\n"
                                 "Node[0] Epoch[1] Time cost=1\n"
                                 "Node[1] Epoch[1] Time cost=3\n"
                                 "Node[0] Epoch[1] Validation-accuracy=0.5\n")};
}

// Returns `page` with tables from the logs a and, if the index has it, b.
kj::String updated(
    kj::StringPtr index, kj::StringPtr page, kj::ArrayPtr<const kj::StringPtr> logs = {"a"}) {
  Read read(kj::str(HEAD, index), logs);
  CHECK(read.diagnostics.format("index.toml") == ""_kj);
  auto kept = KJ_MAP(log, logs) {
    return logOf(log);
  };
  return readPage("PAGE.md", page, read.index, kept).updated();
}

kj::String tableIn(
    kj::StringPtr name, kj::StringPtr index, kj::ArrayPtr<const kj::StringPtr> logs = {"a"}) {
  auto begin = kj::str("<!-- results: ", name, " begin -->\n");
  auto end = kj::str("<!-- results: ", name, " end -->\n");
  auto rest =
      name == "small" ? ""_kj : "<!-- results: small begin -->\n<!-- results: small end -->\n"_kj;
  auto page = updated(index, kj::str(begin, end, rest), logs);
  kj::StringPtr text = page;
  REQUIRE(text.startsWith(kj::str(begin, "\n")));
  auto inside = text.slice(begin.size() + 1);
  size_t length = 0;
  while (!inside.slice(length).startsWith(kj::str("\n", end))) length++;
  return kj::heapString(inside.slice(0, length));
}

kj::String failureOf(kj::StringPtr page) {
  auto exception = KJ_REQUIRE_NONNULL(kj::runCatchingExceptions([&]() { updated(ONE_RUN, page); }));
  return kj::str(exception.getDescription());
}

bool has(kj::StringPtr text, kj::StringPtr part) {
  for (size_t i = 0; i + part.size() <= text.size(); i++) {
    if (text.slice(i).startsWith(part)) return true;
  }
  return false;
}

constexpr kj::StringPtr PLACE =
    "<!-- results: small begin -->\nold\n<!-- results: small end -->\n"_kj;

TEST_CASE("ResultsPage: replaces only the text between markers") {
  auto page = kj::str("# Title\n\n", PLACE, "tail <!-- results: not a marker\n");
  CHECK(updated(ONE_RUN, page) ==
        "# Title\n"
        "\n"
        "<!-- results: small begin -->\n"
        "\n"
        "| epoch | train accuracy | valid accuracy |\n"
        "| --- | --- | --- |\n"
        "| 1 | 0.625000 | 0.250000 |\n"
        "| 2 | 0.875000 | 0.500000 |\n"
        "\n"
        "<!-- results: small end -->\n"
        "tail <!-- results: not a marker\n"_kj);
}

TEST_CASE("ResultsPage: updating twice changes nothing, also without a newline at the end") {
  auto page = updated(ONE_RUN, kj::str(PLACE, "no newline"));
  CHECK(updated(ONE_RUN, page) == page);
}

TEST_CASE(
    "ResultsPage: reports a table edited by hand with its line, and ignores edits outside of "
    "tables") {
  Read read(kj::str(HEAD, ONE_RUN), {"a"});
  auto kept = logOf("a");
  auto complaints = [&](kj::StringPtr page) {
    return readPage("PAGE.md", page, read.index, kj::arrayPtr(&kept, 1)).complaints("PAGE.md");
  };
  auto good = updated(ONE_RUN, PLACE);
  CHECK(complaints(good).size() == 0);
  CHECK(complaints(kj::str("more\n", good, "text\n")).size() == 0);

  auto edited = kj::heapString(good);
  auto digit = KJ_ASSERT_NONNULL(edited.findFirst('8'));
  edited.begin()[digit] = '9';
  auto found = complaints(edited);
  REQUIRE(found.size() == 1);
  CHECK(found[0] ==
        "PAGE.md:6: the table `small` is out of date or was edited by hand. It has "
        "`| 2 | 0.975000 | 0.500000 |` but its logs give `| 2 | 0.875000 | 0.500000 |`"_kj);

  found = complaints("<!-- results: small begin -->\n<!-- results: small end -->");
  REQUIRE(found.size() == 1);
  CHECK(found[0].startsWith("PAGE.md:2: the table `small` is out of date"));
}

TEST_CASE(
    "ResultsPage: refuses markers without a partner, repeated ones, and those of unknown tables") {
  auto begin = "<!-- results: small begin -->\n"_kj, end = "<!-- results: small end -->\n"_kj;
  CHECK(failureOf(begin).startsWith("PAGE.md:1: the table `small` has no end"));
  CHECK(failureOf(end).startsWith("PAGE.md:1: the table `small` has not begun"));
  CHECK(failureOf(kj::str(begin, begin)).startsWith("PAGE.md:2: the table `small`, begun at line"));
  CHECK(failureOf(kj::str(PLACE, begin)).startsWith("PAGE.md:4: the table `small` is at line"));
  CHECK(failureOf("<!-- results: small -->").startsWith("PAGE.md:1 is not a marker"));
  CHECK(failureOf(kj::str("<!-- results: x begin -->\n<!-- results: x end -->\n")) ==
        "PAGE.md:1: there is no table `x`. There are machines, datasets, performance, small"_kj);
  CHECK(failureOf("text").startsWith("PAGE.md has no place for the experiment `small`"));
}

TEST_CASE("ResultsPage: `max` takes the best worker's accuracies, and `epochs` chooses rows") {
  auto index = kj::str(
      "[[experiments]]\nname = \"small\"\ndataset = \"digits\"\nop = \"max\"\n"
      "epochs = [1, 7]\n[[experiments.runs]]\nlog = \"a\"\ncluster = \"here\"\n"
      "batch_size = 10\nkvstore = \"local\"\n");
  CHECK(tableIn("small", index) ==
        "| epoch | train accuracy | valid accuracy |\n"
        "| --- | --- | --- |\n"
        "| 1 | 0.750000 | 0.250000 |\n"_kj);
}

TEST_CASE("ResultsPage: published figures are beside ours, also at epochs that we lack") {
  auto index = kj::str(ONE_RUN, R"(name = "A"
config = "configs/a.toml"
difference = "Other weights."
[experiments.runs.published]
source = "Somebody, 2015"
rows = [{ epoch = 5, train_accuracy = 0.9 }, { validation_accuracy = 0.7, epoch_s = 0.4567 }]
[[experiments.runs]]
log = "b"
cluster = "here"
devices = 2
batch_size = 10
kvstore = "dist_sync"
epoch_images = 2400
)");
  const kj::StringPtr logs[] = {"a", "b"};
  CHECK(tableIn("small", index, logs) ==
        "| run | epoch | train accuracy | valid accuracy | published train | published valid |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| A | 1 | 0.625000 | 0.250000 |  |  |\n"
        "| A | 2 | 0.875000 | 0.500000 |  | 0.700000 |\n"
        "| A | 5 |  |  | 0.900000 |  |\n"
        "| b | 1 | 0.625000 | 0.250000 |  |  |\n"
        "| b | 2 | 0.875000 | 0.500000 |  |  |\n"
        "\n"
        "- A: `configs/a.toml`. Published: Somebody, 2015. Other weights.\n"_kj);
  // The time is the mean over workers and over the epochs after the first.
  CHECK(tableIn("performance", index, logs) ==
        "| run | cluster | machines | devices | batch size / device | kvstore | epoch time (s) | "
        "images/s | published epoch time (s) |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        "| A | here | 1 | 1 | 10 | local | 2.0 | 600 | 0.457 |\n"
        "| b | here | 1 | 2 | 10 | dist_sync | 2.0 | 1,200 |  |\n"_kj);
}

// Returns the table for a run with this log. `more` is appended to its entry in the index.
kj::String stepsTableOf(kj::StringPtr log, kj::StringPtr more = ""_kj) {
  Read read(kj::str(HEAD, ONE_RUN, more), {"a"});
  KeptLog kept{kj::str("a"), kj::str(log)};
  auto page = readPage("PAGE.md", PLACE, read.index, kj::arrayPtr(&kept, 1));
  return kj::mv(page.tables[0].fresh);
}

TEST_CASE(
    "ResultsPage: a run with steps has one row, with the mean of the ends that workers wrote") {
  CHECK(stepsTableOf("Step: 101,  Epoch:  1,  Batch: 100 of 200,  Cost: 3.0000,  AvgTime: 4.00ms\n"
                     "Step: 201,  Epoch:  1,  Batch: 200 of 200,  Cost: 2.0000,  AvgTime: 5.00ms\n"
                     "Step: 202,  Epoch:  1,  Batch: 200 of 200,  Cost: 2.0000,  AvgTime: 2.00ms\n"
                     "Test-Accuracy: 0.50\nTotal Time: 1.00s\nFinal Cost: 2.0000\ndone\n"
                     "Test-Accuracy: 0.25\nTotal Time: 1.00s\nFinal Cost: 1.0000\ndone\n",
            "difference = \"More updates.\"\npublished = { source = \"A post\", "
            "rows = [{ validation_accuracy = 0.42 }] }\n") ==
        "\n| run | steps | global steps | loss | accuracy | s/batch | images/s | "
        "published accuracy |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
        "| a | 200 | 202 | 1.5000 | 0.3750 | 0.004000 | 2,500 | 0.4200 |\n"
        "\n"
        "- Published: A post. More updates.\n\n"_kj);
}

// A line of tf_aws with the worker's and the job's steps.
kj::String awsLine(uint step, uint globalStep, kj::StringPtr loss, kj::StringPtr batch_s) {
  return kj::str("After ", step, " training steps (", globalStep, " global steps), loss on ",
      "training batch is ", loss, ", accuracy is 0.75. (", batch_s, " sec/batch)\n");
}

TEST_CASE("ResultsPage: a run of tf_aws shows its last batch and the time since the start") {
  CHECK(stepsTableOf(kj::str(awsLine(100, 100, "2.5", "0.250"), awsLine(200, 200, "2", "0.150"),
            awsLine(300, 300, "1.25", "0.125"))) ==
        "\n| run | steps | global steps | loss | accuracy | s/batch | images/s |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n"
        "| a | 300 | 300 | 1.2500 | 0.7500 | 0.125000 | 80 |\n\n"_kj);
}

TEST_CASE(
    "ResultsPage: in tf_aws, an update counts as one batch, or as one per worker if synchronous") {
  auto two = [](kj::StringPtr lines) { return stepsTableOf(lines, "devices = 2\n"); };
  // Asynchronous: 200 updates of 10 images in 200 × 0.1 s.
  CHECK(has(two(kj::str(awsLine(100, 200, "1", "0.100"),
                "total step: 90, global_step: 200\ntotal step: 110, global_step: 200\n")),
      "| 0.100000 | 100 |"));
  // Synchronous: an update has the images of both workers.
  CHECK(has(two(kj::str(awsLine(200, 200, "1", "0.100"),
                "total step: 200, global_step: 200\ntotal step: 200, global_step: 200\n")),
      "| 0.100000 | 200 |"));
  // A time that was rounded to 0 gives no speed.
  CHECK(!has(two(awsLine(200, 200, "1", "0.000")), "images/s"));
}

TEST_CASE("ResultsPage: tf_replica's sum over the validation records is not a training loss") {
  CHECK(stepsTableOf("10.0: Worker 0: training step 1 done (global step: 1)\n"
                     "10.5: Worker 0: training step 2 done (global step: 2)\n"
                     "12.0: Worker 0: training step 3 done (global step: 3)\n"
                     "After 3 training step(s), validation cross entropy = 640.5\n") ==
        "\n| run | steps | global steps | validation cross entropy (sum) | s/batch | images/s |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| a | 3 | 3 | 640.5000 | 1.000000 | 10 |\n\n"_kj);
}

TEST_CASE("ResultsPage: figures published of a run with steps are in both tables") {
  Read read(kj::str(HEAD, ONE_RUN, R"([experiments.runs.published]
source = "A post"
rows = [
  { step = 150, train_accuracy = 0.5 }, { step = 1000, loss = 0.25 },
  { loss = 1.5, images_per_s = 500, epoch_s = 3 },
]
)"),
      {"a"});
  CHECK(read.diagnostics.format("index.toml") == ""_kj);
  KeptLog log{
      kj::str("a"), kj::str(awsLine(100, 100, "2.5", "0.250"), awsLine(200, 200, "2", "0.100"))};
  auto page = readPage("PAGE.md",
      kj::str(PLACE, "<!-- results: performance begin -->\n<!-- results: performance end -->\n"),
      read.index, kj::arrayPtr(&log, 1));
  CHECK(page.tables[0].fresh.startsWith(
      "\n| run | steps | global steps | loss | accuracy | s/batch | images/s | published loss | "
      "published accuracy | published images/s |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
      "| a | 200 | 200 | 2.0000 | 0.7500 |  |  |  | 0.5000 |  |\n"
      "| a |  | 1,000 |  |  |  |  | 0.2500 |  |  |\n"
      "| a | 200 | 200 | 2.0000 | 0.7500 | 0.100000 | 100 | 1.5000 |  | 500 |\n"));
  CHECK(page.tables[1].fresh ==
        "\n| run | cluster | machines | devices | batch size / device | kvstore | "
        "epoch time (s) | images/s | published epoch time (s) | published images/s |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        "| a | here | 1 | 1 | 10 | local | 12.0 | 100 | 3.0 | 500 |\n\n"_kj);
}

TEST_CASE("ResultsPage: refuses a log with a figure that cannot be read") {
  Read read(kj::str(HEAD, ONE_RUN), {"a"});
  KeptLog kept{kj::str("a"), kj::str("Epoch[0] Train-accuracy=0.5\nEpoch[1] Train-accuracy=0,5\n")};
  auto exception = KJ_REQUIRE_NONNULL(kj::runCatchingExceptions(
      [&]() { readPage("PAGE.md", PLACE, read.index, kj::arrayPtr(&kept, 1)); }));
  CHECK(exception.getDescription() ==
        "a has 1 line whose number cannot be read; the first is line 2. Keep a log without such "
        "lines."_kj);
}

TEST_CASE("ResultsPage: refuses a published figure that no table shows") {
  auto failure = [](kj::StringPtr log, kj::StringPtr rows) {
    auto published = kj::str("published = { source = \"x\", rows = [", rows, "] }\n");
    auto result = kj::runCatchingExceptions([&]() { stepsTableOf(log, published); });
    return kj::str(KJ_REQUIRE_NONNULL(result).getDescription());
  };
  auto epochs = logOf("a").text;
  auto steps = awsLine(100, 100, "2.5", "0.250");
  CHECK(failure(epochs, "{ step = 5, validation_accuracy = 0.5 }") ==
        "results/index.toml: the run `a` has published figures for step 5 that no table shows: its "
        "log has one line per epoch. Say `epoch`, or neither `step` nor `epoch` for the end"_kj);
  CHECK(has(failure(epochs, "{ loss = 0.5 }"), "has no loss"));
  CHECK(has(failure(epochs,
                "{ validation_accuracy = 0.5 }, { epoch = 2, train_accuracy = 0.1, "
                "validation_accuracy = 0.5 }"),
      "for epoch 2 that no table shows: another row also has its validation accuracy"));
  CHECK(has(failure(epochs, "{ epoch = 1, epoch_s = 5 }, { epoch_s = 6 }"),
      "for the whole run that no table shows: another row also has its epoch time"));
  CHECK(has(failure(steps, "{ epoch = 1, loss = 0.5 }"), "its log has one line per step"));
  CHECK(has(
      failure(steps, "{ train_accuracy = 0.5, validation_accuracy = 0.5 }"), "has one accuracy"));
  CHECK(has(failure(steps, "{ loss = 0.5 }, { loss = 0.25 }"), "for the end that no table shows"));
}

TEST_CASE("ResultsPage: lists machines and data sets, and escapes a bar in a cell") {
  CHECK(tableIn("machines", ONE_RUN) ==
        "| cluster | processor | cores | memory | network |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| here | one | 2 | 1 GiB | none |\n"_kj);
  CHECK(tableIn("datasets", ONE_RUN) ==
        "| data set | classes | image | training images | validation images |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| digits | 10 | 8×8\\|1 | 1,200 | 100 |\n"_kj);
}

TEST_CASE("ResultsPage: the software of machines has a column if it is given") {
  auto machines = kj::str(
      "[[machines]]\ncluster = \"there\"\nprocessor = \"two\"\ncores = 4\nmemory = \"2 GiB\"\n"
      "network = \"wire\"\nsoftware = \"g++ 12.2, oneDNN 2.7\"\n",
      ONE_RUN);
  CHECK(tableIn("machines", machines) ==
        "| cluster | processor | cores | memory | network | software |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| here | one | 2 | 1 GiB | none |  |\n"
        "| there | two | 4 | 2 GiB | wire | g++ 12.2, oneDNN 2.7 |\n"_kj);
}

TEST_CASE("ResultsIndex: reports wrong logs, clusters and data sets at their lines") {
  auto errors = [](kj::StringPtr index, kj::ArrayPtr<const kj::StringPtr> logs) {
    Read read(kj::str(HEAD, index), logs);
    return read.diagnostics.format("index.toml");
  };
  CHECK(has(errors(ONE_RUN, nullptr), "index.toml:17:7: error: there is no `a`"));
  CHECK(has(errors(ONE_RUN, {"a", "b"}), "error: no run has the log `b`"));
  auto elsewhere = kj::str(ONE_RUN,
      "[[experiments]]\nname = \"machines\"\ndataset = \"letters\"\n"
      "[[experiments.runs]]\nlog = \"a\"\ncluster = \"there\"\n"
      "batch_size = 1\nkvstore = \"local\"\n");
  auto found = errors(elsewhere, {"a"});
  CHECK(has(found, "there is no `letters`"));
  CHECK(has(found, "there is no `there`"));
  CHECK(has(found, "`machines` is another table of the page"));
  CHECK(has(errors(kj::str(ONE_RUN, ONE_RUN), {"a"}), "two experiments are named `small`"));
  CHECK(has(errors(kj::str(ONE_RUN, ONE_RUN), {"a"}), "2 runs have the log `a`"));
  CHECK(has(errors(kj::str(ONE_RUN, "config = \"configs/b.toml --set train.epochs=3\"\n"), {"a"}),
      "there is no file `configs/b.toml`"));
  CHECK(errors(kj::str(ONE_RUN, "config = \"configs/a.toml --set train.epochs=3\"\n"), {"a"}) ==
        ""_kj);
  for (auto text: {"config = \"configs/a.toml\\n| x\"\n", "difference = \"a\\tb\"\n",
           "published = { source = \"a\\rb\", rows = [] }\n", "name = \"\\u007f\"\n"}) {
    INFO(text);
    CHECK(has(errors(kj::str(ONE_RUN, text), {"a"}), "this text contains a control character"));
  }
  CHECK(has(errors(kj::str(ONE_RUN,
                       "published = { source = \"x\", rows = [{ where = { a = 1 } }] "
                       "}\n"),
                {"a"}),
      "`where` has no effect here"));
}

}  // namespace
}  // namespace tools
