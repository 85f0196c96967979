#include "tests/simulation/campaign.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "io/datasets/datasets.h"
#include "io/testing/image_folder.h"
#include "runner/logs/run_folder.h"
#include "runner/system/files.h"
#include "tests/simulation/virtual_clock.h"

namespace simulation {

namespace {

constexpr uint CLASSES = 4;
constexpr uint IMAGES_PER_CLASS = 24;
constexpr kj::StringPtr FILE = "tests/simulation/experiment.toml"_kj;

struct Row {
  kj::StringPtr name;
  bool isExact;
  kj::StringPtr setting;  // empty: the file as it is
};

constexpr Row ROWS[] = {
    {"dist_sync"_kj, true, ""_kj},
    {"dist_sync, 2bit"_kj, true, "kvstore.compression={ kind = \"2bit\", threshold = 0.05 }"_kj},
    {"dist_sync, topk"_kj, true, "kvstore.compression={ kind = \"topk\", sparsity = 0.5 }"_kj},
    {"dist_sync, halves"_kj, true, "kvstore.wire=float16"_kj},
    {"dist_sync, lookahead"_kj, true, "train.lookahead={ every = 4 }"_kj},
    {"updates by workers"_kj, true, "kvstore.update=worker"_kj},
    {"local_sgd"_kj, true, "kvstore.mode=local_sgd"_kj},
    {"dist_async"_kj, false, "kvstore.mode=dist_async"_kj},
    {"dist_ssp"_kj, false, "kvstore.mode=dist_ssp"_kj},
};

}  // namespace

Campaign::Campaign(Mistakes mistakes): mistakes(mistakes) {
  char name[] = "/dev/shm/simulation-XXXXXX";
  KJ_REQUIRE(::mkdtemp(name) != nullptr, name);
  folder = kj::str(name);
  root = kj::str(folder, "/disk");
  auto images = kj::str(folder, "/images");
  for (uint label = 0; label < CLASSES; label++) {
    auto of = kj::str(images, "/class", label);
    runner::makeFolders(of);
    for (uint i = 0; i < IMAGES_PER_CLASS; i++) {
      auto jpeg = io::jpegOf(label * 60 + i, {1, 8, 8});
      auto piece = jpeg.asPtr().asConst();
      runner::writeWhole(kj::str(of, "/", i, ".jpg"), kj::arrayPtr(&piece, 1));
    }
  }
  runner::makeFolders(root);
  // Packed records are opened faster than a folder of images.
  auto packed = kj::str(folder, "/packed");
  auto config = io::testConfig("image_folder", kj::mv(images));
  config.encoding = io::Encoding::RAW;
  io::packDataset(config, packed, io::silent());
  auto source = kj::str("data.source=", packed);
  for (auto& row: ROWS) {
    kj::Vector<kj::StringPtr> settings;
    settings.add(source);
    if (row.setting.size() > 0) settings.add(row.setting);
    auto loaded = runner::loadExperiment(FILE, settings);
    KJ_REQUIRE(loaded.experiment != nullptr, loaded.errors);
    runner::addRecords(loaded);
    all.add(Variant{row.name, row.isExact, kj::mv(loaded), {}});
  }
  for (auto i: kj::indices(all)) {
    Plan plan;
    plan.variant = i;
    plan.slowest = 4 * kj::MILLISECONDS;
    auto ended = simulate(all[i].loaded, root, plan, {}, mistakes);
    KJ_IF_MAYBE(failure, ended.failure) KJ_FAIL_REQUIRE(all[i].name, *failure, ended.errors);
    all[i].expected = kj::mv(ended.result);
  }
}

Campaign::~Campaign() noexcept(false) {
  all.clear();
  std::filesystem::remove_all(folder.cStr());
}

kj::Maybe<kj::String> Campaign::wrongIn(const Plan& plan, Ended& ended) {
  auto& variant = all[plan.variant];
  ended = simulate(variant.loaded, root, plan, variant.expected, mistakes);
  KJ_IF_MAYBE(failure, ended.failure) return kj::str("failed: ", *failure);
  auto& expected = variant.expected;
  if (ended.result.counts != expected.counts) {
    return kj::str(
        "other counts\n--- expected\n", expected.counts, "--- found\n", ended.result.counts);
  }
  if (!variant.isExact) return nullptr;
  if (ended.result.weightsSha256 != expected.weightsSha256) return kj::str("other weights");
  if (ended.result.events != expected.events) {
    return kj::str(
        "other events\n--- expected\n", expected.events, "--- found\n", ended.result.events);
  }
  return nullptr;
}

void Counts::add(const Counts& other) {
  jobs += other.jobs;
  violations += other.violations;
  restarts += other.restarts;
  resumptions += other.resumptions;
  leftBehind += other.leftBehind;
  virtual_s += other.virtual_s;
  for (auto kind: kj::indices(faults)) faults[kind] += other.faults[kind];
}

Ended Campaign::repeat(uint64_t seed) {
  Ended ended;
  wrongIn(Plan::draw(seed, all.size()), ended);
  return ended;
}

kj::Maybe<Violation> Campaign::run(uint64_t seed) {
  auto plan = Plan::draw(seed, all.size());
  Ended ended;
  auto wrong = wrongIn(plan, ended);
  counted.jobs++;
  counted.restarts += ended.restarts;
  counted.resumptions += ended.resumptions;
  counted.leftBehind += ended.leftBehind;
  counted.virtual_s += ended.result.seconds;
  for (auto& fault: plan.faults) counted.faults[fault.kind]++;
  KJ_IF_MAYBE(what, wrong) {
    counted.violations++;
    Violation violation{kj::mv(plan), all[plan.variant].name, kj::mv(*what), kj::mv(ended.errors)};
    shrink(violation);
    return kj::mv(violation);
  }
  return nullptr;
}

void Campaign::shrink(Violation& violation) {
  auto accept = [&](Plan&& smaller) {
    Ended ended;
    KJ_IF_MAYBE(what, wrongIn(smaller, ended)) {
      violation.plan = kj::mv(smaller);
      violation.what = kj::mv(*what);
      violation.errors = kj::mv(ended.errors);
      return true;
    }
    return false;
  };
  // Without one of the faults.
  for (size_t i = violation.plan.faults.size(); i-- > 0;) {
    auto smaller = violation.plan.clone();
    smaller.faults.clear();
    for (size_t k: kj::indices(violation.plan.faults)) {
      if (k != i) smaller.faults.add(violation.plan.faults[k]);
    }
    accept(kj::mv(smaller));
  }
  // With a faster network.
  for (;;) {
    auto smaller = violation.plan.clone();
    smaller.slowest = smaller.slowest / 4;
    if (smaller.slowest < 10 * kj::MICROSECONDS || !accept(kj::mv(smaller))) return;
  }
}

namespace {

Counts simulatePart(const Work& work, uint part, kj::FunctionParam<void(const Violation&)>& found) {
  auto begin_s = realTime_s();
  Campaign campaign(work.mistakes);
  for (uint64_t i = part; i < work.jobs; i += work.processes) {
    if (work.seconds > 0 && realTime_s() - begin_s >= work.seconds) break;
    KJ_IF_MAYBE(violation, campaign.run(work.first + i)) {
      found(*violation);
      if (work.untilFound) break;
    }
  }
  return campaign.counts();
}

}  // namespace

Counts simulateAll(const Work& work, kj::FunctionParam<void(const Violation&)> found) {
  struct Part {
    pid_t process;
    kj::AutoCloseFd counts;
  };
  kj::Vector<Part> parts;
  for (uint part = 1; part < work.processes; part++) {
    int ends[2];
    KJ_SYSCALL(::pipe2(ends, O_CLOEXEC));
    kj::AutoCloseFd toRead(ends[0]), toWrite(ends[1]);
    pid_t process;
    KJ_SYSCALL(process = ::fork());
    if (process == 0) {
      auto run = [&]() {
        auto counts = simulatePart(work, part, found);
        KJ_SYSCALL(::write(toWrite, &counts, sizeof(counts)));
      };
      KJ_IF_MAYBE(e, kj::runCatchingExceptions(run)) KJ_LOG(ERROR, *e);
      ::_exit(0);
    }
    parts.add(Part{process, kj::mv(toRead)});
  }
  auto counts = simulatePart(work, 0, found);
  for (auto& part: parts) {
    Counts others;
    ssize_t size;
    KJ_SYSCALL(size = ::read(part.counts, &others, sizeof(others)));
    KJ_REQUIRE(size == sizeof(others), "a process of the simulation has failed");
    counts.add(others);
    KJ_SYSCALL(::waitpid(part.process, nullptr, 0));
  }
  return counts;
}

}  // namespace simulation
