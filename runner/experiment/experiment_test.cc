#include "runner/experiment/experiment.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include "runner/experiment/devices.h"
#include "runner/system/files.h"

namespace runner {
namespace {

constexpr uint64_t TEXT_BYTES_MAX = 1 << 24;

LoadedExperiment load(kj::StringPtr path, kj::ArrayPtr<const kj::StringPtr> overrides = nullptr) {
  auto loaded = loadExperiment(path, overrides);
  CAPTURE(loaded.errors.cStr());
  REQUIRE(loaded.experiment != nullptr);
  return loaded;
}

TEST_CASE("languageReference: configs/REFERENCE.md is what the program prints") {
  // If they differ: bazel-bin/runner/runner reference > configs/REFERENCE.md
  CHECK(readWhole("configs/REFERENCE.md", TEXT_BYTES_MAX) == languageReference());
}

TEST_CASE("loadExperiment: an override changes the value and the digest") {
  kj::StringPtr override = "train.epochs=3";
  auto plain = load("configs/mnist_mlp_local.toml");
  auto changed = load("configs/mnist_mlp_local.toml", kj::arrayPtr(&override, 1));
  CHECK(KJ_ASSERT_NONNULL(changed.experiment).train.epochs == 3);
  CHECK(plain.digest != changed.digest);
}

TEST_CASE("loadExperiment: the place of the data does not change the digest of a fixed data set") {
  auto plain = load("configs/mnist_mlp_local.toml", nullptr);
  kj::StringPtr override = "data.source=/somewhere";
  auto moved = load("configs/mnist_mlp_local.toml", kj::arrayPtr(&override, 1));
  CHECK(moved.resolved != plain.resolved);
  CHECK(moved.digest == plain.digest);
  addRecords(moved);  // reads nothing
  CHECK(moved.digest == plain.digest);
}

TEST_CASE("loadExperiment: the paths of labels and class names do not change the digest") {
  kj::StringPtr overrides[] = {"data.dataset=image_folder", "data.encoding=raw",
      "data.source=/here", "data.labels=/here/labels.tsv",
      "data.validation_labels=/here/validation.tsv", "data.class_names=/here/names.txt"};
  auto here = load("configs/mnist_mlp_local.toml", overrides);
  overrides[2] = "data.source=/there";
  overrides[3] = "data.labels=/there/labels.tsv";
  overrides[4] = "data.validation_labels=/there/validation.tsv";
  overrides[5] = "data.class_names=/there/names.txt";
  auto there = load("configs/mnist_mlp_local.toml", overrides);
  CHECK(there.resolved != here.resolved);
  CHECK(there.digest == here.digest);
}

TEST_CASE("loadExperiment: other hosts, ports and launchers do not change the digest") {
  kj::StringPtr overrides[] = {"cluster.hosts=[\"a\", \"b slots=2\"]", "cluster.interface=eth0",
      "cluster.port=7000", "cluster.start_timeout_s=600", "cluster.launcher=kubernetes",
      "cluster.image=runner:1", "cluster.kubernetes={ runs = \"runs\" }"};
  auto plain = load("configs/mnist_mlp_local.toml");
  auto there = load("configs/mnist_mlp_local.toml", overrides);
  CHECK(there.resolved != plain.resolved);
  CHECK(there.digest == plain.digest);
}

TEST_CASE("loadExperiment: accepts bf16 for GPUs on a host that has only AVX2") {
  kj::StringPtr overrides[] = {
      "train.precision=bf16", "cluster.instruction_set=avx2", "cluster.devices=[\"cuda\"]"};
  load("configs/mnist_mlp_local.toml", overrides);
  overrides[2] = "cluster.devices=[\"cpu\"]";
  CHECK(loadExperiment("configs/mnist_mlp_local.toml", overrides).errors.size() > 0);
}

TEST_CASE(
    "loadExperiment: the resolved file has [published] and [expect], but they do not change the "
    "digest") {
  kj::StringPtr overrides[] = {"expect.train_loss.at_most=1", "published.source=\"a page\"",
      "published.rows=[{ where = { cluster.workers = 1 }, loss = 0.5 },"
      " { where = { \"cluster.workers\" = 2 }, loss = 0.6 }]"};
  auto plain = load("configs/mnist_mlp_local.toml");
  auto more = load("configs/mnist_mlp_local.toml", overrides);
  auto& published = KJ_ASSERT_NONNULL(KJ_ASSERT_NONNULL(more.experiment).published);
  REQUIRE(published.rows.size() == 1);
  CHECK(published.rows[0].loss == 0.5);
  CHECK(KJ_ASSERT_NONNULL(more.experiment).expectations.size() == 1);
  CHECK(more.digest == plain.digest);

  // The resolved file, which a run's folder keeps, has both sections.
  auto path = kj::str(::getenv("TEST_TMPDIR"), "/resolved_more.toml");
  writeWhole(path, more.resolved);
  auto again = load(path);
  CHECK(again.resolved == more.resolved);
  CHECK(again.digest == plain.digest);
}

TEST_CASE("graphOf: the networks have the published numbers of parameters") {
  struct {
    kj::StringPtr network;
    kj::StringPtr dataset;
    uint64_t parameters;
  } rows[] = {{"mlp", "mnist", 109386}, {"lenet", "mnist", 431080},
      {"inception-bn-28-small", "cifar10", 1652826}};
  for (auto& row: rows) {
    auto network = kj::str("model.network=", row.network);
    auto dataset = kj::str("data.dataset=", row.dataset);
    kj::StringPtr overrides[] = {network, dataset};
    auto loaded = load("configs/cifar10_local.toml", kj::arrayPtr(overrides, 2));
    auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
    auto facts = KJ_ASSERT_NONNULL(io::factsOf(experiment.data));
    auto graph = graphOf(experiment, facts);
    CHECK(graph.parameters == row.parameters);
  }
}

TEST_CASE("roles: names the servers and workers of a job, and says if it has no servers") {
  ClusterConfig cluster{};
  cluster.workers = 1;
  CHECK(cluster.roles() == "1 worker, no servers");
  cluster.servers = 2;
  CHECK(cluster.roles() == "2 servers and 1 worker");
}

TEST_CASE("devicesAfter: workers on one host have GPUs of their own, and share its CPU") {
  kj::String devices[] = {kj::str("cuda:1"), kj::str("cpu"), kj::str("cuda")};
  CHECK(kj::strArray(devicesAfter(devices, 0), " ") == "cuda:1 cpu cuda");
  CHECK(kj::strArray(devicesAfter(devices, 2), " ") == "cuda:5 cpu cuda:4");
}

}  // namespace
}  // namespace runner
