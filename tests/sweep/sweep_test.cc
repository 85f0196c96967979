// A sweep of small.toml: two batch sizes by two learning rates, as a user runs it.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/logs/run_record.h"
#include "tests/run.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SMALL = "tests/sweep/small.toml"_kj;
constexpr kj::StringPtr NAMES[] = {"batch_size=128,learning_rate=0.05"_kj,
    "batch_size=128,learning_rate=0.1"_kj, "batch_size=256,learning_rate=0.05"_kj,
    "batch_size=256,learning_rate=0.1"_kj};

kj::Own<Command> start(kj::StringPtr runs, kj::ArrayPtr<const kj::StringPtr> more = nullptr) {
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  kj::Vector<kj::StringPtr> words;
  words.addAll(kj::ArrayPtr<const kj::StringPtr>({RUNNER, "run", SMALL, "--runs", runs}));
  words.addAll(more);
  return kj::heap<Command>(words, Command::Surroundings{.environment = environment});
}

Ended run(kj::StringPtr runs, kj::ArrayPtr<const kj::StringPtr> more = nullptr) {
  return start(runs, more)->wait();
}

// Returns the sweep's stdout without the parts that differ between two equal sweeps: the folder and
// the times.
kj::String resultsOf(const Ended& ended, kj::StringPtr runs) {
  kj::Vector<kj::String> lines;
  for (auto& line: linesOf(ended.output)) {
    if (line.startsWith("weights sha256=")) {
      auto at = ::memmem(line.begin(), line.size(), runs.begin(), runs.size());
      KJ_REQUIRE(at != nullptr, line);
      size_t begin = static_cast<const char*>(at) - line.begin();
      lines.add(kj::str(line.slice(0, begin), line.slice(begin + runs.size())));
    } else {
      kj::Vector<kj::ArrayPtr<const char>> cells;
      size_t begin = 0;
      for (size_t i: kj::indices(line)) {
        if (line[i] != '|') continue;
        cells.add(line.slice(begin, i));
        begin = i + 1;
      }
      KJ_REQUIRE(cells.size() >= 10, line);
      cells[cells.size() - 3] = "s/epoch"_kj;
      cells[cells.size() - 2] = "images/s"_kj;
      lines.add(kj::strArray(cells, "|"));
    }
  }
  return kj::strArray(lines, "\n");
}

// Returns the folder of the run `name`: that name, followed by a digest.
kj::String folderOf(kj::StringPtr runs, kj::StringPtr name) {
  auto found = Command({"sh", "-c", kj::str("echo ", runs, "/small/", name, "-????????")}).wait();
  auto path = kj::heapString(found.output.slice(0, found.output.size() - 1));
  KJ_REQUIRE(!contains(path, "?"), "there is none", path);
  return path;
}

// The report in `folder`, its three files one after another.
kj::String reportOf(kj::StringPtr folder) {
  return kj::str(readFile(kj::str(folder, "/table.md")), readFile(kj::str(folder, "/table.csv")),
      readFile(kj::str(folder, "/report.html")));
}

bool isSkipped(const Ended& ended, uint number) {
  return contains(ended.errors,
      kj::str("run ", number, "/4 ", NAMES[number - 1], ": skipped, it has finished"));
}

TEST_CASE("every run has a folder named by its settings, and a second call skips finished runs") {
  auto runs = newFolder();
  auto first = run(runs);
  INFO(first.output, first.errors);
  REQUIRE(first.exitCode == 0);
  auto lines = linesOf(first.output);
  REQUIRE(lines.size() == 2 + 4 + 4);
  CHECK(
      lines[0] ==
      "| batch_size | learning_rate | epochs done | train-accuracy | valid-accuracy | train-loss | "
      "valid-loss | s/epoch | images/s | state |");
  CHECK(lines[3].startsWith("| 128 | 0.1 | 2 | 0."));
  for (uint i = 0; i < 4; ++i) {
    CHECK(lines[2 + i].endsWith("| finished |"));
    auto folder = folderOf(runs, NAMES[i]);
    CHECK(lines[6 + i].endsWith(kj::str("  ", folder)));
    CHECK(contains(first.errors, kj::str("run ", i + 1, "/4 ", NAMES[i], ": accuracy 0.")));
    auto record = runner::readRunRecord(folder);
    CHECK(record.state == runner::RunRecord::FINISHED);
    CHECK(folder.endsWith(kj::str("-", record.digest.slice(0, 8))));
  }
  // The output has no line of a run's log.
  CHECK_FALSE(contains(first.output, "Epoch["));

  auto second = run(runs);
  CHECK(second.exitCode == 0);
  for (uint number = 1; number <= 4; ++number) CHECK(isSkipped(second, number));
  CHECK(second.output == first.output);
  CHECK(contains(first.errors, "sweep small: 4 runs to do, 0 done before, "));
  CHECK(contains(second.errors, "sweep small: 0 runs to do, 4 done before\n"));

  // A change of the file makes other runs.
  auto changed = run(runs, {"--set", "train.epochs=1"});
  CHECK(changed.exitCode == 0);
  CHECK_FALSE(contains(changed.errors, "skipped"));
}

TEST_CASE(
    "a finished run whose weights are missing or damaged runs again, and the sweep says why") {
  auto runs = newFolder();
  auto first = run(runs);
  REQUIRE(first.exitCode == 0);
  auto weights = [&](uint i) { return kj::str(folderOf(runs, NAMES[i]), "/weights.safetensors"); };
  auto whole = readFile(weights(0));
  KJ_SYSCALL(::unlink(weights(0).cStr()));
  KJ_SYSCALL(::truncate(weights(1).cStr(), 100));
  auto values = readFile(weights(2));
  values[values.size() - 1] ^= 1;
  writeFile(weights(2), values);
  auto second = run(runs);
  INFO(second.errors);
  CHECK(second.exitCode == 0);
  constexpr kj::StringPtr CAUSES[] = {
      " is missing"_kj, " is damaged: it is cut short"_kj, " does not hold the weights"_kj};
  for (uint i = 0; i < 3; i++) {
    CAPTURE(i);
    CHECK_FALSE(isSkipped(second, i + 1));
    auto again = kj::str(NAMES[i], ": had finished before, but is run again: ");
    CHECK(contains(second.errors, again));
    CHECK(contains(second.errors, kj::str(weights(i), CAUSES[i])));
  }
  CHECK(isSkipped(second, 4));
  CHECK(resultsOf(second, runs) == resultsOf(first, runs));
  CHECK(readFile(weights(0)) == whole);
}

TEST_CASE("a sweep whose tables cannot be written also says how many of its runs failed") {
  auto runs = newFolder();
  KJ_SYSCALL(::mkdir(kj::str(runs, "/small").cStr(), 0777));
  KJ_SYSCALL(::mkdir(kj::str(runs, "/small/table.md").cStr(), 0777));
  auto ended = run(runs, {"--sweep", "train.optimizer.learning_rate=0.1,1e38"});
  INFO(ended.errors);
  CHECK(ended.exitCode == 1);
  // The table, an empty line, two reasons, two weights.
  CHECK(linesOf(ended.output).size() == 2 + 4 + 1 + 2 + 2);
  CHECK(contains(ended.errors, kj::str("\nerror: cannot write ", runs, "/small/table.md: ")));
  CHECK(contains(ended.errors, "error: 2 of 4 runs failed"));
}

TEST_CASE("a sweep with a failed run also reports missed expectations of the others") {
  auto runs = newFolder();
  auto ended = run(runs, {"--sweep", "train.optimizer.learning_rate=0.1,1e38", "--sweep",
                             "data.batch_size=128", "--set", "expect.train_loss.at_most=0"});
  INFO(ended.errors);
  CHECK(ended.exitCode == 1);
  CHECK(countOf(ended.errors, "expectation missed: learning_rate=0.1: train_loss of epoch 2") == 1);
  CHECK(contains(ended.errors, "error: 1 of 2 runs failed"));
}

TEST_CASE("finished runs are judged by the file at hand, and by the first run of their sweep") {
  auto runs = newFolder();
  kj::StringPtr near[] = {"--set"_kj, "expect.train_loss={ within_of_first_run = 0.0001 }"_kj};
  auto first = run(runs, near);
  INFO(first.output, first.errors);
  CHECK(first.exitCode == 3);
  constexpr kj::StringPtr MISSED = "within 0.0001 of the first run's "_kj;
  CHECK(countOf(first.errors, MISSED) == 3);

  auto table = [](kj::ArrayPtr<const kj::StringPtr> folders) {
    kj::Vector<kj::StringPtr> words;
    words.addAll(kj::ArrayPtr<const kj::StringPtr>({RUNNER, "table"}));
    words.addAll(folders);
    return Command(words).wait();
  };
  auto firstFolder = folderOf(runs, NAMES[0]), third = folderOf(runs, NAMES[2]);
  // The order of the folders does not matter, nor whether the sweep's first run is one of them.
  auto ended = table({third, firstFolder});
  CHECK(ended.exitCode == 3);
  CHECK(countOf(ended.errors, MISSED) == 1);
  CHECK(countOf(table({third}).errors, MISSED) == 1);
  // Outside of the folder of their sweep, it is unknown which run was the first.
  auto elsewhere = newFolder();
  REQUIRE(Command({"cp", "-r", firstFolder, third, elsewhere}).wait().exitCode == 0);
  CHECK(table({elsewhere}).exitCode == 0);

  auto none = run(runs);
  CHECK(none.exitCode == 0);
  CHECK_FALSE(contains(none.errors, "expectation missed"));
  auto other = run(runs, {"--set", "expect.validation_accuracy={ at_least = 0.999 }"});
  CHECK(other.exitCode == 3);
  CHECK(countOf(other.errors, "expected at least 0.999") == 4);
  for (uint number = 1; number <= 4; ++number) CHECK(isSkipped(other, number));
}

TEST_CASE("a sweep of one run prints some rows of a table by steps; table.md has all") {
  auto runs = newFolder();
  auto ended = run(
      runs, {"--set", "log.style=\"tf_replica\"", "--set", "log.every=5", "--set", "train.epochs=1",
                "--sweep", "data.batch_size=128", "--sweep", "train.optimizer.learning_rate=0.1"});
  INFO(ended.output, ended.errors);
  REQUIRE(ended.exitCode == 0);
  CHECK(contains(ended.output, " rows; table.md has all.\n"));
  CHECK(linesOf(ended.output).size() < 40);
  CHECK(linesOf(readFile(kj::str(runs, "/small/table.md"))).size() > 90);
}

TEST_CASE("runner table writes the report of a sweep's folder as the sweep did, in its order") {
  auto runs = newFolder();
  auto ended = run(
      runs, {"--sweep", "data.batch_size=256,128", "--sweep", "train.optimizer.learning_rate=0.1"});
  REQUIRE(ended.exitCode == 0);
  CHECK(linesOf(ended.output)[2].startsWith("| 256 | "));
  auto folder = kj::str(runs, "/small");
  auto written = reportOf(folder);
  auto table = Command({RUNNER, "table", folder}).wait();
  CHECK(table.exitCode == 0);
  CHECK(ended.output.startsWith(table.output));
  CHECK(reportOf(folder) == written);
}

TEST_CASE("a killed sweep makes the missing runs, and ends with the same table and weights") {
  auto whole = newFolder();
  auto unbroken = run(whole);
  REQUIRE(unbroken.exitCode == 0);

  auto runs = newFolder();
  auto broken = start(runs, {"--set", "sweep.parallel_runs=1"});
  REQUIRE(broken->waitForErrors(kj::str("run 2/4 ", NAMES[1], ": accuracy")));
  broken->kill(SIGKILL);
  CHECK(broken->wait().signal == SIGKILL);
  // As if it had been killed in the middle of the second run, and in the middle of a line.
  auto folder = folderOf(runs, NAMES[1]);
  auto events = readFile(kj::str(folder, "/events.jsonl"));
  writeFile(kj::str(folder, "/events.jsonl"), kj::str(events.slice(0, events.size() / 2)));
  writeFile(kj::str(folder, "/notes.txt"), "the user's own");

  auto second = run(runs, {"--set", "sweep.parallel_runs=2"});
  INFO(second.errors);
  CHECK(second.exitCode == 0);
  CHECK(isSkipped(second, 1));
  for (uint number = 2; number <= 4; ++number) CHECK_FALSE(isSkipped(second, number));
  CHECK(resultsOf(second, runs) == resultsOf(unbroken, whole));
  for (auto name: NAMES) {
    auto weights = readFile(kj::str(folderOf(runs, name), "/weights.safetensors"));
    CHECK(weights == readFile(kj::str(folderOf(whole, name), "/weights.safetensors")));
  }
  CHECK(readFile(kj::str(folder, "/notes.txt")) == "the user's own");
}

// A sweep that is ended in the middle of the run `name`.
struct BrokenSweep {
  kj::StringPtr name;
  kj::String runs = newFolder();
  kj::String events;  // of that run, when it had ended
  Ended ended;

  // Ends it by `signal` when the run has `part` in its events, `count` times. Tries again with
  // another sweep if the run was faster.
  BrokenSweep(kj::ArrayPtr<const kj::StringPtr> more, kj::StringPtr name, int signal,
      kj::StringPtr part, uint count)
      : name(name) {
    kj::Vector<kj::StringPtr> words;
    words.addAll(kj::ArrayPtr<const kj::StringPtr>({"--set", "sweep.parallel_runs=1"}));
    words.addAll(more);
    while (!tryToEnd(words, signal, part, count)) runs = newFolder();
  }

  kj::String folder() const { return folderOf(runs, name); }

private:
  bool tryToEnd(
      kj::ArrayPtr<const kj::StringPtr> words, int signal, kj::StringPtr part, uint count) {
    auto sweep = start(runs, words);
    auto itsRoles = kj::str("--folder=", runs, "/small/", name);
    auto waitUntil = [&](auto condition) {
      while (!condition()) REQUIRE_FALSE(sweep->waitForErrors("failed", 0));
    };
    waitUntil([&]() { return processesWith(itsRoles).size() > 0; });
    auto file = kj::str(folder(), "/events.jsonl");
    waitUntil([&]() { return ::access(file.cStr(), F_OK) == 0; });
    waitUntil([&]() { return countOf(readFile(file), part) >= count; });
    auto roles = processesWith(itsRoles);
    sweep->kill(signal);
    ended = sweep->wait();
    REQUIRE(haveEnded(roles, 5));
    events = readFile(file);
    return !contains(events, "\"finished\":{");
  }
};

constexpr kj::StringPtr SAVED = "\"saved\":{"_kj;

TEST_CASE("a killed or interrupted sweep continues its run from the newest checkpoint") {
  kj::StringPtr words[] = {"--set", "train.epochs=4", "--sweep",
      "train.optimizer.learning_rate=0.05,0.1", "--sweep", "data.batch_size=128"};
  auto whole = newFolder();
  auto unbroken = run(whole, words);
  REQUIRE(unbroken.exitCode == 0);
  for (int signal: {SIGKILL, SIGINT}) {
    CAPTURE(signal);
    // Ctrl-C saves the run before it ends. A kill needs an earlier checkpoint.
    kj::Vector<kj::StringPtr> broken;
    broken.addAll(kj::arrayPtr(words, kj::size(words)));
    if (signal == SIGKILL) {
      broken.addAll(kj::ArrayPtr<const kj::StringPtr>({"--set", "checkpoint.every_steps=50"}));
    }
    auto mark = signal == SIGKILL ? SAVED : "\"trained\":{"_kj;
    BrokenSweep sweep(broken, NAMES[1], signal, mark, signal == SIGKILL ? 12 : 1);
    CHECK(contains(sweep.events, SAVED));
    CHECK(sweep.ended.exitCode == (signal == SIGKILL ? -1 : 130));
    auto second = run(sweep.runs, words);
    INFO(second.errors);
    REQUIRE(second.exitCode == 0);
    CHECK(contains(second.errors, kj::str("run 1/2 ", NAMES[0], ": skipped, it has finished")));
    CHECK(contains(second.errors, kj::str("run 2/2 ", NAMES[1], ": continues after step ")));
    auto events = readFile(kj::str(sweep.folder(), "/events.jsonl"));
    CHECK(countOf(events, "\"continued\":{") == 1);
    CHECK(countOf(events, "\"started\":{") == 1);
    CHECK(countOf(events, "\"validated\":{") == 4);
    CHECK(resultsOf(second, sweep.runs) == resultsOf(unbroken, whole));
    auto weights = readFile(kj::str(sweep.folder(), "/weights.safetensors"));
    CHECK(weights == readFile(kj::str(folderOf(whole, NAMES[1]), "/weights.safetensors")));
  }
}

TEST_CASE(
    "a sweep that is killed or interrupted leaves no role behind, and its runs' states show it") {
  for (int signal: {SIGKILL, SIGINT, SIGTERM, SIGHUP}) {
    CAPTURE(signal);
    auto runs = newFolder();
    auto sweep = start(runs, {"--set", "train.epochs=1000000"});
    REQUIRE(sweep->waitForErrors("sweep 0/4 done"));
    auto roles = processesWith(kj::str("--folder=", runs));
    CHECK(roles.size() == 2 * 3);
    // A terminal sends Ctrl-C to the whole group.
    if (signal == SIGINT) {
      sweep->killGroup(signal);
    } else {
      sweep->kill(signal);
    }
    auto ended = sweep->wait(10);
    auto state = runner::RunRecord::UNFINISHED;
    if (signal == SIGKILL) {
      CHECK(haveEnded(roles, 2));
    } else {
      CHECK(ended.exitCode == 130);
      CHECK(contains(ended.errors,
          "\ninterrupted; all processes have ended. Run the same command to continue\n"));
      CHECK(haveEnded(roles, 0));
      state = runner::RunRecord::INTERRUPTED;
    }
    for (uint i = 0; i < 2; ++i)
      CHECK(runner::readRunRecord(folderOf(runs, NAMES[i])).state == state);
  }
}

TEST_CASE("a run that fails does not end others, is reported with its reason, and is tried again") {
  auto runs = newFolder();
  for (uint time = 0; time < 2; ++time) {
    auto ended = run(runs, {"--sweep", "train.optimizer.learning_rate=0.1,1e38"});
    INFO(ended.output, ended.errors);
    CHECK(ended.exitCode == 1);
    auto lines = linesOf(ended.output);
    // The table, an empty line, two reasons, two weights.
    REQUIRE(lines.size() == 2 + 4 + 1 + 2 + 2);
    CHECK(lines[2].endsWith("| finished |"));
    CHECK(lines[3].endsWith("| failed |"));
    CHECK(lines[7].startsWith("- batch_size=128,learning_rate=1e+38 failed: worker 0: "));
    CHECK(contains(lines[7], "nan"));
    CHECK(contains(ended.errors, "error: 2 of 4 runs failed"));
    CHECK(
        contains(ended.errors, "run 1/4 batch_size=128,learning_rate=0.1: skipped") == (time == 1));
    CHECK_FALSE(contains(ended.errors, "learning_rate=1e+38: skipped"));
  }
}

TEST_CASE("a run whose folder another process holds counts as running, and is not touched") {
  auto runs = newFolder();
  REQUIRE(run(runs).exitCode == 0);
  auto folder = folderOf(runs, NAMES[2]);
  auto events = kj::str(folder, "/events.jsonl");
  writeFile(events, "");
  auto tables = reportOf(kj::str(runs, "/small"));
  int raw;
  KJ_SYSCALL(raw = ::open(kj::str(folder, "/.lock").cStr(), O_RDWR | O_CLOEXEC));
  kj::AutoCloseFd lock(raw);
  KJ_SYSCALL(::flock(lock, LOCK_EX | LOCK_NB));

  // The process that holds the lock writes its pid into it.
  writeFile(kj::str(folder, "/.lock"), "4711\n");
  auto ended = run(runs);
  INFO(ended.output, ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, "- batch_size=256,learning_rate=0.05 running: process 4711"));
  CHECK(contains(ended.errors, "1 of 4 runs is running elsewhere"));
  CHECK(readFile(events) == "");
  CHECK(reportOf(kj::str(runs, "/small")) == tables);

  KJ_SYSCALL(::flock(lock, LOCK_UN));
  // The weights in the folder are of a run that nobody knows any more.
  auto weights = readFile(kj::str(folder, "/weights.safetensors"));
  auto again = run(runs);
  CHECK(again.exitCode == 0);
  CHECK(contains(again.errors, "does not say which run is in its folder, so the run begins again"));
  CHECK(readFile(kj::str(folder, "/weights.safetensors.refused")) == weights);
  CHECK(readFile(kj::str(folder, "/weights.safetensors")) == weights);
}

TEST_CASE("a run whose events cannot be read does not end the others") {
  auto runs = newFolder();
  REQUIRE(run(runs).exitCode == 0);
  auto events = kj::str(folderOf(runs, NAMES[0]), "/events.jsonl");
  REQUIRE(Command({"rm", events}).wait().exitCode == 0);
  REQUIRE(Command({"mkdir", events}).wait().exitCode == 0);
  auto missing = folderOf(runs, NAMES[3]);
  REQUIRE(Command({"rm", "-r", missing}).wait().exitCode == 0);
  auto ended = run(runs);
  INFO(ended.output, ended.errors);
  CHECK(ended.exitCode == 1);
  CHECK(contains(ended.errors, kj::str("cannot read ", events, ": it is a directory")));
  CHECK(contains(ended.errors, "error: 1 of 4 runs failed"));
  CHECK(runner::readRunRecord(missing).state == runner::RunRecord::FINISHED);
}

TEST_CASE("a second call of a running sweep leaves its runs and its tables to the first") {
  auto runs = newFolder();
  kj::StringPtr words[] = {"--set", "train.epochs=1000000", "--set", "sweep.parallel_runs=4"};
  auto first = start(runs, words);
  REQUIRE(first->waitForErrors("sweep 0/4 done"));
  auto second = run(runs, words);
  INFO(second.output, second.errors);
  CHECK(second.exitCode == 0);
  for (uint number = 1; number <= 4; ++number) {
    auto line = kj::str(
        "run ", number, "/4 ", NAMES[number - 1], ": running: process ", first->pid(), "\n");
    CHECK(contains(second.errors, line));
  }
  CHECK_FALSE(contains(second.output, "failed"));
  for (auto name: {"table.md", "table.csv", "report.html"}) {
    auto file = kj::str(runs, "/small/", name);
    CHECK(::access(file.cStr(), F_OK) != 0);
  }
}

TEST_CASE("runner table shows the runs of a sweep as running until their process has ended") {
  auto runs = newFolder();
  kj::StringPtr words[] = {"--set", "train.epochs=1000000", "--set", "sweep.parallel_runs=4"};
  auto sweep = start(runs, words);
  REQUIRE(sweep->waitForErrors("sweep 0/4 done"));
  for (auto name: NAMES) {
    auto events = kj::str(folderOf(runs, name), "/events.jsonl");
    while (::access(events.cStr(), F_OK) != 0) REQUIRE_FALSE(sweep->waitForErrors("failed", 0));
  }
  auto table = [&]() {
    auto into = newFolder();
    return Command({RUNNER, "table", kj::str(runs, "/small"), "--into", into}).wait().output;
  };
  auto during = table();
  sweep->kill(SIGKILL);
  sweep->wait();
  auto after = table();
  INFO(during, after);
  for (auto name: NAMES) {
    CHECK(contains(during, kj::str("- ", name, " running: process ", sweep->pid(), "\n")));
    CHECK(contains(after, kj::str("- ", name, " unfinished: ")));
  }
}

TEST_CASE("two calls of one sweep share its runs, and the last one to end writes the whole table") {
  auto runs = newFolder();
  kj::StringPtr words[] = {"--set", "sweep.parallel_runs=1"};
  auto first = start(runs, words);
  auto second = start(runs, words);
  auto firstEnded = first->wait(), secondEnded = second->wait();
  INFO(firstEnded.errors, secondEnded.errors);
  CHECK(firstEnded.exitCode == 0);
  CHECK(secondEnded.exitCode == 0);
  uint trained = 0, finished = 0;
  for (uint number = 1; number <= 4; ++number) {
    auto line = kj::str("run ", number, "/4 ", NAMES[number - 1], ": accuracy 0.");
    trained += contains(firstEnded.errors, line);
    trained += contains(secondEnded.errors, line);
  }
  CHECK(trained == 4);
  for (auto& line: linesOf(readFile(kj::str(runs, "/small/table.md")))) {
    finished += line.endsWith("| finished |");
  }
  CHECK(finished == 4);
}

TEST_CASE("a run that failed counts as finished if another call of the sweep has repeated it") {
  auto runs = newFolder();
  kj::StringPtr words[] = {"--set", "sweep.parallel_runs=1"};
  auto first = start(runs, words);
  auto folder = kj::str("--folder=", runs, "/small/", NAMES[0]);
  for (;;) {
    auto roles = processesWith(folder);
    if (roles.size() > 0) {
      KJ_SYSCALL(::kill(roles[0].pid, SIGKILL));
      break;
    }
    REQUIRE_FALSE(first->waitForErrors("run 1/4 batch_size=128,learning_rate=0.05: acc", 0));
  }
  REQUIRE(first->waitForErrors("run 1/4 batch_size=128,learning_rate=0.05: failed: "));
  // The second call does everything but the run that the first one has begun.
  while (processesWith(kj::str("--folder=", runs, "/small/", NAMES[1])).size() == 0) {
    REQUIRE_FALSE(first->waitForErrors("run 2/4 batch_size=128,learning_rate=0.1: acc", 0));
  }
  first->kill(SIGSTOP);
  auto second = run(runs, words);
  first->kill(SIGCONT);
  auto ended = first->wait();
  INFO(ended.output, ended.errors, second.errors);
  CHECK(contains(second.errors, "run 1/4 batch_size=128,learning_rate=0.05: accuracy 0."));
  CHECK(contains(
      ended.errors, "run 1/4 batch_size=128,learning_rate=0.05: another process has run it again"));
  CHECK(ended.exitCode == 0);
  for (auto& table: {kj::str(ended.output), readFile(kj::str(runs, "/small/table.md"))}) {
    uint finished = 0;
    for (auto& line: linesOf(table)) finished += line.endsWith("| finished |");
    CHECK(finished == 4);
  }
}

TEST_CASE("sweeps of one name that start at the same moment all succeed, and so do their tables") {
  auto runs = newFolder();
  constexpr uint COUNT = 4;
  kj::Vector<kj::Own<Command>> sweeps;
  for (uint i = 0; i < COUNT; ++i) {
    auto seeds = kj::str("train.seed=", 2 * i + 1, ",", 2 * i + 2);
    kj::StringPtr words[] = {"--sweep", seeds, "--sweep", "data.batch_size=1000", "--sweep",
        "train.optimizer.learning_rate=0.1", "--set", "train.epochs=1"};
    sweeps.add(start(runs, words));
  }
  for (auto& sweep: sweeps) {
    auto ended = sweep->wait();
    INFO(ended.errors);
    CHECK(ended.exitCode == 0);
  }
  auto folder = kj::str(runs, "/small");
  kj::Vector<kj::Own<Command>> tables;
  for (uint i = 0; i < COUNT; ++i) {
    kj::StringPtr words[] = {RUNNER, "table", folder};
    tables.add(kj::heap<Command>(words));
  }
  for (auto& table: tables) {
    auto ended = table->wait();
    INFO(ended.errors);
    CHECK(ended.exitCode == 0);
  }
  CHECK_FALSE(contains(Command({"ls", folder}).wait().output, ".part"));
}

// Two runs one after the other, of which the second learns nothing.
struct HalvedSweep {
  kj::String runs = newFolder();
  kj::String folder;  // of the second run, once it exists

  Ended call(kj::StringPtr stop) {
    auto setting = kj::str("sweep.stop=", stop);
    kj::StringPtr words[] = {"--set", "sweep.parallel_runs=1", "--set", "train.epochs=4", "--set",
        setting, "--sweep", "train.optimizer.learning_rate=0.1,1e-7", "--sweep",
        "data.batch_size=128"};
    auto ended = run(runs, words);
    INFO(ended.output, ended.errors);
    CHECK(ended.exitCode == 0);
    folder = folderOf(runs, "batch_size=128,learning_rate=1e-07");
    return ended;
  }
};

TEST_CASE("a run that is behind at a rung is stopped, and a second call skips it") {
  constexpr kj::StringPtr RULE = "{ kind = \"asha\", first_epoch = 1, keep_one_in = 2 }"_kj;
  HalvedSweep sweep;
  auto first = sweep.call(RULE);
  INFO(first.output, first.errors);
  auto lines = linesOf(first.output);
  // The batch size is the same in all runs: it needs no column.
  REQUIRE(lines.size() == 2 + 2 + 1 + 1 + 1);
  CHECK(lines[2].startsWith("| 0.1 | 4 | "));
  CHECK(lines[2].endsWith(" | finished |"));
  CHECK(lines[3].startsWith("| 1e-07 | 1 | "));
  CHECK(lines[3].endsWith(" | stopped |"));
  CHECK(lines[5].startsWith("- learning_rate=1e-07 stopped: at epoch 1: validation accuracy "));
  auto record = runner::readRunRecord(sweep.folder);
  CHECK(record.state == runner::RunRecord::STOPPED);
  CHECK(record.rule == RULE);
  CHECK_FALSE(contains(readFile(kj::str(sweep.folder, "/log.txt")), "Epoch[1]"));
  CHECK(contains(readFile(kj::str(sweep.folder, "/worker-0.log")), ": the job was stopped: "));

  auto second = sweep.call(RULE);
  CHECK(second.output == first.output);
  CHECK(contains(second.errors, "learning_rate=1e-07: skipped, it was stopped before"));
}

TEST_CASE("a run that was stopped by another rule is run again, and one that has finished is not") {
  HalvedSweep sweep;
  sweep.call("{ kind = \"asha\", first_epoch = 1, keep_one_in = 2 }");
  auto later = sweep.call("{ kind = \"asha\", first_epoch = 2, keep_one_in = 2 }");
  CHECK(contains(later.errors, "learning_rate=0.1: skipped, it has finished before"));
  CHECK_FALSE(contains(later.errors, "learning_rate=1e-07: skipped"));
  CHECK(contains(later.output, "- learning_rate=1e-07 stopped: at epoch 2: "));
  CHECK(runner::readRunRecord(sweep.folder).epochRecords.size() == 2);
  CHECK_FALSE(contains(later.errors, "sweep.stop stops no run"));
  // Stopping a run at its last epoch would save nothing.
  auto never = sweep.call("{ kind = \"asha\", first_epoch = 4, keep_one_in = 2 }");
  CHECK(contains(never.errors, "warning: sweep.stop stops no run, because its first_epoch is 4, "));
  CHECK_FALSE(contains(never.output, " stopped"));
}

TEST_CASE("sweep.stop counts the epochs that a continued run has made before the break") {
  // The second run learns nothing. It is stopped at epoch 1, where it is behind the first.
  kj::StringPtr words[] = {"--set", "sweep.parallel_runs=1", "--set",
      "sweep.stop={ kind = \"asha\", first_epoch = 1, keep_one_in = 2 }", "--set",
      "checkpoint.every_steps=50", "--set", "train.epochs=4", "--sweep",
      "train.optimizer.learning_rate=0.1,1e-7", "--sweep", "data.batch_size=128"};
  BrokenSweep broken(words, NAMES[1], SIGKILL, SAVED, 12);
  CHECK(contains(broken.events, "\"validated\":{\"epoch\":1,"));
  auto second = run(broken.runs, words);
  INFO(second.errors);
  REQUIRE(second.exitCode == 0);
  CHECK(countOf(second.errors, ": continues after step ") == 1);
  CHECK(contains(second.output, "- learning_rate=1e-07 stopped: at epoch 1: "));
}

TEST_CASE("explain lists the runs, and check counts them") {
  auto explained = Command({RUNNER, "explain", SMALL, "--sweep", "train.seed=1,2,3"}).wait();
  CHECK(explained.exitCode == 0);
  CHECK(explained.output.startsWith("# 12 runs\n\n1  batch_size=128,learning_rate=0.05,seed=1-"));
  auto checked = Command({RUNNER, "check", SMALL}).wait();
  CHECK(checked.output == "tests/sweep/small.toml: fine, 4 runs\n");
}

TEST_CASE("a role refuses a file with a sweep") {
  auto ended =
      Command({RUNNER, "role", SMALL, "--role", "worker", "--coordinator", "127.0.0.1:1"}).wait();
  CHECK(ended.exitCode == 2);
  CHECK(contains(ended.errors, "tests/sweep/small.toml:28:2: error: this file is a sweep"));
}

}  // namespace
}  // namespace tests
