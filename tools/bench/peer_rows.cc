#include "tools/bench/peer_rows.h"

#include <kj/debug.h>
#include <kj/filesystem.h>
#include <kj/vector.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "runner/logs/run_record.h"
#include "tools/bench/figures.h"
#include "tools/bench/process.h"

namespace tools {
namespace {

constexpr uint WORKERS = 2;
// How many speed lines a worker writes before it is warm.
constexpr uint FIRST_LINES = 1;

constexpr const char* INCEPTION = "configs/cifar10_local.toml";
constexpr const char* SMALL = "inception-bn-28-small";

constexpr PeerRow ROWS[] = {
    {PeerRow::SPEED, "inception-small", "MXNet's small Inception for 28×28", INCEPTION, SMALL, 2,
        128},
    {PeerRow::BETTER, "airbench94", "the network of airbench94, fp32 or bf16",
        "tests/peers/airbench94.toml", "airbench94", 2, 1024},
    {PeerRow::SPEED, "mlp-sigmoid", "784-100-10 with sigmoid, one thread",
        "tests/peers/mlp_784_100_10.toml", "mlp-784-100-10", 1, 100},
    {PeerRow::SPEED, "mlp", "784-128-64-10, one thread", "configs/mnist_mlp_local.toml", "mlp", 1,
        100},
    {PeerRow::SPEED, "inception-224", "Inception with batch norm for 224×224",
        "configs/imagenet_inception_bn.toml", "inception-bn", 2, 16, 1000},
    {PeerRow::SPEED, "resnet-50", "residual, 50 layers, 224×224, in blocks of 1×1, 3×3 and 1×1",
        "tests/peers/resnet50.toml", "resnet-50", 2, 16, 1000},
    {PeerRow::SPEED, "resnet-56", "residual, 56 layers, 28×28", "configs/cifar10_resnet56.toml",
        "resnet-56", 2, 128},
    {PeerRow::SPEED, "resnet-20", "residual, 20 layers, 28×28", "configs/cifar10_resnet20.toml",
        "resnet-20", 2, 128},
    {PeerRow::SPEED, "lenet", "LeNet with tanh", "configs/fashion_mnist_dist_sync.toml", "lenet", 2,
        64},
    {PeerRow::WORKERS, "two-workers",
        "the small Inception in two workers of one thread, through the store, or DDP over gloo; "
        "ours also reads and augments records, and always makes 24 steps, whatever --seconds says",
        "tests/peers/two_workers.toml", SMALL, 1, 128},
    {PeerRow::MEMORY, "memory", "the small Inception's peak", INCEPTION, SMALL, 2, 128},
    {PeerRow::DISTURBED, "disturbed", "the small Inception beside a process that fills one core",
        INCEPTION, SMALL, 2, 128},
};

constexpr kj::StringPtr USUAL_BF16_ROWS[] = {
    "inception-small-bf16"_kj, "resnet-56-bf16"_kj, "lenet-bf16"_kj};
constexpr kj::StringPtr BF16_ENDING = "-bf16"_kj;

enum class Precision { FP32, BF16 };

}  // namespace

Figure figureOf(const Ended& ended, kj::StringPtr key) {
  if (ended.exitCode != 0) return {nullptr, ended.reason()};
  return {numberIn(ended.output, key), kj::str("no `", key, "` in what it printed")};
}

namespace {

// Our side is this very program.
Ended runOurs(const PeerRow& row, Precision precision, kj::ArrayPtr<const kj::StringPtr> options) {
  kj::Vector<kj::String> words;
  auto set = [&](kj::StringPtr key, auto value) { words.add(kj::str("--set=", key, "=", value)); };
  for (auto word: {"/proc/self/exe", "train", row.file, "--json"}) {
    words.add(kj::str(word));
  }
  for (auto option: options) words.add(kj::str(option));
  set("data.batch_size", row.batch);
  set("cluster.threads_per_worker", row.threads);
  if (precision == Precision::BF16) set("train.precision", "bf16");
  if (row.classes > 0) words.add(kj::str("--classes=", row.classes));
  return runProgram(words);
}

Ended runTheirs(const PeerRow& row, kj::StringPtr python, Precision precision, uint seconds,
    uint workers = 1, bool compiled = false) {
  kj::Vector<kj::String> words;
  if (row.what != PeerRow::MEMORY) {
    // Makes the C library keep freed memory, so that large arrays are not mapped again in each
    // step, as far as its settings allow. Memory is measured without these settings.
    for (auto word: {"/usr/bin/env", "MALLOC_MMAP_THRESHOLD_=33554432",
             "MALLOC_TRIM_THRESHOLD_=4294967296", "MALLOC_TOP_PAD_=268435456"}) {
      words.add(kj::str(word));
    }
  }
  for (auto word: {python, PEER_SCRIPT, kj::StringPtr(row.network), "--json"_kj}) {
    words.add(kj::str(word));
  }
  words.add(kj::str("--batch=", row.batch));
  words.add(kj::str("--threads=", row.threads));
  words.add(kj::str("--seconds=", seconds));
  words.add(kj::str("--workers=", workers));
  words.add(kj::str("--precision=", precision == Precision::BF16 ? "bf16" : "fp32"));
  if (compiled) words.add(kj::str("--compile=default"));
  return runProgram(words);
}

// Returns the images/s of all workers: for each, the median of its speed lines.
double speedOf(const runner::RunRecord& record) {
  double sum = 0;
  for (uint worker = 0; worker < record.workers; ++worker) {
    kj::Vector<double> speeds;
    for (auto& speed: record.speeds) {
      if (speed.worker == worker) speeds.add(speed.images_per_s);
    }
    KJ_REQUIRE(speeds.size() > FIRST_LINES, "a run without speed lines", record.folder, worker);
    sum += medianOf(speeds.asPtr().slice(FIRST_LINES, speeds.size()));
  }
  return sum;
}

// Returns the program `runner`, which is built beside this one.
kj::String runnerPath() {
  char path[4096];
  ssize_t size;
  KJ_SYSCALL(size = ::readlink("/proc/self/exe", path, sizeof(path)));
  auto own = kj::Path::parse(kj::heapString(path + 1, size - 1));
  return own.parent().parent().parent().append(kj::Path({"runner", "runner"})).toString(true);
}

Figure ourWorkers(const PeerRow& row, Precision precision) {
  char folder[] = "/tmp/bench-peers-XXXXXX";
  KJ_REQUIRE(::mkdtemp(folder) != nullptr, "no folder in /tmp");
  KJ_DEFER(kj::newDiskFilesystem()->getRoot().remove(kj::Path({"tmp", kj::str(folder + 5)})));
  auto ended = runProgram(kj::arr(runnerPath(), kj::str("run"), kj::str(row.file),
      kj::str("--runs=", static_cast<const char*>(folder)),
      kj::str("--set=data.batch_size=", row.batch),
      kj::str("--set=cluster.threads_per_worker=", row.threads),
      kj::str("--set=train.precision=", precision == Precision::BF16 ? "bf16" : "fp32")));
  if (ended.exitCode != 0) return {nullptr, ended.reason()};
  auto record = runner::readRunRecord(kj::str(static_cast<const char*>(folder), "/two_workers/1"));
  return {speedOf(record), nullptr};
}

// Returns the figure that `combine` makes from two, or the first reason why there is none.
template <typename Combine>
Figure combined(Figure first, Figure second, Combine&& combine) {
  KJ_IF_MAYBE(a, first.value) {
    KJ_IF_MAYBE(b, second.value) return {combine(*a, *b), nullptr};
    return second;
  }
  return first;
}

// Measures the speed of one side.
using Speed = kj::FunctionParam<Figure(Precision precision)>;

// Whether our program refuses bf16, because the processor has none. Other failures are reported.
bool isRefusal(kj::StringPtr reason) {
  return ::strstr(reason.cStr(), "AVX512_BF16") != nullptr;
}

Figure betterSpeed(Speed& speed) {
  auto named = [&](Precision precision, kj::StringPtr name) {
    auto figure = speed(precision);
    figure.how = kj::str(name, figure.how.size() > 0 ? ", " : "", figure.how);
    return figure;
  };
  auto fp32 = named(Precision::FP32, "fp32");
  auto bf16 = named(Precision::BF16, "bf16");
  if (bf16.value == nullptr) return isRefusal(bf16.reason) ? kj::mv(fp32) : kj::mv(bf16);
  return bf16.value.orDefault(0) > fp32.value.orDefault(kj::inf()) ? kj::mv(bf16) : kj::mv(fp32);
}

Figure disturbedPart(Speed& speed) {
  auto quiet = speed(Precision::FP32);
  BusyCore busy;
  auto disturbed = speed(Precision::FP32);
  return combined(kj::mv(quiet), kj::mv(disturbed), [](double a, double b) { return b / a; });
}

// PyTorch's speed in its faster mode. If torch.compile() fails, that is the mode without it.
Figure fasterMode(const PeerRow& row, kj::StringPtr python, Precision precision, uint seconds) {
  auto measure = [&](bool compiled) {
    return figureOf(runTheirs(row, python, precision, seconds, 1, compiled), "images_per_s");
  };
  auto eager = measure(false);
  if (eager.value == nullptr) return eager;
  auto compiled = measure(true);
  KJ_IF_MAYBE(speed, compiled.value) {
    bool isFaster = *speed > KJ_ASSERT_NONNULL(eager.value);
    auto& better = isFaster ? compiled : eager;
    better.how = kj::str(isFaster ? "compiled" : "eager");
    return kj::mv(better);
  }
  eager.how = kj::str("eager; torch.compile() failed");
  return eager;
}

kj::StringPtr unitOf(PeerRow::What what) {
  switch (what) {
    case PeerRow::MEMORY:
      return "MB"_kj;
    case PeerRow::DISTURBED:
      return "of quiet"_kj;
    default:
      return "images/s"_kj;
  }
}

Figure peakMegabytes(const Ended& ended) {
  auto figure = figureOf(ended, "peak_bytes");
  figure.value = figure.value.map([](double bytes) { return bytes / 1e6; });
  return figure;
}

// A row in one precision. Rows that measure both ignore it.
struct Measured {
  const PeerRow& row;
  Precision precision;
};

Figure ours(Measured what, uint seconds) {
  auto& row = what.row;
  auto time = kj::str("--seconds=", seconds);
  auto run = [&](Precision precision) { return runOurs(row, precision, {"--no-check"_kj, time}); };
  auto speed = [&](Precision precision) { return figureOf(run(precision), "images_per_s"); };
  Speed speedOf(speed);
  switch (row.what) {
    case PeerRow::SPEED:
      return speed(what.precision);
    case PeerRow::BETTER:
      return betterSpeed(speedOf);
    case PeerRow::WORKERS:
      return ourWorkers(row, what.precision);
    case PeerRow::MEMORY:
      return peakMegabytes(run(Precision::FP32));
    case PeerRow::DISTURBED:
      return disturbedPart(speedOf);
  }
  KJ_UNREACHABLE;
}

Figure theirs(Measured what, kj::StringPtr python, uint seconds) {
  auto& row = what.row;
  auto faster = [&](Precision precision) { return fasterMode(row, python, precision, seconds); };
  Speed fasterOf(faster);
  auto eager = [&](Precision precision) {
    return figureOf(runTheirs(row, python, precision, seconds), "images_per_s");
  };
  Speed eagerOf(eager);
  switch (row.what) {
    case PeerRow::SPEED:
      return faster(what.precision);
    case PeerRow::BETTER:
      return betterSpeed(fasterOf);
    case PeerRow::WORKERS:
      return figureOf(runTheirs(row, python, what.precision, seconds, WORKERS), "images_per_s");
    case PeerRow::MEMORY:
      return combined(peakMegabytes(runTheirs(row, python, Precision::FP32, seconds)),
          peakMegabytes(runPeerScript(python, {"--import-only"_kj, "--json"_kj})),
          [](double whole, double load) { return whole - load; });
    case PeerRow::DISTURBED:
      return disturbedPart(eagerOf);
  }
  KJ_UNREACHABLE;
}

kj::Maybe<kj::String> checkOurs(Measured what) {
  auto check = [&](Precision precision) -> kj::Maybe<kj::String> {
    auto ended = runOurs(what.row, precision, {"--steps=1"_kj});
    if (ended.exitCode == 0) return nullptr;
    return ended.reason();
  };
  if (what.row.what != PeerRow::BETTER) return check(what.precision);
  KJ_IF_MAYBE(reason, check(Precision::FP32)) return kj::mv(*reason);
  KJ_IF_MAYBE(reason, check(Precision::BF16)) {
    if (!isRefusal(*reason)) return kj::mv(*reason);
  }
  return nullptr;
}

}  // namespace

constinit const kj::ArrayPtr<const PeerRow> PEER_ROWS = ROWS;

kj::Vector<kj::StringPtr> usualPeerRows() {
  kj::Vector<kj::StringPtr> names;
  for (auto& row: ROWS) names.add(row.name);
  for (auto name: USUAL_BF16_ROWS) names.add(name);
  return names;
}

kj::Maybe<kj::Own<Contest>> contestNamed(kj::StringPtr name, kj::StringPtr python, uint seconds) {
  for (auto& row: ROWS) {
    bool inBf16 = row.hasBf16() && name == kj::str(row.name, BF16_ENDING);
    if (name != row.name && !inBf16) continue;
    Measured what = {row, inBf16 ? Precision::BF16 : Precision::FP32};
    auto contest = kj::heap<Contest>();
    contest->name = kj::str(name);
    contest->unit = unitOf(row.what);
    contest->check = [what]() { return checkOurs(what); };
    contest->ours = [what, seconds]() { return ours(what, seconds); };
    contest->theirs = [what, python, seconds]() { return theirs(what, python, seconds); };
    return kj::mv(contest);
  }
  return nullptr;
}

void requirePeerScript() {
  if (::access(PEER_SCRIPT.cStr(), R_OK) != 0) {
    configs::fail("there is no ", PEER_SCRIPT, " here: run bench peers in the project's folder");
  }
}

Ended runPeerScript(kj::StringPtr python, kj::ArrayPtr<const kj::StringPtr> options) {
  requirePeerScript();
  kj::Vector<kj::String> words;
  words.add(kj::str(python));
  words.add(kj::str(PEER_SCRIPT));
  for (auto option: options) words.add(kj::str(option));
  return runProgram(words);
}

}  // namespace tools
