// RESULTS.md and results/ of the repository.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/command.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr PARSE_LOG = "tools/parse_log"_kj;

TEST_CASE("RESULTS.md is up to date with results/") {
  auto check = Command({PARSE_LOG, "--update", "RESULTS.md", "--check"}).wait();
  INFO(check.errors, "After a change of results/: parse_log --update RESULTS.md");
  CHECK(check.exitCode == 0);
  CHECK(check.output == ""_kj);
}

// Checks that each of `configs` publishes the accuracies that `log` has after `epochs` (such as
// `1,10`): means over its workers.
void checkPublished(kj::StringPtr log, kj::StringPtr epochs, uint count,
    kj::ArrayPtr<const kj::StringPtr> configs) {
  auto table = Command({PARSE_LOG, log, "--epochs", epochs, "--format", "csv"}).wait();
  INFO(table.output, table.errors);
  // A header, and a line for each epoch.
  auto lines = kj::str(table.output);
  uint rows = 0;
  for (char* line = ::strtok(lines.begin(), "\n"); line != nullptr;
       line = ::strtok(nullptr, "\n")) {
    uint epoch;
    double train, validation;
    if (::sscanf(line, "%u,%lf,%lf", &epoch, &train, &validation) != 3) continue;
    ++rows;
    char row[100];
    ::snprintf(row, sizeof(row), "epoch = %u, train_accuracy = %.6f, validation_accuracy = %.6f",
        epoch, train, validation);
    for (auto name: configs) {
      CAPTURE(name);
      CHECK(contains(readFile(kj::str("configs/", name, ".toml")), row));
    }
  }
  CHECK(rows == count);
}

TEST_CASE("The files that publish MXNet's asynchronous CIFAR-10 run have the means of its log") {
  checkPublished("tests/parse_log/multi_node_async.log", "1,10,20", 3,
      {"cifar10_dist_async", "mxnet_cifar10_dist_async", "mxnet_dist_async_inception"});
}

TEST_CASE("The file that publishes MXNet's asynchronous ILSVRC12 runs has means, not maxima") {
  for (auto log: {"tests/parse_log/page_async.log", "tests/parse_log/page_async_fast.log"}) {
    checkPublished(log, "5,10,15,20", 4, {"mxnet_ilsvrc12_dist_async"});
  }
}

TEST_CASE("results/REFERENCE.md equals the output of parse_log") {
  auto reference = Command({PARSE_LOG, "--index-reference"}).wait();
  CHECK(reference.exitCode == 0);
  CHECK(reference.output == readFile("results/REFERENCE.md"));
}

// A copy of the page and its logs, which a test may change.
struct Copy {
  kj::String folder = newFolder();
  kj::String page = kj::str(folder, "/RESULTS.md");

  Copy() {
    auto copied = Command({"cp", "-rL", "RESULTS.md", "results", "configs", folder}).wait();
    REQUIRE(copied.exitCode == 0);
    auto writable = Command({"chmod", "-R", "u+w", folder}).wait();
    REQUIRE(writable.exitCode == 0);
  }

  Ended run(kj::ArrayPtr<const kj::StringPtr> options = nullptr) {
    kj::Vector<kj::StringPtr> words;
    words.addAll(kj::ArrayPtr<const kj::StringPtr>({PARSE_LOG, "--update", page}));
    words.addAll(options);
    return Command(words).wait();
  }

  // The page's first log.
  kj::String log() {
    auto logs = Command({"sh", "-c", "ls \"$0\"/results/*.log.xz", folder}).wait();
    REQUIRE(logs.exitCode == 0);
    return kj::heapString(logs.output.slice(0, KJ_ASSERT_NONNULL(logs.output.findFirst('\n'))));
  }
};

// Returns `text` with another first decimal of an accuracy in a table.
kj::String withOtherDigit(kj::StringPtr text) {
  auto edited = kj::heapString(text);
  for (size_t i = 0; i + 4 < edited.size(); i++) {
    if (!text.slice(i).startsWith("| 0.")) continue;
    edited.begin()[i + 4] = edited[i + 4] == '9' ? '8' : '9';
    return edited;
  }
  FAIL("no table with an accuracy");
  return edited;
}

TEST_CASE("a digit that was changed by hand is found by --check, and restored by the next update") {
  Copy copy;
  auto good = readFile(copy.page);
  auto edited = withOtherDigit(good);
  writeFile(copy.page, edited);

  auto check = copy.run({"--check"});
  CHECK(check.exitCode == 1);
  CHECK(check.output.startsWith(kj::str(copy.page, ":")));
  CHECK(readFile(copy.page) == edited);

  auto update = copy.run();
  CHECK(update.exitCode == 0);
  CHECK(update.output.endsWith("is rewritten\n"));
  CHECK(readFile(copy.page) == good);
  CHECK(copy.run().output == ""_kj);
}

TEST_CASE(
    "a log that is damaged, missing or not in the index gives exit code 2, and the page stays") {
  Copy copy;
  auto good = readFile(copy.page);
  auto log = copy.log();
  auto content = readFile(log);

  writeFile(log, kj::heapString(content.slice(0, content.size() / 2)));
  auto damaged = copy.run();
  CHECK(damaged.exitCode == 2);
  CHECK(damaged.errors.startsWith(kj::str("error: cannot open ", log)));
  CHECK(damaged.errors.endsWith(
      ". The kept log is cut short or damaged: remove it, and keep the log again with "
      "tools/keep_log.py\n"));

  writeFile(log, "Epoch[0] Train-accuracy=0.5\n");
  auto unpacked = copy.run();
  CHECK(unpacked.exitCode == 2);
  CHECK(contains(unpacked.errors, kj::str(log, " is not an xz file")));

  auto chosen = copy.run({"--run", "1"});
  CHECK(chosen.exitCode == 2);
  CHECK(contains(chosen.errors, "--update takes no other option than --check"));

  REQUIRE(::unlink(log.cStr()) == 0);
  auto gone = copy.run();
  CHECK(gone.exitCode == 2);
  CHECK(gone.errors.startsWith(kj::str(copy.folder, "/results/index.toml:")));

  writeFile(log, content);
  writeFile(kj::str(copy.folder, "/results/unnamed.log.xz"), content);
  auto unnamed = copy.run();
  CHECK(unnamed.exitCode == 2);
  CHECK(readFile(copy.page) == good);
}

TEST_CASE("--update takes no log and needs a page, and --check needs --update") {
  CHECK(Command({PARSE_LOG, "--update", "RESULTS.md", "a.log"}).wait().exitCode == 2);
  CHECK(Command({PARSE_LOG, "--check"}).wait().exitCode == 2);
  auto none = Command({PARSE_LOG, "--update", "NO.md"}).wait();
  CHECK(none.exitCode == 2);
  CHECK(none.errors == "error: cannot read NO.md: No such file or directory\n"_kj);
}

// A run's folder beside a copy of the page, for tests of keep_log.
struct KeptRun {
  Copy copy;
  kj::String run;

  KeptRun(kj::StringPtr name, kj::StringPtr experiment): run(kj::str(copy.folder, "/", name)) {
    REQUIRE(::mkdir(run.cStr(), 0777) == 0);
    write("log.txt",
        "Node[0] Epoch[0] Train-accuracy=0.5\nNode[0] Epoch[0] Validation-accuracy=0.25\n");
    write("experiment.toml", experiment);
    write("events.jsonl", "{\"joined\":{}}\n{\"finished\":{}}\n");
  }

  void write(kj::StringPtr file, kj::StringPtr text) { writeFile(kj::str(run, "/", file), text); }

  Ended keep(kj::StringPtr name = "small") {
    auto here = Command({"pwd"}).wait().output;
    auto script = kj::str(here.slice(0, here.size() - 1), "/tools/keep_log.py");
    return Command({"python3", script, run, name}, {.folder = copy.folder}).wait();
  }

  // Makes a page of only the kept logs, with these entries in the index.
  Ended updatePageOf(kj::StringPtr entries) {
    writeFile(kj::str(copy.folder, "/results/index.toml"),
        kj::str("[[machines]]\ncluster = \"…\"\nprocessor = \"\"\ncores = 1\nmemory = \"\"\n"
                "network = \"\"\n\n[[datasets]]\nname = \"d\"\nclasses = 2\nimage = \"\"\n"
                "training = 100\nvalidation = 100\n\n[[experiments]]\nname = \"small\"\n"
                "dataset = \"d\"\n",
            entries));
    auto others =
        Command({"sh", "-c", "cd \"$0\"/results && ls | grep log.xz | grep -v small | xargs rm -f",
                    copy.folder})
            .wait();
    REQUIRE(others.exitCode == 0);
    writeFile(kj::str(copy.folder, "/configs/small.toml"), "");
    writeFile(copy.page, "<!-- results: small begin -->\n<!-- results: small end -->\n");
    return copy.run();
  }

  bool isKept() {
    return ::access(kj::str(copy.folder, "/results/small.log.xz").cStr(), F_OK) == 0;
  }
};

constexpr kj::StringPtr SMALL =
    "name = \"small\"\ndata = { batch_size = 100 }\nkvstore = { mode = \"device\" }\n"
    "cluster = { workers = 1, devices = [\"cpu:0\", \"cpu:1\"] }\n"_kj;

TEST_CASE("keep_log keeps a run's log once, and prints a valid entry for the index") {
  KeptRun run("1", SMALL);
  auto& copy = run.copy;
  auto kept = run.keep();
  INFO(kept.errors);
  CHECK(kept.exitCode == 0);
  CHECK(kept.output ==
        "[[experiments.runs]]\n"
        "log = \"small\"\n"
        "config = \"configs/small.toml\"\n"
        "cluster = \"…\"\n"
        "devices = 2\n"
        "batch_size = 50\n"
        "kvstore = \"device\"\n"_kj);
  CHECK(run.keep().exitCode == 2);

  // The page takes both, once the cluster is named.
  auto update = run.updatePageOf(kept.output);
  INFO(update.errors);
  CHECK(update.exitCode == 0);
  CHECK(readFile(copy.page) ==
        "<!-- results: small begin -->\n"
        "\n"
        "| epoch | train accuracy | valid accuracy |\n"
        "| --- | --- | --- |\n"
        "| 1 | 0.500000 | 0.250000 |\n"
        "\n"
        "- `configs/small.toml`.\n"
        "\n"
        "<!-- results: small end -->\n"_kj);
}

TEST_CASE("--update shows two runs in one table, each under its name") {
  KeptRun run("1", SMALL);
  auto first = run.keep();
  run.write("log.txt",
      "Node[0] Epoch[0] Train-accuracy=0.75\nNode[0] Epoch[0] Validation-accuracy=0.5\n"
      "Node[0] Epoch[1] Train-accuracy=0.875\nNode[0] Epoch[1] Validation-accuracy=0.625\n");
  auto second = run.keep("small_again");
  INFO(first.errors, second.errors);
  auto update = run.updatePageOf(kj::str(first.output, second.output));
  INFO(update.errors);
  CHECK(update.exitCode == 0);
  CHECK(readFile(run.copy.page) ==
        "<!-- results: small begin -->\n"
        "\n"
        "| run | epoch | train accuracy | valid accuracy |\n"
        "| --- | --- | --- | --- |\n"
        "| small | 1 | 0.500000 | 0.250000 |\n"
        "| small_again | 1 | 0.750000 | 0.500000 |\n"
        "| small_again | 2 | 0.875000 | 0.625000 |\n"
        "\n"
        "- small: `configs/small.toml`.\n"
        "- small_again: `configs/small.toml`.\n"
        "\n"
        "<!-- results: small end -->\n"_kj);
}

TEST_CASE("--update refuses a kept log of two runs, and names it") {
  KeptRun run("1", SMALL);
  run.write("log.txt",
      "Node[0] Epoch[0] Train-accuracy=0.5\nNode[0] Epoch[0] Validation-accuracy=0.25\n"
      "Node[0] Epoch[0] Train-accuracy=0.5\nNode[0] Epoch[0] Validation-accuracy=0.25\n");
  auto update = run.updatePageOf(run.keep().output);
  CHECK(update.exitCode == 2);
  CHECK(update.errors ==
        "error: small holds 2 runs: line 1 is Node[0] Epoch[0], and line 3 is Node[0] Epoch[0] "
        "again. Keep each run in a separate log.\n"_kj);
}

TEST_CASE("keep_log writes the name of a sweep's run, the images per epoch and published figures") {
  KeptRun run("workers=2,epochs=20-3fa9c2d1",
      "name = \"small\"\nkvstore = { mode = \"dist_async\" }\n"
      "[data]\ndataset = \"mnist\"\npart = \"whole\"\nheld_out = 5000\nbatch_size = 100\n"
      "[cluster]\nworkers = 2\n"
      "[published]\nsource = \"A \\\"post\\\"\"\nrows = [\n"
      "{ where = { \"cluster.workers\" = 2 }, validation_accuracy = 0.58, epoch_s = 8.5 },\n"
      "{ where = { cluster = { workers = 3 } }, validation_accuracy = 0.65 },\n"
      "{ where = { \"data.seed\" = 1 }, loss = 2 },\n{ epoch = 1, train_accuracy = 0.5 },\n]\n");
  auto kept = run.keep();
  INFO(kept.errors);
  CHECK(kept.output ==
        "[[experiments.runs]]\n"
        "log = \"small\"\n"
        "name = \"small, workers=2, epochs=20\"\n"
        "config = \"configs/small.toml\"\n"
        "cluster = \"…\"\n"
        "devices = 2\n"
        "batch_size = 100\n"
        "kvstore = \"dist_async\"\n"
        "epoch_images = 110000  # every worker reads all records\n"
        "\n"
        "[experiments.runs.published]\n"
        "source = \"A \\\"post\\\"\"\n"
        "rows = [{ validation_accuracy = 0.58, epoch_s = 8.5 }, "
        "{ epoch = 1, train_accuracy = 0.5 }]\n"_kj);
}

TEST_CASE("keep_log refuses in one sentence a run that is damaged or has not finished") {
  auto refusal = [](KeptRun& run) {
    auto ended = run.keep();
    CHECK(ended.exitCode == 2);
    CHECK(ended.output == ""_kj);
    CHECK(KJ_ASSERT_NONNULL(ended.errors.findFirst('\n')) == ended.errors.size() - 1);
    CHECK(!run.isKept());
    return kj::mv(ended.errors);
  };
  KeptRun run("1", "name = \n");
  CHECK(refusal(run).startsWith(kj::str(run.run, "/experiment.toml is damaged: ")));
  run.write("experiment.toml", "name = \"small\"\n");
  CHECK(refusal(run).startsWith(kj::str(run.run, "/experiment.toml is damaged: ")));
  run.write("experiment.toml", SMALL);
  for (auto events: {"", "{\"joined\":{}}\n", "{\"finished\":{}}\n{\"fini"}) {
    run.write("events.jsonl", events);
    CHECK(refusal(run) == kj::str("the run in ", run.run,
                              " has not finished: run it to its end, then keep its log\n"));
  }
  REQUIRE(::unlink(kj::str(run.run, "/events.jsonl").cStr()) == 0);
  CHECK(refusal(run).startsWith(kj::str(run.run, " is not the folder of a run: ")));
}

}  // namespace
}  // namespace tests
