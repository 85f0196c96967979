// Sweeps as job arrays of Slurm.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>

#include "tests/hosts/slurm_hosts.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SMALL = "tests/sweep/small.toml"_kj;
constexpr uint CANCELLED_WITHIN_S = 60;

// Returns the table on stdout without its times, and the hashes of weights without their folders.
kj::String resultsIn(kj::StringPtr output) {
  kj::Vector<kj::String> lines;
  for (auto& line: linesOf(output)) {
    if (line.startsWith("weights sha256=")) {
      lines.add(kj::heapString(line.slice(0, KJ_REQUIRE_NONNULL(line.findFirst(' ')) + 72)));
      continue;
    }
    kj::Vector<kj::String> cells;
    kj::StringPtr rest = line;
    for (;;) {
      KJ_IF_MAYBE(end, rest.findFirst('|')) {
        cells.add(kj::heapString(rest.slice(0, *end)));
        rest = rest.slice(*end + 1);
      } else {
        break;
      }
    }
    KJ_REQUIRE(cells.size() >= 10, line);
    // Clears the columns s/epoch and images/s.
    for (size_t i: {cells.size() - 2, cells.size() - 3}) cells[i] = kj::str();
    lines.add(kj::strArray(cells, "|"));
  }
  return kj::strArray(lines, "\n");
}

kj::Array<kj::StringPtr> sweepWords(kj::StringPtr runs, kj::ArrayPtr<const kj::StringPtr> more) {
  kj::Vector<kj::StringPtr> words;
  words.addAll(
      kj::ArrayPtr<const kj::StringPtr>({RUNNER, "run", SMALL, "--sweep", "data.batch_size=256",
          "--sweep", "train.optimizer.learning_rate=0.05,0.1,0.2", "--runs", runs}));
  words.addAll(more);
  return words.releaseAsArray();
}

TEST_CASE("a sweep as a job array gives the table of a local sweep, and skips finished runs") {
  KJ_IF_MAYBE(why, Slurm::whyNot()) SKIP_CASE(why->cStr());
  Slurm slurm;
  constexpr kj::StringPtr QUEUED[] = {"--set"_kj, "cluster.launcher=slurm"_kj};
  auto local = newFolder();
  auto alone = slurm.start(0, sweepWords(local, nullptr))->wait();
  REQUIRE(alone.exitCode == 0);

  auto sweep = slurm.start(0, sweepWords(slurm.runs, QUEUED))->wait();
  INFO(sweep.errors);
  CHECK(sweep.exitCode == 0);
  CHECK(resultsIn(sweep.output) == resultsIn(alone.output));
  CHECK(contains(sweep.errors, "as job 1 of Slurm with 3 runs, at most 2 at a time"));
  CHECK(contains(readFile(kj::str(slurm.runs, "/small/table.md")), "| finished |"));

  // The same command skips finished runs, and submits one job for the others.
  slurm.call(0, kj::str("rm ", slurm.runs, "/small/*learning_rate=0.1-*/weights.safetensors"));
  auto again = slurm.start(0, sweepWords(slurm.runs, QUEUED))->wait();
  CHECK(again.exitCode == 0);
  CHECK(contains(again.errors, "1 run to do, 2 done before, as job "));
  CHECK(resultsIn(again.output) == resultsIn(alone.output));

  // One run whose events cannot be read fails alone.
  auto damaged = kj::str(slurm.runs, "/small/*learning_rate=0.05-*");
  slurm.call(
      0, kj::str("truncate --size=0 ", slurm.runs, "/small/*learning_rate=0.2-*/events.jsonl"));
  slurm.call(0, kj::str("f=$(echo ", damaged, "/events.jsonl); rm $f; mkdir $f"));
  auto partly = slurm.start(0, sweepWords(slurm.runs, QUEUED))->wait();
  INFO(partly.errors);
  CHECK(partly.exitCode == 1);
  CHECK(contains(partly.errors, "learning_rate=0.05: failed: "));
  CHECK(contains(partly.errors, "2 runs to do, 1 done before, as job "));
  CHECK(contains(partly.errors, "with 1 run"));
}

TEST_CASE("Ctrl-C ends all tasks of a sweep, and a sweep that lost its process is followed again") {
  KJ_IF_MAYBE(why, Slurm::whyNot()) SKIP_CASE(why->cStr());
  Slurm slurm;
  constexpr kj::StringPtr ENDLESSLY[] = {
      "--set"_kj, "cluster.launcher=slurm"_kj, "--set"_kj, "train.epochs=100000"_kj};
  auto first = kj::str(slurm.runs, "/small/batch_size=256,learning_rate=0.05-*");
  auto awaitTraining =
      kj::str("until grep -q trained ", first, "/events.jsonl 2>/dev/null; do ", "sleep 0.1; done");
  auto launcher = [&]() { return slurm.find(0, kj::str(RUNNER, " run tests/")).pid; };
  auto sweep = slurm.start(0, sweepWords(slurm.runs, ENDLESSLY));
  slurm.call(0, awaitTraining);
  // A second call would submit the runs once more.
  auto second = slurm.start(0, sweepWords(slurm.runs, ENDLESSLY))->wait();
  CHECK(second.exitCode == 1);
  CHECK(contains(second.errors, kj::str(" works on the sweep in ", slurm.runs, "/small already")));
  KJ_SYSCALL(::kill(launcher(), SIGKILL));
  sweep->wait();

  auto next = slurm.start(0, sweepWords(slurm.runs, ENDLESSLY));
  REQUIRE(next->waitForErrors("run 3/3 batch_size=256,learning_rate=0.2: is job 1_2 of Slurm"));
  KJ_SYSCALL(::kill(launcher(), SIGINT));
  auto ended = next->wait(CANCELLED_WITHIN_S);
  CHECK(ended.exitCode == 130);
  CHECK(contains(ended.errors, "interrupted; all jobs have ended"));
  slurm.checkNoJob("small");
  slurm.checkNoRoleRuns();

  // Another user cancels one task, and then the others. Ctrl-C has saved the runs.
  auto cancelled = slurm.start(0, sweepWords(slurm.runs, ENDLESSLY));
  REQUIRE(cancelled->waitForErrors(" of Slurm with 3 runs"));
  auto events = kj::str(first, "/events.jsonl");
  slurm.call(0, kj::str("until grep -q continued ", events, "; do sleep 0.1; done"));
  CHECK(slurm.call(0, kj::str("grep -c started ", events)) == "1\n");
  slurm.call(0, kj::str("scancel $(cat ", first, "/slurm_job)"));
  REQUIRE(cancelled->waitForErrors("learning_rate=0.05: failed: Slurm ended job "));
  slurm.call(0, "scancel --name=small");
  auto failed = cancelled->wait(CANCELLED_WITHIN_S);
  CHECK(failed.exitCode == 1);
  CHECK(contains(failed.errors, "error: 3 of 3 runs failed."));

  constexpr kj::StringPtr ASHA[] = {"--set"_kj, "cluster.launcher=slurm"_kj, "--set"_kj,
      "sweep.stop={ kind = \"asha\", first_epoch = 1, keep_one_in = 2 }"_kj};
  auto refused = slurm.start(0, sweepWords(slurm.runs, ASHA))->wait();
  CHECK(refused.exitCode == 2);
  CHECK(contains(refused.errors, "sweep.stop"));
}

}  // namespace
}  // namespace tests
