// Runs whose launcher is killed, and that continue with `runner run --resume`: their results equal
// those of undisturbed runs.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/logs/events.h"
#include "runner/logs/run_folder.h"
#include "tests/faults/failure.h"
#include "tests/faults/resumable_run.h"
#include "tests/faults/roles_by_hand.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr RESUME = "--resume"_kj;

// A way to train, and whether fast tests use it, too.
struct Row {
  kj::StringPtr name;
  kj::Array<kj::StringPtr> settings;
  bool isShort = false;
};

template <typename... Settings>
Row row(kj::StringPtr name, Settings... settings) {
  return {name, kj::heapArray<kj::StringPtr>({kj::StringPtr(settings)...})};
}
template <typename... Settings>
Row shortRow(kj::StringPtr name, Settings... settings) {
  auto result = row(name, settings...);
  result.isShort = true;
  return result;
}

constexpr kj::StringPtr TWO_BIT = "kvstore.compression={ kind = \"2bit\", threshold = 0.05 }"_kj;
constexpr kj::StringPtr TOPK =
    "kvstore.compression={ kind = \"topk\", sparsity = 0.9, momentum = 0.9, "
    "warmup_steps = 200 }"_kj;
constexpr kj::StringPtr LOOKAHEAD = "train.lookahead={ every = 7 }"_kj;
constexpr kj::StringPtr HALVES = "kvstore.wire=float16"_kj;
constexpr kj::StringPtr ALLREDUCE = "kvstore.mode=allreduce"_kj;
constexpr kj::StringPtr NO_SERVERS = "cluster.servers=0"_kj;
constexpr kj::StringPtr BY_WORKERS = "kvstore.update=worker"_kj;
constexpr kj::StringPtr TCP = "kvstore.transport=tcp"_kj;
constexpr kj::StringPtr LOCAL_SGD = "kvstore.mode=local_sgd"_kj;
constexpr kj::StringPtr RMSPROP =
    "train.optimizer={ kind = \"rmsprop\", learning_rate = 0.001, centered = true }"_kj;

// Ways to train whose bits do not depend on time.
kj::Array<Row> exactRows() {
  kj::Vector<Row> rows;
  rows.add(row("local", "kvstore.mode=local", NO_SERVERS, "cluster.workers=1"));
  rows.add(row("device", "kvstore.mode=device", NO_SERVERS, "cluster.workers=1",
      "cluster.devices=[\"cpu\", \"cpu:1\"]", RMSPROP));
  rows.add(row("dist_sync", "kvstore.transport=shared_memory"));
  rows.add(row("dist_sync over TCP", TCP));
  rows.add(row("dist_sync over a Unix socket", "kvstore.transport=unix", RMSPROP));
  rows.add(shortRow("2bit", TWO_BIT, LOOKAHEAD));
  rows.add(row("2bit over TCP", TWO_BIT, TCP, LOOKAHEAD));
  rows.add(row("1bit", "kvstore.compression={ kind = \"1bit\" }"));
  rows.add(row("topk", TOPK, TCP));
  rows.add(row("halves", HALVES));
  rows.add(shortRow("halves over TCP", HALVES, LOOKAHEAD, TCP));
  rows.add(row("halves and 2bit", HALVES, TWO_BIT));
  rows.add(row("lookahead", LOOKAHEAD, RMSPROP));
  rows.add(row("updates by workers", BY_WORKERS, RMSPROP, LOOKAHEAD));
  rows.add(row("updates by workers, halves", BY_WORKERS, HALVES, TCP));
  rows.add(row("updates by workers, 2bit", BY_WORKERS, TWO_BIT));
  rows.add(row("allreduce", ALLREDUCE, NO_SERVERS, RMSPROP));
  rows.add(shortRow("allreduce, topk", ALLREDUCE, NO_SERVERS, TOPK, LOOKAHEAD));
  rows.add(row("allreduce, updates by workers", ALLREDUCE, NO_SERVERS, BY_WORKERS));
  rows.add(shortRow("local_sgd", LOCAL_SGD, LOOKAHEAD));
  rows.add(row("local_sgd over TCP, halves", LOCAL_SGD, TCP, HALVES, RMSPROP));
  rows.add(row("local_sgd, block momentum", LOCAL_SGD,
      "kvstore.outer={ kind = \"block_momentum\" }", "kvstore.local_steps=8"));
  rows.add(row(
      "local_sgd, nesterov, 2bit", LOCAL_SGD, "kvstore.outer={ kind = \"nesterov\" }", TWO_BIT));
  rows.add(row("dist_ssp without staleness", "kvstore.mode=dist_ssp", "kvstore.staleness=0"));
  rows.add(shortRow("roles in one process", "cluster.launcher=inline"));
  rows.add(row("servers in one process", "cluster.servers_per_process=2", TCP));
  rows.add(row("two devices", "cluster.devices=[\"cpu\", \"cpu:1\"]"));
  rows.add(row("fully logged", "log.every=1", "log.tensorboard=true"));
  rows.add(row("seven steps", "checkpoint.every_steps=7", "checkpoint.keep=1"));
  return rows.releaseAsArray();
}

bool isLong() {
  return ::getenv("ALL_MODES") != nullptr;
}

// The results of a run that must not depend on whether it was disturbed.
struct Left {
  kj::String weights, best, confusion, events, log, table;

  Left(const ResumableRun& run, const Trained& trained)
      : weights(kj::str(trained.weightsSha256)),
        best(run.read("best.safetensors")),
        confusion(run.read("confusion.csv")),
        events(run.events()),
        log(run.log()),
        table(run.table()) {}
};

// Checks that two texts have the same lines. Names the first ones that differ.
void checkSameLines(kj::StringPtr disturbed, kj::StringPtr unbroken) {
  if (disturbed == unbroken) return;
  auto is = linesOf(disturbed), was = linesOf(unbroken);
  CHECK(is.size() == was.size());
  for (auto i: kj::zeroTo(kj::min(is.size(), was.size()))) {
    CHECK(is[i] == was[i]);
    if (is[i] != was[i]) return;
  }
}

void checkSame(const Left& disturbed, const Left& unbroken) {
  CHECK(disturbed.weights == unbroken.weights);
  // Too long to be shown.
  CHECK((disturbed.best == unbroken.best));
  checkSameLines(disturbed.confusion, unbroken.confusion);
  checkSameLines(disturbed.events, unbroken.events);
  checkSameLines(disturbed.log, unbroken.log);
  checkSameLines(disturbed.table, unbroken.table);
}

// Inverts a bit in the middle of a file.
void flipByte(kj::StringPtr path) {
  int raw;
  KJ_SYSCALL(raw = ::open(path.cStr(), O_RDWR | O_CLOEXEC), path);
  kj::AutoCloseFd fd(raw);
  auto middle = ::lseek(fd, 0, SEEK_END) / 2;
  char byte;
  KJ_SYSCALL(::pread(fd, &byte, 1, middle));
  byte ^= 1;
  KJ_SYSCALL(::pwrite(fd, &byte, 1, middle));
}

TEST_CASE("a run that is killed and resumed, twice, ends like an undisturbed run") {
  auto variable = ::getenv("ROW");
  kj::StringPtr only = variable == nullptr ? ""_kj : kj::StringPtr(variable);
  uint kills = 0;
  for (auto& row: exactRows()) {
    if (only.size() > 0 ? row.name != only : !isLong() && !row.isShort) continue;
    CAPTURE(row.name);
    ResumableRun undisturbed(row.settings);
    Left unbroken(undisturbed, undisturbed.train());
    ResumableRun run(row.settings);
    kills += run.killAfter(SAVED, 2);
    // The second kill comes in another epoch.
    kills += run.killAfter("\"validated\":{\"epoch\":1,", 1, {RESUME});
    checkSame(Left(run, run.resume()), unbroken);
  }
  // A run may be faster than the signal.
  CHECK(kills > 0);
}

TEST_CASE("a run that lost a role, or was interrupted, ends like an undisturbed run") {
  ResumableRun undisturbed(nullptr);
  Left unbroken(undisturbed, undisturbed.train());
  ResumableRun run(nullptr);
  uint kills = 0;
  for (auto victim: {"coordinator --index=0"_kj, "server --index=1"_kj, "worker --index=0"_kj}) {
    CAPTURE(victim);
    auto command = run.start({RESUME});
    REQUIRE(command->waitForOutput("Epoch"));
    for (auto& process: processesWith(kj::str("--folder=", run.folder))) {
      if (!contains(process.commandLine, kj::str("--role=", victim))) continue;
      ::kill(process.pid, SIGKILL);
      kills++;
    }
    auto ended = command->wait();
    CHECK((ended.exitCode == 1 || ended.exitCode == 0));
  }
  // A run may be faster than the signal.
  CHECK(kills > 0);
  auto command = run.start({RESUME});
  REQUIRE(command->waitForOutput("Epoch"));
  command->killGroup(SIGINT);
  auto code = command->wait().exitCode;
  CHECK((code == 130 || code == 0));
  checkSame(Left(run, run.resume()), unbroken);
}

TEST_CASE("--resume begins a run if there is none, and shows the result of one that has finished") {
  ResumableRun run(nullptr);
  auto first = run.start({RESUME})->wait();
  CHECK(contains(first.errors, "this experiment has no run yet, so a new one begins\n"));
  auto trained = finished(first, run.folder);
  auto events = run.read("events.jsonl");
  auto again = run.start({RESUME})->wait();
  CHECK(finished(again, run.folder).weightsSha256 == trained.weightsSha256);
  CHECK(contains(again.errors, kj::str("the run in ", run.folder, " has finished\n")));
  CHECK(contains(again.output, "| epoch |"));
  CHECK(run.read("events.jsonl") == events);
}

TEST_CASE("--resume prefers the run with the highest number to the same run of a sweep") {
  ResumableRun run(nullptr);
  auto swept = run.start({"--sweep", "train.seed=1"})->wait();
  CHECK(swept.exitCode == 0);
  run.trainUntil(SAVED, 1);
  auto resumed = run.resume();
  CHECK(contains(run.read("events.jsonl"), "\"finished\":{"));
  CHECK(contains(swept.output, resumed.weightsSha256));
}

TEST_CASE("--resume says that earlier runs had other values, before it begins a new one") {
  ResumableRun run(nullptr);
  run.train();
  auto other = run.start({"--set", "train.seed=2", RESUME})->wait();
  CHECK(other.exitCode == 0);
  CHECK(contains(other.errors, "belongs to this experiment: their values differ"));
}

TEST_CASE("--resume names a damaged checkpoint, and uses the one before") {
  ResumableRun undisturbed(nullptr);
  Left unbroken(undisturbed, undisturbed.train());
  for (auto file: {"worker-1.safetensors"_kj, "shard-0.safetensors"_kj, "weights.safetensors"_kj}) {
    CAPTURE(file);
    ResumableRun run(nullptr);
    run.trainUntil(SAVED, 3);
    auto newest = run.newestCheckpoint();
    flipByte(kj::str(newest, "/", file));
    auto ended = run.start({RESUME})->wait();
    INFO(ended.errors);
    CHECK(contains(ended.errors, kj::str("the checkpoint ", newest, " is not used: its ", file)));
    checkSame(Left(run, finished(ended, run.folder)), unbroken);
  }
}

TEST_CASE("--resume ignores damaged events after the newest checkpoint") {
  // The run is so long that it does not end before it is killed.
  kj::StringPtr longer[] = {"train.epochs=9"};
  ResumableRun undisturbed(longer);
  Left unbroken(undisturbed, undisturbed.train());
  ResumableRun run(longer);
  run.trainUntil(SAVED, 3);
  writeFile(kj::str(run.folder, "/events.jsonl"),
      kj::str(run.read("events.jsonl"), "\n\x01\x02\n{\"time_s\":1}\n"));
  checkSame(Left(run, run.resume()), unbroken);
}

TEST_CASE("a coordinator with another experiment refuses to continue a run, and changes nothing") {
  ResumableRun run(nullptr);
  run.trainUntil(SAVED, 3);
  auto events = run.read("events.jsonl");
  auto newest = run.newestCheckpoint();
  Command coordinator({RUNNER, "role", RESUMABLE, "--role", "coordinator", "--resume", "--folder",
      run.folder, "--set", "train.seed=7"});
  auto ended = coordinator.wait();
  CHECK(ended.exitCode == 1);
  CHECK(contains(ended.errors, kj::str("cannot continue the run in ", run.folder, ": ", newest,
                                   " belongs to another experiment. Continue it with the program "
                                   "and the file that made it")));
  CHECK(run.read("events.jsonl") == events);
  CHECK(run.newestCheckpoint() == newest);
}

TEST_CASE("a coordinator refuses to resume a run that has finished or is of another experiment") {
  // Without checkpoints, only the events say of which experiment the run is.
  for (auto every: {"checkpoint.every_steps=100000"_kj, "checkpoint.every_steps=40"_kj}) {
    CAPTURE(every);
    kj::StringPtr settings[] = {every};
    ResumableRun run(settings);
    run.train();
    auto events = run.read("events.jsonl"), file = run.read("experiment.toml");
    // `runner attach` returns the exit code that is noted there.
    auto lock = run.read(".lock");
    auto resume = [&](kj::StringPtr setting) {
      kj::StringPtr words[] = {
          RESUMABLE, "--role", "coordinator", RESUME, "--folder", run.folder, "--set", setting};
      return startByHand(words)->wait();
    };
    auto cannot = kj::str("cannot continue the run in ", run.folder, ": ");
    checkFailed(resume("train.seed=7"), {cannot, "another experiment"_kj});
    checkFailed(resume(every), {kj::str("the run in ", run.folder, " has already finished")});
    kj::StringPtr other[] = {"--folder", run.folder, "--set", "train.seed=7"};
    checkFailed(run.start(other)->wait(), {"has the run of another experiment"});
    kj::StringPtr same[] = {"--folder", run.folder};
    CHECK(run.start(same)->wait().exitCode == 0);
    kj::StringPtr wrong[] = {"--folder", run.folder, "--set", "model.weights=/nowhere"};
    CHECK(run.start(wrong)->wait().exitCode == 2);
    CHECK(run.read("events.jsonl") == events);
    CHECK(run.read("experiment.toml") == file);
    CHECK(run.read(".lock") == lock);
  }
}

TEST_CASE("--resume is refused if only another version could use the checkpoints") {
  ResumableRun run(nullptr);
  run.trainUntil(SAVED, 3);
  // The checksum in a manifest is that of its text without the checksum.
  constexpr kj::StringPtr SCRIPT = R"(
for manifest in "$0"/checkpoints/step-*/manifest.json; do
  sed -i -E 's/"format": [0-9]+/"format": 999/; s/"sha256": "[0-9a-f]+"/"sha256": ""/' "$manifest"
  sum=$(sha256sum <"$manifest")
  sed -i "s/\"sha256\": \"\"/\"sha256\": \"${sum%% *}\"/" "$manifest"
done)"_kj;
  constexpr kj::StringPtr SUMS = "find \"$0\" -type f | sort | xargs sha256sum"_kj;
  REQUIRE(Command({"sh", "-c", SCRIPT, run.folder}).wait().exitCode == 0);
  auto before = Command({"sh", "-c", SUMS, run.folder}).wait().output;
  auto ended = run.start({RESUME})->wait();
  checkFailed(ended, {"cannot continue the run in ", "has format 999 of program version"});
  CHECK(Command({"sh", "-c", SUMS, run.folder}).wait().output == before);
}

TEST_CASE("--resume keeps the checkpoints of a run whose events do not say which run it is") {
  ResumableRun undisturbed(nullptr);
  auto unbroken = undisturbed.train();
  for (bool isNamed: {true, false}) {
    CAPTURE(isNamed);
    ResumableRun run(nullptr);
    run.trainUntil(SAVED, 3);
    auto newest = run.newestCheckpoint();
    writeFile(kj::str(run.folder, "/events.jsonl"), "");
    writeFile(kj::str(run.folder, "/weights.safetensors"), "the only copy");
    kj::StringPtr words[] = {RESUME, "--folder", run.folder};
    auto ended = run.start(kj::arrayPtr(words, isNamed ? 3 : 1))->wait();
    INFO(ended.errors);
    CHECK(contains(ended.errors,
        "What was there is kept as checkpoints.refused, weights.safetensors.refused"));
    CHECK(finished(ended, run.folder).weightsSha256 == unbroken.weightsSha256);
    auto step = newest.slice(KJ_ASSERT_NONNULL(newest.findLast('/')));
    CHECK(run.read(kj::str("checkpoints.refused", step, "/manifest.json")).size() > 0);
    CHECK(run.read("weights.safetensors.refused") == "the only copy");
  }
}

TEST_CASE("--resume with another cluster.instruction_set is refused, and changes nothing") {
  constexpr kj::StringPtr AVX2 = "cluster.instruction_set=avx2"_kj;
  constexpr kj::StringPtr AVX512 = "cluster.instruction_set=avx512"_kj;
  ResumableRun undisturbed(nullptr);
  auto unbroken = undisturbed.train({"--set", AVX2});
  ResumableRun run(nullptr);
  run.trainUntil(SAVED, 2, {"--set", AVX2});
  auto events = run.read("events.jsonl"), newest = run.newestCheckpoint();
  auto why = kj::str("the run in ", run.folder, " has computed with avx2 so far");
  auto wayOut = "Choose \"avx2\" or \"auto\""_kj;
  checkFailed(run.start({RESUME, "--set", AVX512})->wait(), {why, wayOut});
  checkFailed(run.start({RESUME, "--folder", run.folder, "--set", AVX512})->wait(), {why, wayOut});
  kj::StringPtr words[] = {
      RESUMABLE, "--role", "coordinator", RESUME, "--folder", run.folder, "--set", AVX512};
  checkFailed(startByHand(words)->wait(), {why, wayOut});
  CHECK(run.read("events.jsonl") == events);
  CHECK(run.newestCheckpoint() == newest);
  // The same level is fine, and so is "auto".
  run.killAfter(SAVED, 4, {RESUME, "--set", AVX2});
  CHECK(run.resume().weightsSha256 == unbroken.weightsSha256);
}

TEST_CASE("a run that was killed before its first checkpoint begins again in its folder") {
  kj::StringPtr seldom[] = {"checkpoint.every_steps=100000"};
  ResumableRun undisturbed(seldom);
  Left unbroken(undisturbed, undisturbed.train());
  ResumableRun run(seldom);
  run.trainUntil("\"trained\":{\"epoch\":1", 1);
  checkSame(Left(run, run.resume()), unbroken);
}

TEST_CASE("best.safetensors holds the weights of a run that ends after the best epoch") {
  constexpr kj::StringPtr BEST = "\"best\":{\"epoch\":"_kj;
  // The text before the values names the epoch.
  auto valuesOf = [](kj::StringPtr file) {
    uint64_t head;
    memcpy(&head, file.begin(), sizeof(head));
    return kj::str(file.slice(sizeof(head) + head));
  };
  uint earlier = 0;
  for (auto mode: {"dist_sync"_kj, "local"_kj}) {
    CAPTURE(mode);
    auto name = kj::str("kvstore.mode=", mode);
    auto train = [&](uint epochs) {
      auto length = kj::str("train.epochs=", epochs);
      kj::Vector<kj::StringPtr> settings;
      settings.addAll(
          kj::ArrayPtr<const kj::StringPtr>({name, length, "train.optimizer.learning_rate=0.2"}));
      if (mode == "local") {
        settings.addAll(
            kj::ArrayPtr<const kj::StringPtr>({"cluster.servers=0", "cluster.workers=1"}));
      }
      auto run = kj::heap<ResumableRun>(settings);
      run->train();
      return run;
    };
    auto whole = train(5);
    auto events = whole->read("events.jsonl");
    uint best = 0;
    for (auto& line: linesOf(events)) {
      auto found = ::strstr(line.cStr(), BEST.cStr());
      if (found != nullptr) best = ::atoi(found + BEST.size());
    }
    INFO(best);
    auto file = whole->read("best.safetensors");
    CHECK(contains(file, kj::str("\"epoch\":\"", best, "\"")));
    auto alone = train(best);
    CHECK((valuesOf(file) == valuesOf(alone->read("weights.safetensors"))));
    earlier += best < 5;
    auto inspected =
        Command({RUNNER, "inspect", kj::str(whole->folder, "/best.safetensors")}).wait();
    CHECK(contains(inspected.output, kj::str("\nepoch: ", best, "\nvalidation_accuracy: 0.")));
    CHECK(contains(
        whole->read("table.md"), kj::str("Kept in best.safetensors: the weights of epoch ", best)));
  }
  CHECK(earlier > 0);
}

TEST_CASE("a run that keeps best weights only since it was resumed says which ones it lacks") {
  kj::StringPtr settings[] = {"checkpoint.keep_best=false", "train.epochs=9"};
  ResumableRun run(settings);
  // After the first epoch, which has 150 steps.
  run.trainUntil(SAVED, 5);
  auto ended = run.start({RESUME, "--set", "checkpoint.keep_best=true"})->wait();
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.errors,
      "checkpoint.keep_best was not set before, so the weights of the best epoch so far, "
      "epoch "));
  CHECK(countOf(ended.errors, "keep_best") == 1);
}

TEST_CASE("a run can be resumed if cluster.on_loss or cluster.elastic has changed") {
  // A worker that may be lost cannot keep the best weights.
  constexpr kj::StringPtr SETTINGS[] = {"checkpoint.keep_best=false"_kj, "train.epochs=6"_kj};
  ResumableRun undisturbed(SETTINGS);
  auto unbroken = undisturbed.train();
  ResumableRun run(SETTINGS);
  CHECK(run.killAfter(SAVED, 2, {"--set", "cluster.on_loss=restart"}));
  uint saved = 2;
  for (auto elastic: {"cluster.elastic={max=4}", "cluster.elastic={max=3}"}) {
    saved += 2;
    CHECK(run.killAfter(
        SAVED, saved, {RESUME, "--set", "cluster.on_loss=continue", "--set", elastic}));
  }
  CHECK(run.resume().weightsSha256 == unbroken.weightsSha256);
  checkSameLines(run.log(), undisturbed.log());
}

TEST_CASE("with --folder, --resume continues the run in that folder, or begins one") {
  ResumableRun undisturbed(nullptr);
  Left unbroken(undisturbed, undisturbed.train());
  ResumableRun run(nullptr);
  // Batch systems that run a script again call it with the same words.
  kj::StringPtr words[] = {"--folder", run.folder, RESUME};
  run.trainUntil(SAVED, 3, words);
  checkSame(Left(run, run.train(words)), unbroken);
  CHECK(contains(run.read("events.jsonl"), "\"continued\":{"));
  auto again = run.start(words)->wait();
  CHECK(again.exitCode == 0);
  CHECK(contains(again.errors, kj::str("the run in ", run.folder, " has already finished")));
}

TEST_CASE("--resume and --folder write the report of a finished run whose launcher was killed") {
  ResumableRun run(nullptr);
  run.train();
  auto table = run.read("table.md"), page = run.read("report.html");
  kj::StringPtr words[] = {"--folder", run.folder};
  kj::ArrayPtr<const kj::StringPtr> calls[] = {kj::arrayPtr(&RESUME, 1), kj::arrayPtr(words, 2)};
  for (auto call: calls) {
    // As if only an earlier interruption had left a table.
    writeFile(kj::str(run.folder, "/table.md"), "interrupted");
    KJ_SYSCALL(::unlink(kj::str(run.folder, "/report.html").cStr()));
    auto ended = run.start(call)->wait();
    INFO(ended.errors);
    CHECK(ended.exitCode == 0);
    CHECK(run.read("table.md") == table);
    CHECK((run.read("report.html") == page));
  }
}

TEST_CASE("--folder is refused beside --runs, which would have no effect") {
  kj::StringPtr words[] = {
      RUNNER, "run", RESUMABLE, "--folder", "/nowhere/x", "--runs", "/nowhere/runs"};
  auto ended = Command(words).wait();
  CHECK(ended.exitCode == 2);
  CHECK(contains(ended.errors, "--folder names the run's own folder, so --runs has no effect"));
}

TEST_CASE(
    "a finished run whose weights are missing is resumed, and writes the same weights again") {
  ResumableRun run(nullptr);
  auto trained = run.train();
  KJ_SYSCALL(::unlink(kj::str(run.folder, "/weights.safetensors").cStr()));
  auto ended = run.start({RESUME})->wait();
  CHECK(finished(ended, run.folder).weightsSha256 == trained.weightsSha256);
  CHECK(countOf(ended.errors,
            kj::str("the run in ", run.folder, " had finished, but continues: ")) == 1);
}

TEST_CASE("--folder repeats the exit code of a finished run that missed an expectation") {
  kj::StringPtr expects[] = {"expect.validation_accuracy.at_least=0.999"};
  ResumableRun run(expects);
  kj::StringPtr words[] = {"--folder", run.folder};
  CHECK(run.start(words)->wait().exitCode == 3);
  auto again = run.start(words)->wait();
  CHECK(again.exitCode == 3);
  CHECK(contains(again.errors, "has already finished, so nothing was started"));
  // The files of a run that is killed before its first event.
  auto folder = newFolder();
  writeFile(kj::str(folder, "/experiment.toml"), run.read("experiment.toml"));
  kj::StringPtr shorter[] = {"--folder", folder, "--set", "train.epochs=1"};
  CHECK(run.start(shorter)->wait().exitCode == 3);
}

TEST_CASE("--folder refuses a folder whose files no run has written, and keeps them") {
  ResumableRun run(nullptr);
  CHECK(Command({"mkdir", "-p", run.folder}).wait().exitCode == 0);
  for (auto name: {"weights.safetensors", "log.txt", "experiment.toml", "worker-0.log"}) {
    CAPTURE(name);
    auto path = kj::str(run.folder, "/", name);
    writeFile(path, "somebody's");
    auto why = kj::str("a run in this folder would replace ", path, ", which no run has written");
    kj::StringPtr words[] = {"--folder", run.folder};
    checkFailed(run.start(words)->wait(), {why});
    kj::StringPtr resumed[] = {"--folder", run.folder, RESUME};
    checkFailed(run.start(resumed)->wait(), {why});
    Command coordinator(
        {RUNNER, "role", RESUMABLE, "--role", "coordinator", "--folder", run.folder});
    checkFailed(coordinator.wait(), {why});
    CHECK(readFile(path) == "somebody's");
    KJ_SYSCALL(::unlink(path.cStr()));
  }
}

TEST_CASE("schlag: the total time of a resumed run counts from its first start") {
  kj::StringPtr schlag[] = {"log.style=schlag"};
  ResumableRun run(schlag);
  run.trainUntil(SAVED, 3);
  auto ended = run.start({RESUME})->wait();
  REQUIRE(ended.exitCode == 0);
  auto log = run.read("log.txt");
  kj::StringPtr total = strstr(log.cStr(), "Total Time: ");
  auto line = kj::str(total.slice(0, KJ_ASSERT_NONNULL(total.findFirst('\n'))), "\n");
  CHECK(contains(ended.output, line));
  // If the second start counted its time from 0, the training time would fall there.
  double training_s = 0;
  runner::eachEvent({kj::str(run.folder)}, [&](runner::Event::Reader event) {
    if (event.getRole() != runner::Role::WORKER || event.getIndex() != 0) return;
    double now_s = event.isSpeed()   ? event.getSpeed().getTrainingS()
                   : event.isEnded() ? event.getEnded().getTrainingS()
                                     : training_s;
    CHECK(now_s >= training_s);
    training_s = now_s;
  });
  CHECK(training_s > 0);
}

TEST_CASE("--resume is refused while another process works on the run") {
  kj::StringPtr endless[] = {"train.epochs=1000000"};
  ResumableRun run(endless);
  auto working = run.start();
  REQUIRE(working->waitForOutput("Epoch"));
  auto ended = run.start({RESUME})->wait();
  auto why = kj::str("process ", working->pid(), " works in ", run.folder);
  checkFailed(ended, {why});
  checkFailed(run.start({RESUME, "--detach"})->wait(), {why});
  CHECK(working->waitForOutput("Epoch[1]"));
  // Then it is unknown whether a process works on the run.
  auto lock = kj::str(run.folder, "/.lock");
  KJ_SYSCALL(::unlink(lock.cStr()));
  KJ_SYSCALL(::mkdir(lock.cStr(), 0700));
  checkFailed(run.start({RESUME})->wait(), {lock, "Is a directory"});
  CHECK(working->waitForOutput("Epoch[2]"));
}

}  // namespace
}  // namespace tests
