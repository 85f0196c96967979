#include "runner/commands/explain.h"

#include <doctest/doctest.h>
#include <kj/vector.h>
#include <string.h>

#include "configs/language/display_width.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

// Returns the plan that `explain` prints below the resolved values. Those are as wide as in the
// file.
kj::String planOf(kj::StringPtr file, kj::Maybe<uint> columns = nullptr,
    kj::ArrayPtr<const kj::StringPtr> settings = nullptr, const kj::Maybe<Links>& links = nullptr) {
  auto all = loadRuns(file, settings, nullptr);
  REQUIRE(all.errors == "");
  auto text = explain(all, links, columns);
  auto begin = strstr(text.cStr(), "\n# roles\n");
  REQUIRE(begin != nullptr);
  return kj::str(begin);
}

uint widestOf(kj::StringPtr text) {
  uint widest = 0;
  while (text.size() > 0) {
    auto end = text.findFirst('\n').orDefault(text.size() - 1);
    widest = kj::max(widest, configs::columnsOf(text.slice(0, end)));
    text = text.slice(end + 1);
  }
  return widest;
}

constexpr kj::StringPtr GROUPS = "configs/cifar10_airbench94.toml"_kj;

TEST_CASE("explain: every table is aligned, and none is Markdown") {
  auto plan = planOf(GROUPS);
  CHECK(!contains(plan, "|"));
  CHECK(!contains(plan, "---"));
  CHECK(contains(plan,
      "\nlayer         op                     output     parameters  MFLOP  "
      "segment\n"));
  CHECK(contains(plan,
      "\ngroup          keys  first                rule  learning rate    decay"
      "               until                schedule over\n"));
  CHECK(contains(plan, "\nwhere    slices  values MB  optimizer state MB\n"));
}

TEST_CASE("explain: says which roles each host has") {
  kj::StringPtr settings[] = {"cluster.hosts=[\"ann@a:2222 slots=1\", \"b\", \"c\", \"d\"]",
      "cluster.servers=1", "cluster.workers=4", "cluster.launcher=ssh"};
  auto plan = planOf("configs/cifar10_dist_sync.toml", nullptr, settings);
  CHECK(contains(plan,
      "\nhost ann@a:2222 slots=1: server 0, worker 0\nhost b: worker 1\nhost c: worker 2\n"
      "host d: worker 3\n"));
}

TEST_CASE("explain: says that threads outnumber the cores of this machine") {
  constexpr auto SENTENCE = "16384 threads of workers share the "_kj;
  kj::StringPtr settings[] = {
      "cluster.workers=256", "cluster.threads_per_worker=64", "data.batch_size=1"};
  CHECK(contains(planOf("configs/fashion_mnist_dist_sync.toml", nullptr, settings), SENTENCE));
  kj::StringPtr elsewhere[] = {"cluster.workers=256", "cluster.threads_per_worker=64",
      "data.batch_size=1", "cluster.launcher=manual"};
  CHECK(!contains(planOf("configs/fashion_mnist_dist_sync.toml", nullptr, elsewhere), SENTENCE));
}

TEST_CASE("explain: says where the roles listen, and what the launcher does not use") {
  auto check = [](std::initializer_list<kj::StringPtr> settings, kj::StringPtr words) {
    auto plan = planOf(
        "configs/cifar10_dist_sync.toml", nullptr, kj::arrayPtr(settings.begin(), settings.size()));
    INFO(plan);
    CHECK(contains(plan, words));
  };
  constexpr kj::StringPtr HOSTS = "cluster.hosts=[\"a\", \"b\"]"_kj;
  check({}, "; addresses on 127.0.0.1, ports chosen by the system\n5");
  check({"cluster.interface=eth0", HOSTS},
      "; addresses on 127.0.0.1, ports chosen by the system\nlauncher local starts all roles on "
      "this machine, and uses neither cluster.hosts nor cluster.interface\n5");
  check({"cluster.launcher=ssh", HOSTS, "cluster.port=7000"},
      "; the coordinator listens at the address from which this machine reaches the hosts, and "
      "each other role at the address from which it reaches the coordinator; port 7000\nhost a: ");
  check({"cluster.launcher=mpi", "cluster.interface=eth0", "cluster.port=7000-7031"},
      "; the coordinator listens at cluster.interface, eth0, and each other role at the address "
      "from which it reaches the coordinator; "
      "ports 7000 to 7031\n");
  check({"cluster.launcher=slurm"}, "at the address from which its node reaches the others, ");
  check({"cluster.launcher=manual"}, "; the coordinator listens at 127.0.0.1, ");
}

TEST_CASE("explain: says why a bandwidth changes nothing in a mode without a network") {
  constexpr kj::StringPtr WHY =
      "\nmode local sends nothing over a network, so --bandwidth changes nothing\n"_kj;
  kj::Maybe<Links> links = Links{.mbit = 1000, .overhead_ms = 0};
  CHECK(contains(planOf("configs/cifar10_local.toml", nullptr, nullptr, links), WHY));
  CHECK(!contains(planOf("configs/cifar10_local.toml"), "--bandwidth"));
  auto sync = planOf("configs/cifar10_dist_sync.toml", nullptr, nullptr, links);
  CHECK(contains(sync, " of network at 1000 Mbit/s\n"));
  CHECK(!contains(sync, "--bandwidth"));
}

TEST_CASE("explain: fits the width of a terminal, and says where columns are left out") {
  for (auto file: {GROUPS, "configs/cifar10_dist_sync.toml"_kj}) {
    INFO(file);
    CHECK(widestOf(planOf(file)) > 80);
    CHECK(widestOf(planOf(file, 80)) <= 80);
  }
  auto plan = planOf(GROUPS, 80);
  CHECK(contains(plan, "\ngroup          rule  learning rate    decay               until\n"));
  CHECK(contains(plan, "\n(some columns are left out; `runner explain FILE | cat` shows all)\n"));
  CHECK(!contains(planOf(GROUPS, 200), "columns are left out"));
}

}  // namespace
}  // namespace runner
