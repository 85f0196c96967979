// Whole runs whose workers compute on GPUs, done by the host, beside the same runs on processors.
#include <doctest/doctest.h>
#include <kj/vector.h>

#include "tests/cluster/whole_runs.h"

namespace tests {
namespace {

constexpr kj::StringPtr ON_HOST = "tests/gpu/runner_on_host"_kj;
// Small: the host is slow.
constexpr kj::StringPtr SMALL[] = {"train.steps=12"_kj, "data.batch_size=20"_kj,
    "data.held_out=100"_kj, "data.validate_on=held_out"_kj, "log.every=4"_kj, "log.top_k=2"_kj};
// Returns the top-2 accuracy that worker 0 found last.
double topTwo(const Trained& run) {
  double accuracy = 0;
  eachEvent(run, [&](runner::Event::Reader event) {
    if (event.isValidated()) accuracy = event.getValidated().getTopK().getAccuracy();
  });
  return accuracy;
}

constexpr auto LOCAL = {"kvstore.mode=local"_kj, "cluster.servers=0"_kj, "cluster.workers=1"_kj};

Trained trainOn(kj::StringPtr devices, Settings settings, Settings more = nullptr) {
  kj::Vector<kj::StringPtr> all;
  all.addAll(kj::arrayPtr(SMALL, kj::size(SMALL)));
  all.addAll(settings);
  all.addAll(more);
  auto word = kj::str("cluster.devices=", devices);
  all.add(word);
  return train(BATCH_NORM, all, ON_HOST);
}

void checkNear(const Trained& a, const Trained& b) {
  CHECK(distance(a, b) < 1e-4);
  // Of 100 images.
  CHECK(validationAccuracy(a) == doctest::Approx(validationAccuracy(b)).epsilon(0.03));
  CHECK(topTwo(a) == doctest::Approx(topTwo(b)).epsilon(0.03));
  CHECK(topTwo(a) > validationAccuracy(a));
}

double trainingLoss(const Trained& run) {
  double loss = 0;
  eachEvent(run, [&](runner::Event::Reader event) {
    if (event.isTrained()) loss = event.getTrained().getLoss();
  });
  return loss;
}

// Returns the text of the worker's log.
kj::String logOf(const Trained& run) {
  return kj::str(readFile(kj::str(run.folder, "/worker-0.log")));
}

TEST_CASE("a GPU that updates its parameters itself trains as the processor does") {
  auto gpu = trainOn("[\"cuda\"]", LOCAL);
  checkNear(gpu, trainOn("[\"cpu\"]", LOCAL));
  confusionOf(gpu);
  CHECK(contains(logOf(gpu), "cuda updates the parameters, which stay there"));
  CHECK(contains(logOf(gpu), "[gpu(0)]"));
  // The place of the images changes nothing.
  auto kept = trainOn("[\"cuda\"]", LOCAL, {"data.cache=device"});
  CHECK(kept.weightsSha256 == gpu.weightsSha256);
  CHECK(confusionOf(kept) == confusionOf(gpu));
}

TEST_CASE("GPUs of several workers push the gradients that processors would") {
  for (auto transport: {"kvstore.transport=shared_memory"_kj, "kvstore.transport=tcp"_kj}) {
    CAPTURE(transport);
    auto gpus = trainOn("[\"cuda\"]", nullptr, {transport});
    checkNear(gpus, trainOn("[\"cpu\"]", nullptr));
    confusionOf(gpus);
  }
}

TEST_CASE("two GPUs of a worker share its batch as two processors do") {
  kj::StringPtr settings[] = {"kvstore.mode=device", "cluster.servers=0", "cluster.workers=1"};
  auto gpus = trainOn("[\"cuda:0\", \"cuda:1\"]", settings);
  checkNear(gpus, trainOn("[\"cpu:0\", \"cpu:1\"]", settings));
  confusionOf(gpus);
}

TEST_CASE("a GPU trains in bf16 and fp16 with about the same loss as in fp32") {
  auto floats = trainOn("[\"cuda\"]", LOCAL);
  for (auto precision: {"train.precision=bf16"_kj, "train.precision=fp16"_kj}) {
    CAPTURE(precision);
    auto narrow = trainOn("[\"cuda\"]", LOCAL, {precision});
    CHECK(narrow.weightsSha256 != floats.weightsSha256);
    CHECK(trainingLoss(narrow) == doctest::Approx(trainingLoss(floats)).epsilon(0.05));
  }
}

}  // namespace
}  // namespace tests
