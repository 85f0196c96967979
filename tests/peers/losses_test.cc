// The same weights, the same batches, twenty steps: our losses beside those of PyTorch.
#include <doctest/doctest.h>

#include "tests/command.h"
#include "tests/peers/torch.h"
#include "tests/run.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr uint SECONDS = 900;

constexpr kj::StringPtr CIFAR10 = "tests/peers/losses_cifar10.toml"_kj;
constexpr kj::StringPtr FASHION_MNIST = "tests/peers/losses_fashion_mnist.toml"_kj;

// The precision in which PyTorch computes, and two tolerances: the largest relative difference of a
// loss, and that of the distance that an array moves. If only one of the two programs had weight
// decay, the distances would differ by 0.8 to 10.
struct Peer {
  kj::StringPtr precision;
  kj::StringPtr tolerance;
  kj::StringPtr moveTolerance;
};
// float64 stands for the exact result of float32.
constexpr Peer FLOAT = {"--precision=fp64"_kj, "--tolerance=1e-4"_kj, "--move-tolerance=0.1"_kj};
// Rounding to bfloat16 turns gradients a little, both ours and theirs: after 20 steps both are up
// to 3e-3 away from float64, on the same side. So the peer is PyTorch's own bfloat16.
constexpr Peer BFLOAT = {"--precision=bf16"_kj, "--tolerance=2e-3"_kj, "--move-tolerance=0.6"_kj};
// For our bfloat16 where that is nearer to float64 than PyTorch's is.
constexpr Peer EXACT = {"--precision=fp64"_kj, "--tolerance=3e-3"_kj, "--move-tolerance=0.6"_kj};

// Trains 20 steps with both and returns how the comparison ended. `arguments` are for
// `bench losses`.
Ended compare(kj::StringPtr python, Peer peer, kj::StringPtr file,
    std::initializer_list<kj::StringPtr> arguments) {
  auto folder = newFolder();
  kj::Vector<kj::StringPtr> words;
  for (auto word: {"tools/bench/bench"_kj, "losses"_kj, file, "--dump"_kj, folder.asPtr()})
    words.add(word);
  for (auto word: arguments) words.add(word);
  if (peer.precision == BFLOAT.precision) words.add("--set=train.precision=bf16"_kj);
  auto cache = cacheSetting();
  kj::StringPtr setting = cache;
  auto ours = Command(words, {.environment = kj::arrayPtr(&setting, 1)}).wait();
  if (contains(ours.errors, "AVX512_BF16")) return ours;
  CHECK(ours.errors == "");
  REQUIRE(ours.exitCode == 0);
  auto ended = Command(
      {python, "tests/peers/losses.py", folder, peer.precision, peer.tolerance, peer.moveTolerance})
                   .wait(SECONDS);
  MESSAGE(file, " ", kj::strArray(words.slice(5, words.size()), " "), "\n", ended.output);
  return ended;
}

// A case's body: a macro, since SKIP_CASE leaves the case itself.
#define CHECK_SAME_LOSSES(peer, file, ...)                                           \
  do {                                                                               \
    auto python = torchPython();                                                     \
    if (python == "") SKIP_CASE(NO_TORCH);                                           \
    auto ended = compare(python, peer, file, {__VA_ARGS__});                         \
    if (contains(ended.errors, "AVX512_BF16")) SKIP_CASE("no AVX512_BF16 for bf16"); \
    INFO(ended.output);                                                              \
    CHECK(ended.errors == "");                                                       \
    CHECK(ended.exitCode == 0);                                                      \
  } while (false)

TEST_CASE("losses match PyTorch's: mlp, real images") {
  CHECK_SAME_LOSSES(FLOAT, FASHION_MNIST, "--data");
}

TEST_CASE("losses match PyTorch's: mlp, real images, bf16") {
  CHECK_SAME_LOSSES(BFLOAT, FASHION_MNIST, "--data");
}

TEST_CASE("losses match PyTorch's: lenet, real images") {
  CHECK_SAME_LOSSES(FLOAT, FASHION_MNIST, "--data", "--set=model.network=lenet");
}

TEST_CASE("losses match PyTorch's: lenet, real images, bf16") {
  CHECK_SAME_LOSSES(BFLOAT, FASHION_MNIST, "--data", "--set=model.network=lenet");
}

TEST_CASE("losses match PyTorch's: lenet with batch norm, synthetic images") {
  CHECK_SAME_LOSSES(FLOAT, FASHION_MNIST, "--batches=1", "--set=model.network=lenet-bn");
}

TEST_CASE("losses match PyTorch's: inception-bn-28-small, synthetic images") {
  CHECK_SAME_LOSSES(FLOAT, CIFAR10, "--batches=1");
}

TEST_CASE("losses match PyTorch's: inception-bn-28-small, synthetic images, bf16") {
  CHECK_SAME_LOSSES(BFLOAT, CIFAR10, "--batches=1");
}

TEST_CASE("losses match PyTorch's: resnet-20, synthetic images") {
  CHECK_SAME_LOSSES(FLOAT, CIFAR10, "--batches=1", "--set=model.network=resnet-20");
}

TEST_CASE("losses match PyTorch's: resnet-20, synthetic images, bf16") {
  CHECK_SAME_LOSSES(BFLOAT, CIFAR10, "--batches=1", "--set=model.network=resnet-20");
}

TEST_CASE("losses match PyTorch's: airbench94, synthetic images, smoothed labels") {
  CHECK_SAME_LOSSES(FLOAT, CIFAR10, "--batches=1", "--set=model.network=airbench94",
      "--set=data.augment.crop=32", "--set=train.label_smoothing=0.2");
}

TEST_CASE("losses match PyTorch's: airbench94, synthetic images, smoothed labels, bf16") {
  // Our Winograd computes in float32 what PyTorch's autocast rounds. Our losses differ from float64
  // by at most 2.5e-3, and autocast's by 3.3e-3, at different steps. From each other they differ by
  // 3.1e-3, so the peer is float64.
  CHECK_SAME_LOSSES(EXACT, CIFAR10, "--batches=1", "--set=model.network=airbench94",
      "--set=data.augment.crop=32", "--set=train.label_smoothing=0.2", "--set=train.precision=bf16",
      "--set=cluster.instruction_set=avx512");
}

// The processor's tiles, or emulated ones.
constexpr kj::StringPtr AMX = "--set=cluster.instruction_set=avx512_amx"_kj;

TEST_CASE("losses match PyTorch's: mlp and lenet, real images, bf16 on AMX") {
  CHECK_SAME_LOSSES(BFLOAT, FASHION_MNIST, "--data", AMX);
  CHECK_SAME_LOSSES(BFLOAT, FASHION_MNIST, "--data", "--set=model.network=lenet", AMX);
}

TEST_CASE("losses match PyTorch's: inception-bn-28-small, synthetic images, bf16 on AMX") {
  CHECK_SAME_LOSSES(BFLOAT, CIFAR10, "--batches=1", AMX);
}

TEST_CASE("losses match PyTorch's: resnet-20, synthetic images, bf16 on AMX") {
  CHECK_SAME_LOSSES(BFLOAT, CIFAR10, "--batches=1", "--set=model.network=resnet-20", AMX);
}

TEST_CASE("losses match PyTorch's: airbench94, smoothed labels, bf16 on AMX") {
  CHECK_SAME_LOSSES(BFLOAT, CIFAR10, "--batches=1", "--set=model.network=airbench94",
      "--set=data.augment.crop=32", "--set=train.label_smoothing=0.2", AMX);
}

TEST_CASE("losses.py refuses unsupported settings, or a folder without losses, in one line") {
  auto python = torchPython();
  if (python == "") SKIP_CASE(NO_TORCH);
  auto folder = newFolder();
  auto cache = cacheSetting();
  kj::StringPtr setting = cache;
  auto ours = Command({"tools/bench/bench", "losses", FASHION_MNIST, "--steps=1", "--dump", folder},
      {.environment = kj::arrayPtr(&setting, 1)})
                  .wait();
  REQUIRE(ours.exitCode == 0);
  auto refusal = [&](kj::StringPtr path) {
    return Command({python, "tests/peers/losses.py", path}).wait(SECONDS);
  };
  auto experiment = kj::str(folder, "/experiment.toml");
  writeFile(experiment, kj::str(readFile(experiment), "\n[train.lookahead]\nevery = 5\n"));
  auto ended = refusal(folder);
  CHECK(ended.exitCode == 2);
  CHECK(ended.errors == "losses: this script does not support train.lookahead\n");
  writeFile(kj::str(folder, "/losses.txt"), "");
  ended = refusal(folder);
  CHECK(ended.exitCode == 2);
  CHECK(ended.errors == "losses: losses.txt has no loss\n");
  ended = refusal("/nowhere");
  CHECK(ended.exitCode == 2);
  CHECK(ended.errors == "losses: [Errno 2] No such file or directory: '/nowhere/losses.txt'\n");
}

}  // namespace
}  // namespace tests
