// Runs that continue with another number of workers or servers, from the end of an epoch.
#include <capnp/message.h>
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "runner/logs/run_record.h"
#include "tests/comparable_events.h"
#include "tests/faults/resumable_run.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr RESUME = "--resume"_kj;
// Two workers make 149.75 steps per epoch. The checkpoint after 149 is at the end of epoch 1, and
// that after 298 in the middle of epoch 2.
constexpr kj::StringPtr UNEVEN = "data.held_out=54010"_kj;
constexpr uint64_t RECORDS = 5990;
constexpr uint64_t BATCH = 20;

kj::String every(uint64_t steps) {
  return kj::str("checkpoint.every_steps=", steps);
}

// A run with the first number of workers, killed after a checkpoint at the end of epoch 1.
struct Cut {
  explicit Cut(kj::ArrayPtr<const kj::StringPtr> mode, uint workers)
      : numbers(kj::str("cluster.workers=", workers)),
        every(tests::every(RECORDS / (BATCH * workers))),
        run(all(mode)) {
    // On a busy machine, the kill may come after another checkpoint, even after the last one.
    do {
      std::filesystem::remove_all(run.folder.cStr());
      run.trainUntil(SAVED, 1);
    } while (countOf(run.read("events.jsonl"), SAVED) > 1);
  }

  // Continues with `words`, such as --set cluster.workers=3.
  Ended goOn(kj::ArrayPtr<const kj::StringPtr> words) const {
    kj::Vector<kj::StringPtr> all;
    all.addAll(words);
    all.add(RESUME);
    return run.start(all)->wait();
  }
  kj::String folderOf(uint number) const { return kj::str(run.runs, "/resumable/", number); }
  Trained goOnInto(uint number, kj::ArrayPtr<const kj::StringPtr> words) const {
    auto ended = goOn(words);
    CHECK(contains(ended.errors, kj::str("run ", folderOf(number), " continues from ")));
    said = kj::str(ended.errors);
    return finished(ended, folderOf(number));
  }

  const kj::String numbers, every;
  ResumableRun run;
  mutable kj::String said;

private:
  kj::Array<kj::StringPtr> all(kj::ArrayPtr<const kj::StringPtr> mode) const {
    kj::Vector<kj::StringPtr> settings;
    settings.addAll(kj::ArrayPtr<const kj::StringPtr>({UNEVEN, numbers, every}));
    settings.addAll(mode);
    return settings.releaseAsArray();
  }
};

// Returns the workers and images of each epoch of the run in `folder`, such as `2 workers: 5960
// images`.
kj::String epochsOf(kj::StringPtr folder) {
  auto record = runner::readRunRecord(folder);
  return kj::strArray(
      KJ_MAP(epoch, record.epochRecords) {
        CHECK(epoch.validationAccuracy != nullptr);
        return kj::str(epoch.workers, " workers: ", epoch.images, " images");
      },
      ", ");
}

// Returns what epochsOf() must return if the number of workers changes after epoch 1.
kj::String expectedEpochs(uint before, uint now) {
  uint64_t used = RECORDS / (before * BATCH) * (before * BATCH);
  kj::Vector<kj::String> epochs;
  epochs.add(kj::str(before, " workers: ", used, " images"));
  for (uint64_t epoch = 2; epoch <= 3; epoch++) {
    // No record is used twice, and fewer records are left than a step takes.
    uint64_t images = (epoch * RECORDS - used) / (now * BATCH) * (now * BATCH);
    used += images;
    epochs.add(kj::str(now, " workers: ", images, " images"));
  }
  return kj::strArray(epochs, ", ");
}

// Moves the folder of a run away, so that no command finds it. Returns where it is.
kj::String moved(kj::StringPtr folder) {
  auto away = kj::str(newFolder(), "/run");
  KJ_SYSCALL(::rename(folder.cStr(), away.cStr()), folder);
  return away;
}

// An experiment, and its numbers of workers.
struct Row {
  uint before, now;
  kj::Array<kj::StringPtr> settings;
};

template <typename... Settings>
Row rowOf(uint before, uint now, Settings... settings) {
  return {before, now, kj::heapArray<kj::StringPtr>({kj::StringPtr(settings)...})};
}

TEST_CASE("a run continues with another number of workers from the end of an epoch") {
  kj::Vector<Row> rows;
  auto add = [&](uint before, uint now, auto... settings) {
    rows.add(rowOf(before, now, settings...));
  };
  add(2, 3, "kvstore.compression={ kind = \"2bit\", threshold = 0.05 }");
  add(3, 2, "train.lookahead={ every = 7 }");
  add(2, 3, "kvstore.mode=allreduce", "cluster.servers=0");
  add(3, 2, "kvstore.mode=local_sgd");
  if (::getenv("ALL_MODES") != nullptr) {
    add(3, 1, "kvstore.transport=tcp", "kvstore.wire=float16");
    add(1, 4, "kvstore.update=worker", "train.ema={ decay = 0.9 }");
    add(3, 2, "kvstore.update=worker", "kvstore.compression={ kind = \"2bit\" }");
    add(3, 2, "kvstore.mode=allreduce", "cluster.servers=0",
        "kvstore.compression={ kind = \"topk\", sparsity = 0.9, momentum = 0.9 }");
    add(2, 1, "kvstore.mode=local_sgd", "kvstore.outer={ kind = \"block_momentum\" }");
    add(2, 4, "kvstore.mode=local_sgd", "kvstore.outer={ kind = \"nesterov\" }",
        "kvstore.local_steps=8");
    add(2, 3, "train.optimizer={ kind = \"rmsprop\", learning_rate = 0.001, centered = true }",
        "train.schedule={ kind = \"step\", epochs = [1, 2] }");
  }
  for (auto& row: rows) {
    auto text = kj::str(row.before, " to ", row.now, ": ", kj::strArray(row.settings, " "));
    CAPTURE(text);
    Cut cut(row.settings, row.before);
    auto now = kj::str("cluster.workers=", row.now);
    kj::StringPtr words[] = {"--set"_kj, now};
    auto first = cut.goOnInto(2, words);
    CHECK(epochsOf(first.folder) == expectedEpochs(row.before, row.now));
    CHECK(contains(cut.said,
        kj::str(row.now, row.now == 1 ? " worker" : " workers", " in place of ", row.before)));
    auto table = readFile(kj::str(first.folder, "/table.md"));
    CHECK(contains(table, "From epoch 2 on, the run had "));
    auto record = runner::readRunRecord(first.folder);
    CHECK(record.workers == row.now);
    CHECK(record.resizes[0].goesOnFrom == "1");

    // The earlier run is unchanged, so the same command has the same effect again.
    auto away = moved(first.folder);
    auto second = cut.goOnInto(2, words);
    CHECK(second.weightsSha256 == first.weightsSha256);
    CHECK(comparableEvents({kj::mv(away)}) == comparableEvents({kj::str(second.folder)}));
    // It has finished.
    auto third = cut.goOn(words);
    CHECK(contains(third.errors, kj::str("the run in ", second.folder, " has finished")));
  }
}

TEST_CASE("a run that has continued with another number of workers is resumed like any other") {
  kj::StringPtr mode[] = {"kvstore.compression={ kind = \"2bit\", threshold = 0.05 }"_kj};
  Cut cut(mode, 2);
  kj::StringPtr three[] = {"--set"_kj, "cluster.workers=3"_kj};
  auto undisturbed = cut.goOnInto(2, three);
  auto away = moved(undisturbed.folder);

  // SIGTERM saves it.
  kj::StringPtr words[] = {"--set"_kj, "cluster.workers=3"_kj, RESUME};
  auto command = cut.run.start(words);
  REQUIRE(command->waitForOutput("Epoch[1]"));
  command->kill(SIGTERM);
  auto ended = command->wait();
  REQUIRE(ended.exitCode == 130);
  auto resumed = cut.goOn(three);
  CHECK(!contains(resumed.errors, " continues from "));
  auto result = finished(resumed, cut.folderOf(2));
  CHECK(result.weightsSha256 == undisturbed.weightsSha256);
  CHECK(comparableEvents({kj::mv(away)}) == comparableEvents({kj::str(result.folder)}));
  CHECK(epochsOf(result.folder) == expectedEpochs(2, 3));
}

TEST_CASE("a run that has continued with another number of workers does not begin again") {
  Cut cut(nullptr, 2);
  kj::StringPtr three[] = {"--set"_kj, "cluster.workers=3"_kj};
  kj::StringPtr words[] = {"--set"_kj, "cluster.workers=3"_kj, RESUME};
  auto command = cut.run.start(words);
  REQUIRE(command->waitForOutput("Epoch[1]"));
  command->kill(SIGTERM);
  REQUIRE(command->wait().exitCode == 130);
  auto checkpoints = kj::str(cut.folderOf(2), "/checkpoints");
  Command({"rm", "-r", checkpoints}).wait();
  auto refused = cut.goOn(three);
  CHECK(refused.exitCode == 1);
  CHECK(contains(refused.errors, kj::str(cut.folderOf(2), ": it has no usable checkpoint. ")));
  // The advice in the message works.
  Command({"rm", "-r", cut.folderOf(2)}).wait();
  CHECK(epochsOf(cut.goOnInto(2, three).folder) == expectedEpochs(2, 3));
}

TEST_CASE("the number of workers changes twice, and that of servers once") {
  Cut cut({"train.epochs=4"_kj}, 2);
  // Epoch 1 leaves 6020 records up to the end of epoch 2. Three workers take 6000 of them in 100
  // steps, the last of which is step 249.
  kj::StringPtr three[] = {
      "--set"_kj, "cluster.workers=3"_kj, "--set"_kj, "checkpoint.every_steps=249"_kj, RESUME};
  auto command = cut.run.start(three);
  REQUIRE(command->waitForOutput("Epoch[2]"));
  command->kill(SIGTERM);
  CHECK(command->wait().exitCode == 130);
  kj::StringPtr two[] = {"--set"_kj, "cluster.workers=2"_kj, "--set"_kj, "cluster.servers=1"_kj};
  auto last = cut.goOnInto(3, two);
  auto record = runner::readRunRecord(last.folder);
  REQUIRE(record.resizes.size() == 2);
  CHECK(record.resizes[1].goesOnFrom == "2");
  CHECK(record.resizes[1].serversBefore == 2);
  CHECK(record.servers == 1);
  uint64_t images = 0;
  for (auto& epoch: record.epochRecords) images += epoch.images;
  CHECK(images <= 4 * RECORDS);
  CHECK(images > 4 * RECORDS - 2 * BATCH);
}

TEST_CASE("modes that depend on time continue with another number of workers") {
  kj::Vector<Row> rows;
  auto add = [&](uint before, uint now, auto... settings) {
    rows.add(rowOf(before, now, settings...));
  };
  add(2, 3, "kvstore.mode=dist_ssp", "kvstore.staleness=2");
  if (::getenv("ALL_MODES") != nullptr) {
    add(3, 2, "kvstore.mode=dist_async", "kvstore.transport=tcp",
        "kvstore.compression={ kind = \"2bit\" }");
    add(2, 3, "kvstore.mode=dist_async", "kvstore.staleness_aware=true");
    add(3, 2, "kvstore.mode=dc_asgd");
    add(2, 3, "kvstore.mode=easgd");
    add(3, 2, "kvstore.mode=easgd", "kvstore.period_steps=3");
    add(2, 3, "kvstore.aggregate=2");
    add(3, 2, "kvstore.aggregate=2");
    add(3, 2, "kvstore.aggregate=2", "kvstore.wire=float16");
    add(2, 3, "kvstore.aggregate=2", "kvstore.wire=float16");
    add(2, 3, "kvstore.aggregate=3", "kvstore.aggregate_from=any");
  }
  for (auto& row: rows) {
    auto text = kj::str(row.before, " to ", row.now, ": ", kj::strArray(row.settings, " "));
    CAPTURE(text);
    Cut cut(row.settings, row.before);
    auto now = kj::str("cluster.workers=", row.now);
    kj::StringPtr words[] = {"--set"_kj, now};
    auto result = cut.goOnInto(2, words);
    CHECK(epochsOf(result.folder) == expectedEpochs(row.before, row.now));
  }
}

TEST_CASE("in the middle of an epoch, the number of workers cannot change") {
  auto often = every(40);
  kj::StringPtr settings[] = {UNEVEN, often};
  ResumableRun run(settings);
  run.trainUntil(SAVED, 1);
  kj::StringPtr words[] = {"--set"_kj, "cluster.workers=3"_kj, RESUME};
  auto refused = run.start(words)->wait();
  CHECK(refused.exitCode == 1);
  CHECK(contains(refused.errors,
      kj::str("error: the run in ", run.folder,
          " has 2 servers and 2 workers, and cannot continue ",
          "with 2 servers and 3 workers: that is possible only at the end of an epoch, and its ",
          "newest checkpoint is of step ")));
  // On a busy machine, the run may reach a later epoch before it is killed.
  CHECK(contains(refused.errors, ", in the middle of epoch "));
  CHECK(contains(refused.errors,
      ". Train another epoch with `--resume --set cluster.workers=2 --set cluster.servers=2` and "
      "checkpoint.every_s > 0, so that its end is saved"));
  CHECK(::access(kj::str(run.runs, "/resumable/2").cStr(), F_OK) != 0);
  // With the earlier number, the run can still continue, with the same bits.
  ResumableRun undisturbed(settings);
  CHECK(run.resume().weightsSha256 == undisturbed.train().weightsSha256);
}

TEST_CASE("timed checkpoints are also made at the ends of epochs") {
  kj::StringPtr settings[] = {UNEVEN, "checkpoint.every_steps=1000000"_kj,
      "checkpoint.every_s=0.1"_kj, "train.epochs=100000"_kj};
  ResumableRun run(settings);
  auto command = run.start();
  // One of these epochs is saved at its end. That checkpoint stays when newer ones replace others.
  REQUIRE(command->waitForOutput("Epoch[12]"));
  command->kill(SIGTERM);
  CHECK(command->wait().exitCode == 130);
  kj::StringPtr words[] = {"--set"_kj, "cluster.workers=3"_kj, RESUME};
  auto other = run.start(words);
  CHECK(other->waitForOutput("Epoch[13]"));
  other->kill(SIGTERM);
  auto ended = other->wait();
  CHECK(ended.exitCode == 130);
  CHECK(contains(ended.errors, " continues from "));
}

}  // namespace
}  // namespace tests
