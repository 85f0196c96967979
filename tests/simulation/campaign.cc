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
  const char* settings[3];  // null: none
  bool continues = false;
};

constexpr Row ROWS[] = {
    {"dist_sync"_kj, true, {}},
    {"dist_sync, 2bit"_kj, true, {"kvstore.compression={ kind = \"2bit\", threshold = 0.05 }"}},
    {"dist_sync, topk"_kj, true, {"kvstore.compression={ kind = \"topk\", sparsity = 0.5 }"}},
    {"dist_sync, halves"_kj, true, {"kvstore.wire=float16"}},
    {"dist_sync, lookahead"_kj, true, {"train.lookahead={ every = 4 }"}},
    {"updates by workers"_kj, true, {"kvstore.update=worker"}},
    {"local_sgd"_kj, true, {"kvstore.mode=local_sgd"}},
    {"allreduce"_kj, true, {"kvstore.mode=allreduce", "cluster.servers=0"}},
    {"dist_async"_kj, false, {"kvstore.mode=dist_async"}},
    {"dist_ssp"_kj, false, {"kvstore.mode=dist_ssp"}},
    {"continue"_kj, true, {}, true},
    {"continue, 2bit"_kj, true, {"kvstore.compression={ kind = \"2bit\", threshold = 0.05 }"},
        true},
    {"continue, lookahead"_kj, true, {"train.lookahead={ every = 4 }"}, true},
    // Every third step is reported to the coordinator, so that it continues without lost workers
    // from then on.
    {"continue, logged often"_kj, true, {"log.every=3"}, true},
    {"continue, dist_async"_kj, false, {"kvstore.mode=dist_async", "log.every=3"}, true},
    {"continue, dist_ssp"_kj, false, {"kvstore.mode=dist_ssp", "log.every=3"}, true},
};
// Three workers, so that a job that continues without one still has two.
constexpr kj::StringPtr CONTINUES[] = {
    "cluster.on_loss=continue"_kj, "cluster.workers=3"_kj, "train.epochs=3"_kj};

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
  io::packDataset(config, packed, io::unheard());
  auto source = kj::str("data.source=", packed);
  for (auto& row: ROWS) {
    kj::Vector<kj::StringPtr> settings;
    settings.add(source);
    for (auto setting: row.settings) {
      if (setting != nullptr) settings.add(setting);
    }
    if (row.continues) settings.addAll(kj::arrayPtr(CONTINUES, kj::size(CONTINUES)));
    auto loaded = runner::loadExperiment(FILE, settings);
    KJ_REQUIRE(loaded.experiment != nullptr, loaded.errors);
    runner::addRecords(loaded);
    all.add(Variant{row.name, row.isExact, kj::mv(loaded), {}});
    continues.add(row.continues);
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
  bool hasOtherWeights = ended.result.weightsSha256 != expected.weightsSha256;
  if (ended.isAsExpected) {
    if (variant.isExact && hasOtherWeights) return kj::str("other weights");
    return nullptr;
  }
  auto& account = ended.result.account;
  auto& experiment = KJ_ASSERT_NONNULL(variant.loaded.experiment);
  auto rounds = experiment.rounds();
  if (rounds.isBounded()) {
    // Between a worker's pull and its push, each other worker goes from `staleness` steps behind it
    // to as many before it.
    auto most = (rounds.workers - 1) * (2 * rounds.staleness + 1);
    if (account.stalest > most) {
      return kj::str("a push has missed ", account.stalest, " updates, more than ", most);
    }
  }
  if (account.hasChanges) return wrongWithChanges(variant, ended);
  if (account.counts != expected.account.counts) {
    return kj::str(
        "other counts\n--- expected\n", expected.account.counts, "--- found\n", account.counts);
  }
  if (!variant.isExact) return nullptr;
  if (hasOtherWeights) return kj::str("other weights");
  return kj::str("other events\n--- expected\n", expected.events.text(), "--- found\n",
      ended.result.events.text());
}

// The result of a run that continues without lost workers is not known in advance. But each
// answered push counts once. In exact modes, a run whose workers are lost and join at the same
// steps has the same result.
kj::Maybe<kj::String> Campaign::wrongWithChanges(Variant& variant, Ended& ended) {
  auto& account = ended.result.account;
  auto& expected = variant.expected.account;
  counted.changed++;
  for (auto images: account.validated) {
    if (images != expected.validated[0]) return kj::str("a validation has ", images, " images");
  }
  auto workers = KJ_ASSERT_NONNULL(variant.loaded.experiment).cluster.workers;
  uint64_t slices = expected.pushed / (workers * expected.steps);
  uint64_t pushes = account.heldOfLost;
  for (auto& member: account.memberships) {
    uint64_t end = kj::min(member.end, account.steps);
    if (member.end <= account.steps && member.lostWithin) end--;
    pushes += (end - member.begin) * slices;
  }
  if (account.pushed != pushes || account.applied != pushes) {
    return kj::str(pushes, " slices were pushed, and the servers have counted ", account.pushed,
        " and applied ", account.applied, "\n", account.members);
  }
  if (!variant.isExact) return nullptr;
  auto other = kj::str(folder, "/members");
  runner::makeFolders(other);
  runner::RunFolder members{kj::str(other)};
  runner::writeWhole(members.events(), account.events);
  Plan calm;
  calm.seed = ended.result.extent.sends;
  calm.slowest = 4 * kj::MILLISECONDS;
  auto again = simulate(variant.loaded, root, calm, {}, mistakes, other);
  KJ_IF_MAYBE(failure, again.failure) {
    return kj::str("the run that loses the same workers has failed: ", *failure, "\n",
        account.members, "\n", again.errors);
  }
  if (again.result.account.members != account.members) {
    return kj::str("the run that repeats the losses has others\n--- expected\n", account.members,
        "\n--- found\n", again.result.account.members);
  }
  if (again.result.weightsSha256 != ended.result.weightsSha256) {
    return kj::str("the run that loses the same workers has other weights\n", account.members);
  }
  return nullptr;
}

void Counts::add(const Counts& other) {
  jobs += other.jobs;
  violations += other.violations;
  restarts += other.restarts;
  resumptions += other.resumptions;
  interruptions += other.interruptions;
  leftBehind += other.leftBehind;
  changed += other.changed;
  virtual_s += other.virtual_s;
  for (auto kind: kj::indices(faults)) faults[kind] += other.faults[kind];
}

Ended Campaign::repeat(uint64_t seed) {
  Ended ended;
  wrongIn(Plan::draw(seed, continues), ended);
  return ended;
}

size_t Campaign::variantOf(kj::StringPtr name) const {
  for (auto i: kj::indices(all)) {
    if (all[i].name == name) return i;
  }
  KJ_FAIL_REQUIRE("there is no such experiment", name);
}

kj::Maybe<Violation> Campaign::run(uint64_t seed) {
  return run(Plan::draw(seed, continues));
}

kj::Maybe<Violation> Campaign::run(Plan plan) {
  Ended ended;
  auto wrong = wrongIn(plan, ended);
  counted.jobs++;
  counted.restarts += ended.restarts;
  counted.resumptions += ended.resumptions;
  counted.interruptions += ended.interruptions;
  counted.leftBehind += ended.leftBehind;
  counted.virtual_s += ended.result.extent.seconds;
  for (auto& fault: plan.faults) counted.faults[fault.kind]++;
  KJ_IF_MAYBE(what, wrong) {
    counted.violations++;
    Violation violation{kj::mv(plan), all[plan.variant].name, kj::mv(*what),
        kj::str(ended.errors, ended.lastEvents)};
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
      violation.errors = kj::str(ended.errors, ended.lastEvents);
      return true;
    }
    return false;
  };
  // Tries the plan without one of the faults.
  for (size_t i = violation.plan.faults.size(); i-- > 0;) {
    auto smaller = violation.plan.clone();
    smaller.faults.clear();
    for (size_t k: kj::indices(violation.plan.faults)) {
      if (k != i) smaller.faults.add(violation.plan.faults[k]);
    }
    accept(kj::mv(smaller));
  }
  // Tries the plan with a faster network.
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
