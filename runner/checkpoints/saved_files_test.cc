#include "runner/checkpoints/saved_files.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <initializer_list>
#include <utility>

#include "runner/checkpoints/saved_part.h"
#include "runner/system/reason.h"
#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

// Returns a file with these arrays of floats, whose values count from 0.
kj::Array<kj::byte> fileWith(std::initializer_list<std::pair<kj::StringPtr, uint>> arrays) {
  PartSaver saver(0);
  for (auto& [name, size]: arrays) {
    auto values = kj::heapArray<float>(size);
    for (auto i: kj::indices(values)) values[i] = float(i);
    saver.floats(name, values);
  }
  auto part = saver.finish();
  auto file = kj::heapArray<kj::byte>(part.size());
  part.copy(0, file);
  return file;
}

// Writes a checkpoint of a network with 5 parameters and 2 statistics.
void writeAt(const RunFolder& run, uint64_t step) {
  const auto weights = fileWith({{"conv_weight", 3}, {"bn_gamma", 2}, {"bn_moving_mean", 2}});
  const auto part = fileWith({{"average.values", 5}, {"program.statistics", 2}, {"store.own", 4}});
  CheckpointFile files[] = {{workerPartName(0), kj::arr(part.asPtr())},
      {kj::str(CHECKPOINT_WEIGHTS), kj::arr(weights.asPtr())}};
  GrowingFiles logs(run.path);
  writeCheckpoint(run, {kj::str("01"), kj::str("avx2"), 1, step, 0.1, 0}, files, 5, logs);
}

SavedFiles readQuietly(kj::StringPtr path) {
  return readSavedFiles(path, [](kj::String why) { FAIL(why); });
}

TEST_CASE("readSavedFiles: a path names a run, a checkpoint, or one of its files") {
  RunFolder run{tests::newFolder()};
  writeAt(run, 3);
  writeAt(run, 4);
  auto checkpoint = kj::str(run.checkpoints(), "/step-4");
  for (kj::StringPtr path: {kj::StringPtr(run.path), kj::StringPtr(checkpoint)}) {
    auto saved = readQuietly(path);
    CHECK(saved.path == checkpoint);
    CHECK(KJ_REQUIRE_NONNULL(saved.checkpoint).point.step == 4);
    REQUIRE(saved.files.size() == 2);
    CHECK(saved.files[0].name == "worker-0.safetensors");
    CHECK(saved.files[1].arrays.size() == 3);
  }
  auto file = readQuietly(kj::str(checkpoint, "/worker-0.safetensors"));
  CHECK(file.checkpoint == nullptr);
  REQUIRE(file.files.size() == 1);
  CHECK(file.files[0].arrays[0].name == "average.values");
}

TEST_CASE("readSavedFiles: a run without a checkpoint stands for its final weights") {
  RunFolder run{tests::newFolder()};
  writeAt(run, 3);
  auto weights = kj::str(run.checkpoints(), "/step-3/", CHECKPOINT_WEIGHTS);
  KJ_SYSCALL(::rename(weights.cStr(), run.weights().cStr()));
  KJ_SYSCALL(::rename(run.checkpoints().cStr(), kj::str(run.path, "/elsewhere").cStr()));
  auto saved = readQuietly(run.path);
  CHECK(saved.path == run.weights());
  CHECK(saved.checkpoint == nullptr);
  CHECK(saved.files.size() == 1);
}

TEST_CASE("readSavedFiles: anything that is not a checkpoint is refused, with its path") {
  RunFolder run{tests::newFolder()};
  auto complaint = [&](kj::StringPtr path) {
    kj::Vector<kj::String> refused;
    auto read = [&]() { readSavedFiles(path, [&](kj::String why) { refused.add(kj::mv(why)); }); };
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(read)) {
      refused.add(reasonOf(*e));
      return kj::strArray(refused, "\n");
    }
    return kj::str();
  };
  CHECK(complaint(run.path).startsWith(
      kj::str(run.path, " is neither a checkpoint nor a run that has a checkpoint or weights")));
  CHECK(contains(complaint("/nowhere"), "cannot find /nowhere: No such file or directory. Name "));
  auto text = kj::str(run.path, "/text");
  tests::writeFile(text, "some text that is long enough");
  CHECK(complaint(text) == kj::str(text,
                               " is not a file of weights or of a checkpoint: it is cut short, or "
                               "not in the safetensors format"));
  writeAt(run, 3);
  auto checkpoint = kj::str(run.checkpoints(), "/step-3");
  tests::writeFile(kj::str(checkpoint, "/worker-0.safetensors"), "damaged");
  auto why = complaint(checkpoint);
  CHECK(why.startsWith(kj::str("the checkpoint ", checkpoint, " cannot be used: its worker-0")));
  CHECK(contains(complaint(run.path), "is not used: its worker-0.safetensors does not have"));
}

TEST_CASE("piecesByKey: divides arrays of parameters and of statistics by the network's keys") {
  RunFolder run{tests::newFolder()};
  writeAt(run, 3);
  auto part = kj::str(run.checkpoints(), "/step-3/worker-0.safetensors");
  auto saved = readQuietly(part);
  auto& arrays = saved.files[0].arrays;
  auto parameters = piecesByKey(arrays[0], saved);
  REQUIRE(parameters.size() == 2);
  CHECK(parameters[0].name == "conv_weight");
  CHECK(parameters[0].values.size() == 12);
  CHECK(parameters[1].name == "bn_gamma");
  CHECK(parameters[1].values.begin() == arrays[0].values.begin() + 12);
  auto statistics = piecesByKey(arrays[1], saved);
  REQUIRE(statistics.size() == 1);
  CHECK(statistics[0].name == "bn_moving_mean");
  // As if the weights were those of another network, whose parameters end within a key.
  saved.parameters_bytes = 8;
  for (size_t i: {0, 1}) {
    auto odd = piecesByKey(arrays[i], saved);
    REQUIRE(odd.size() == 1);
    CHECK(odd[0].name == "");
    CHECK(odd[0].values.size() == arrays[i].values.size());
  }
  auto other = piecesByKey(arrays[2], saved);
  REQUIRE(other.size() == 1);
  CHECK(other[0].name == "");
  KJ_SYSCALL(::unlink(kj::str(run.checkpoints(), "/step-3/", CHECKPOINT_WEIGHTS).cStr()));
  auto alone = readQuietly(part);
  CHECK(piecesByKey(alone.files[0].arrays[0], alone)[0].name == "");
}

}  // namespace
}  // namespace runner
