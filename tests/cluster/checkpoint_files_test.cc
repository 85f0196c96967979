// The content of checkpoints, and how `runner inspect` and `runner diff` show it: whole runs.
#include <doctest/doctest.h>

#include "tests/cluster/whole_runs.h"

namespace tests {
namespace {

// A run of 20 steps whose newest checkpoint is that of step 14.
Trained trainBriefly(kj::StringPtr file, Settings settings = nullptr) {
  kj::Vector<kj::StringPtr> all;
  for (auto setting: {"train.steps=20", "checkpoint.every_steps=7", "checkpoint.every_s=0"}) {
    all.add(setting);
  }
  all.addAll(settings);
  return train(file, all);
}

Ended inspect(kj::StringPtr path) {
  return Command({RUNNER, "inspect", path}).wait();
}

Ended diff(kj::StringPtr a, kj::StringPtr b) {
  return Command({RUNNER, "diff", a, b}).wait();
}

kj::String checkpointOf(const Trained& run, uint step, kj::StringPtr file = nullptr) {
  return kj::str(run.folder, "/checkpoints/step-", step, file == nullptr ? "" : "/", file);
}

// Returns the cells of the rows of a table in Markdown.
kj::Vector<kj::Vector<kj::String>> rowsOf(kj::StringPtr text) {
  kj::Vector<kj::Vector<kj::String>> rows;
  for (auto& line: linesOf(text)) {
    if (!line.startsWith("| ") || line.startsWith("| ---")) continue;
    kj::Vector<kj::String> cells;
    size_t begin = 2;
    for (size_t i = 2; i < line.size(); i++) {
      if (line[i] != '|') continue;
      cells.add(kj::heapString(line.slice(begin, kj::max(begin, i - 1))));
      begin = i + 2;
    }
    rows.add(kj::mv(cells));
  }
  return rows;
}

TEST_CASE("checkpoints.md: describes every array of every mode") {
  auto page = readFile("docs/formats/checkpoints.md");
  auto check = [&](kj::StringPtr file, Settings settings, kj::StringPtr special) {
    auto run = trainBriefly(file, settings);
    auto shown = inspect(run.folder);
    INFO(shown.output);
    CHECK(shown.exitCode == 0);
    CHECK(contains(shown.output, kj::str("| ", special, " |")));
    for (auto& row: rowsOf(shown.output)) {
      kj::StringPtr name = row[1];
      if (row[0] == "weights.safetensors" || row[0] == "file") continue;
      auto known = kj::str('`', name, '`');
      KJ_IF_MAYBE(dot, name.findLast('.')) {
        bool isNumbered = *dot + 1 < name.size() && name[*dot + 1] <= '9';
        if (isNumbered) known = kj::str('`', name.slice(0, *dot), ".<n>`");
      }
      CHECK_MESSAGE(contains(page, known), name);
    }
  };
  constexpr auto NO_SERVERS = "cluster.servers=0"_kj;
  check(BATCH_NORM, {"kvstore.compression={ kind = \"topk\" }"}, "store.velocities");
  check(BATCH_NORM, {"kvstore.mode=local", NO_SERVERS, "cluster.workers=1"}, "shard.values");
  check(BATCH_NORM,
      {"kvstore.mode=device", NO_SERVERS, "cluster.workers=1",
          "cluster.devices=[\"cpu:0\", \"cpu:1\"]"},
      "program.device_statistics.1");
  check(MLP, {"kvstore.mode=local_sgd"}, "store.own_steps");
  check(MLP, {"kvstore.mode=easgd"}, "store.own");
  check(MLP, {"kvstore.mode=allreduce", NO_SERVERS}, "shard.optimizer");
  check(MLP, {"kvstore.update=worker"}, "store.parameters");
}

TEST_CASE("a checkpoint has each parameter once if workers and servers have the same ones") {
  auto filesWithValues = [](Settings settings) {
    kj::Vector<kj::String> files;
    for (auto& row: rowsOf(inspect(trainBriefly(MLP, settings).folder).output)) {
      if (row[1] == "shard.values") files.add(kj::mv(row[0]));
    }
    return kj::strArray(files, " ");
  };
  CHECK(filesWithValues(nullptr) == "");
  CHECK(filesWithValues({"kvstore.mode=allreduce", "cluster.servers=0"}) == "");
  CHECK(filesWithValues({"kvstore.mode=easgd"}) == "shard-0.safetensors shard-1.safetensors");
}

TEST_CASE("runner inspect: shows when a checkpoint was made, and its arrays") {
  auto run = trainBriefly(BATCH_NORM);
  auto shown = inspect(run.folder);
  CHECK(shown.errors == "");
  CHECK(contains(shown.output, kj::str("checkpoint       ", checkpointOf(run, 14), "\n")));
  CHECK(contains(shown.output, "saved            step 14 of each worker, in epoch 1\n"));
  CHECK(contains(shown.output, "experiment       sha256 "));
  CHECK(contains(shown.output, "size             "));
  CHECK(contains(shown.output, " in 5 files\n"));
  CHECK(contains(
      shown.output, "| weights.safetensors | conv2d1_weight | F32 | 16×16×3×3 | 9.0 KiB | -"));
  CHECK(contains(shown.output,
      "| worker-1.safetensors | worker.step | U64 | 1 | 8 bytes | 14 | 14 | 14 | all |"));
  CHECK(contains(inspect(checkpointOf(run, 7)).output, "step 7 of each worker"));
  auto weights = inspect(kj::str(run.folder, "/weights.safetensors"));
  CHECK(weights.exitCode == 0);
  CHECK(contains(weights.output, " in 9 arrays\n"));
  auto wrong = inspect("tests/cluster/mlp.toml");
  CHECK(wrong.exitCode == 2);
  CHECK(contains(wrong.errors, "mlp.toml is not a file of weights or of a checkpoint"));
}

TEST_CASE("runner diff: finds no difference between two runs that must be equal") {
  auto a = trainBriefly(MLP), b = trainBriefly(MLP);
  auto same = diff(a.folder, b.folder);
  INFO(same.output);
  CHECK(same.exitCode == 0);
  CHECK(contains(same.output, " compared: nothing differs\n"));
  CHECK(contains(same.output, " of times and traffic not counted"));
  // A file and a checkpoint, in both orders: only the file of the same name counts.
  auto checkpoint = checkpointOf(a, 14), file = checkpointOf(a, 14, "worker-0.safetensors");
  for (auto& ended: {diff(file, checkpoint), diff(checkpoint, file)}) {
    INFO(ended.output);
    CHECK(ended.exitCode == 0);
    CHECK(contains(ended.output, " compared: nothing differs\n"));
  }
  auto weights = diff(kj::str(a.folder, "/weights.safetensors"), b.folder);
  CHECK(weights.exitCode == 3);  // the checkpoint is older
  CHECK(rowsOf(weights.output).size() > 1);
}

TEST_CASE("runner diff: compares final weights if only one of two runs has a checkpoint") {
  auto with = trainBriefly(MLP);
  auto without = train(MLP, {"train.steps=20", "checkpoint.every_s=0"});
  for (auto& ended: {diff(with.folder, without.folder), diff(without.folder, with.folder)}) {
    INFO(ended.output);
    CHECK(ended.exitCode == 0);
    CHECK(contains(ended.output, kj::str(with.folder, "/weights.safetensors\n")));
    CHECK(contains(ended.output, kj::str(without.folder, "/weights.safetensors\n")));
  }
}

TEST_CASE("runner diff: names arrays and keys that differ") {
  auto run = trainBriefly(MLP);
  auto steps = diff(checkpointOf(run, 7), checkpointOf(run, 14));
  INFO(steps.output);
  CHECK(steps.exitCode == 3);
  CHECK(contains(steps.output, "\nstep: 7 in A, and 14 in B\n"));
  CHECK(contains(steps.output, "| worker-0.safetensors | worker.step |  | 1 of 1 | 0 | 7 | 0 |\n"));
  auto byWorkers = trainBriefly(MLP, {"kvstore.update=worker"});
  auto byKeys = diff(checkpointOf(byWorkers, 7), checkpointOf(byWorkers, 14));
  CHECK(contains(byKeys.output, "| worker-0.safetensors | store.parameters | fc1_weight | "));
  // Changes one value of a file of weights.
  auto path = kj::str(run.folder, "/weights.safetensors"), changed = kj::str(run.folder, "/one");
  auto text = readFile(path);
  text[text.size() - 1] ^= 0x80;  // the sign of the last bias
  writeFile(changed, text);
  auto one = diff(path, changed);
  CHECK(one.exitCode == 3);
  CHECK(rowsOf(one.output).size() == 2);
  CHECK(contains(one.output, "| weights.safetensors | fc3_bias |  | 1 of 10 | 9 | "));
  CHECK(contains(one.output, "\n5 arrays are equal\n"));
  auto other = diff(path, checkpointOf(run, 14, "worker-0.safetensors"));
  CHECK(other.exitCode == 3);
  CHECK(contains(other.output, "weights.safetensors: only A has fc1_weight\n"));
  auto missing = diff(path, "/nowhere");
  CHECK(missing.exitCode == 2);
  CHECK(contains(missing.errors, "cannot find /nowhere: No such file or directory"));
}

}  // namespace
}  // namespace tests
