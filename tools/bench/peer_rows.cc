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
    {PeerRow::SPEED, "inception-small", "MXNet's small Inception for 28×28, fp32", INCEPTION, SMALL,
        2, 128},
    {PeerRow::BF16, "inception-small-bf16", "the same in bf16", INCEPTION, SMALL, 2, 128},
    {PeerRow::BETTER, "airbench94", "the network of airbench94, fp32 or bf16",
        "tests/peers/airbench94.toml", "airbench94", 2, 1024},
    {PeerRow::SPEED, "mlp-sigmoid", "784-100-10 with sigmoid, one thread",
        "tests/peers/mlp_784_100_10.toml", "mlp-784-100-10", 1, 100},
    {PeerRow::SPEED, "mlp", "784-128-64-10, one thread", "configs/mnist_mlp_local.toml", "mlp", 1,
        100},
    {PeerRow::SPEED, "inception-224", "Inception with batch norm for 224×224",
        "configs/imagenet_inception_bn.toml", "inception-bn", 2, 16, 1000},
    {PeerRow::SPEED, "resnet-56", "residual, 56 layers, 28×28", "configs/cifar10_resnet56.toml",
        "resnet-56", 2, 128},
    {PeerRow::SPEED, "resnet-20", "residual, 20 layers, 28×28", "configs/cifar10_resnet20.toml",
        "resnet-20", 2, 128},
    {PeerRow::SPEED, "lenet", "LeNet with tanh", "configs/fashion_mnist_dist_sync.toml", "lenet", 2,
        128},
    {PeerRow::WORKERS, "two-workers",
        "the small Inception in two workers of one thread, through the store, or DDP over gloo; "
        "ours also reads and augments records, and always makes 24 steps, whatever --seconds says",
        "tests/peers/two_workers.toml", SMALL, 1, 128},
    {PeerRow::MEMORY, "memory", "the small Inception's peak", INCEPTION, SMALL, 2, 128},
    {PeerRow::DISTURBED, "disturbed", "the small Inception beside a process that fills one core",
        INCEPTION, SMALL, 2, 128},
};

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

Ended runTheirs(
    const PeerRow& row, kj::StringPtr python, Precision precision, uint seconds, uint workers) {
  kj::Vector<kj::String> words;
  if (row.what != PeerRow::MEMORY) {
    // Makes the C library keep freed memory, and avoid mapping large arrays anew in each step, as
    // far as its settings allow. Memory is measured without these settings.
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
  return own.parent().parent().append(kj::Path({"runner", "runner"})).toString(true);
}

Figure ourWorkers(const PeerRow& row) {
  char folder[] = "/tmp/bench-peers-XXXXXX";
  KJ_REQUIRE(::mkdtemp(folder) != nullptr, "no folder in /tmp");
  KJ_DEFER(kj::newDiskFilesystem()->getRoot().remove(kj::Path({"tmp", kj::str(folder + 5)})));
  auto ended = runProgram(kj::arr(runnerPath(), kj::str("run"), kj::str(row.file),
      kj::str("--runs=", static_cast<const char*>(folder)),
      kj::str("--set=data.batch_size=", row.batch),
      kj::str("--set=cluster.threads_per_worker=", row.threads)));
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

// Runs a measurement of one side.
using Run = kj::FunctionParam<Ended(Precision precision)>;

Figure speed(Run& run, Precision precision) {
  return figureOf(run(precision), "images_per_s");
}

// Ours says so if a processor has no bf16. No other failure is ignored.
bool isRefusal(kj::StringPtr reason) {
  return ::strstr(reason.cStr(), "AVX512_BF16") != nullptr;
}

Figure betterSpeed(Run& run) {
  auto fp32 = speed(run, Precision::FP32);
  fp32.how = "fp32"_kj;
  auto bf16 = speed(run, Precision::BF16);
  bf16.how = "bf16"_kj;
  if (bf16.value == nullptr) return isRefusal(bf16.reason) ? kj::mv(fp32) : kj::mv(bf16);
  return bf16.value.orDefault(0) > fp32.value.orDefault(kj::inf()) ? kj::mv(bf16) : kj::mv(fp32);
}

Figure disturbedPart(Run& run) {
  auto quiet = speed(run, Precision::FP32);
  BusyCore busy;
  auto disturbed = speed(run, Precision::FP32);
  return combined(kj::mv(quiet), kj::mv(disturbed), [](double a, double b) { return b / a; });
}

// For rows that measure both sides alike: SPEED, BF16, BETTER, DISTURBED.
Figure measure(const PeerRow& row, Run run) {
  switch (row.what) {
    case PeerRow::BETTER:
      return betterSpeed(run);
    case PeerRow::DISTURBED:
      return disturbedPart(run);
    default:
      return speed(run, row.what == PeerRow::BF16 ? Precision::BF16 : Precision::FP32);
  }
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

Figure ours(const PeerRow& row, uint seconds) {
  if (row.what == PeerRow::WORKERS) return ourWorkers(row);
  auto time = kj::str("--seconds=", seconds);
  auto run = [&](Precision precision) { return runOurs(row, precision, {"--no-check"_kj, time}); };
  if (row.what == PeerRow::MEMORY) return peakMegabytes(run(Precision::FP32));
  return measure(row, run);
}

Figure theirs(const PeerRow& row, kj::StringPtr python, uint seconds) {
  uint workers = row.what == PeerRow::WORKERS ? WORKERS : 1;
  auto run = [&](Precision precision) {
    return runTheirs(row, python, precision, seconds, workers);
  };
  if (row.what != PeerRow::MEMORY) return measure(row, run);
  return combined(peakMegabytes(run(Precision::FP32)),
      peakMegabytes(runPeerScript(python, {"--import-only"_kj, "--json"_kj})),
      [](double whole, double load) { return whole - load; });
}

kj::Maybe<kj::String> checkOurs(const PeerRow& row) {
  auto check = [&](Precision precision) -> kj::Maybe<kj::String> {
    auto ended = runOurs(row, precision, {"--steps=1"_kj});
    if (ended.exitCode == 0) return nullptr;
    return ended.reason();
  };
  if (row.what == PeerRow::BF16) return check(Precision::BF16);
  KJ_IF_MAYBE(reason, check(Precision::FP32)) return kj::mv(*reason);
  if (row.what != PeerRow::BETTER) return nullptr;
  KJ_IF_MAYBE(reason, check(Precision::BF16)) {
    if (!isRefusal(*reason)) return kj::mv(*reason);
  }
  return nullptr;
}

}  // namespace

constinit const kj::ArrayPtr<const PeerRow> PEER_ROWS = ROWS;

kj::Own<Contest> contestOf(const PeerRow& row, kj::StringPtr python, uint seconds) {
  auto contest = kj::heap<Contest>();
  contest->name = kj::str(row.name);
  contest->unit = unitOf(row.what);
  contest->check = [&row]() { return checkOurs(row); };
  contest->ours = [&row, seconds]() { return ours(row, seconds); };
  contest->theirs = [&row, python, seconds]() { return theirs(row, python, seconds); };
  return contest;
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
