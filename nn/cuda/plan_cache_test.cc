#include "nn/cuda/plan_cache.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <sys/file.h>

#include "tests/command.h"
#include "tests/text.h"

namespace nn::cuda {
namespace {

class Folder {
public:
  Folder(): folder(kj::newInMemoryDirectory(kj::nullClock())) {}

  PlanCache cache() { return PlanCache(folder->clone().downcast<const kj::Directory>()); }
  kj::String text() { return folder->openFile(FILE)->readAllText(); }
  void write(kj::StringPtr text) {
    folder->openFile(FILE, kj::WriteMode::CREATE | kj::WriteMode::MODIFY)->writeAll(text);
  }

private:
  const kj::Path FILE{"cuda_plans.txt"};
  kj::Own<const kj::Directory> folder;
};

kj::String found(PlanCache& cache, kj::StringPtr key) {
  KJ_IF_MAYBE(name, cache.find(key)) return kj::str(*name);
  return kj::str("nothing");
}
kj::String found(PlanCache&& cache, kj::StringPtr key) {
  return found(cache, key);
}

TEST_CASE("PlanCache: later runs know the measurements of an earlier run") {
  Folder folder;
  auto first = folder.cache();
  CHECK(found(first, "H100 forward") == "nothing");
  first.remember("H100 forward", "cudnn 62 2=4");
  first.remember("H100 data", "cublaslt 00");
  first.remember("H100 forward", "cudnn 22");
  CHECK(found(first, "H100 forward") == "cudnn 22");

  auto second = folder.cache();
  CHECK(found(second, "H100 forward") == "cudnn 22");
  CHECK(found(second, "H100 data") == "cublaslt 00");
  CHECK(found(second, "H100") == "nothing");
}

TEST_CASE("PlanCache: two processes at once lose nothing that was written before") {
  Folder folder;
  auto one = folder.cache();
  auto other = folder.cache();
  one.remember("a", "1");
  other.remember("b", "2");
  one.remember("c", "3");
  auto all = folder.cache();
  CHECK(kj::str(found(all, "a"), found(all, "b"), found(all, "c")) == "123");
}

TEST_CASE("PlanCache: one cache of a folder at a time measures") {
  auto path = tests::newFolder();
  auto filesystem = kj::newDiskFilesystem();
  auto open = [&]() {
    return filesystem->getRoot().openSubdir(
        filesystem->getCurrentPath().evalNative(path), kj::WriteMode::MODIFY);
  };
  PlanCache cache(open());
  auto other = open();
  auto isFree = [&]() {
    return ::flock(KJ_REQUIRE_NONNULL(other->getFd()), LOCK_EX | LOCK_NB) == 0;
  };
  {
    auto lock = cache.lockForMeasuring();
    CHECK_FALSE(isFree());
  }
  CHECK(isFree());
}

TEST_CASE("PlanCache: a file of another format, or a broken one, is replaced") {
  for (auto text: {""_kj, "runner's fastest CUDA plans, 0\na\t1\n"_kj, "\377\376\0garbage"_kj,
           "runner's fastest CUDA plans, 1\na\t1\nb"_kj,
           "runner's fastest CUDA plans, 1\na\t1\nb\t"_kj}) {
    CAPTURE(text.cStr());
    Folder folder;
    folder.write(text);
    auto cache = folder.cache();
    CHECK(found(cache, "a") == "nothing");
    cache.remember("c", "3");
    CHECK(folder.text().startsWith("runner's fastest CUDA plans, 1\n"));
    CHECK(found(folder.cache(), "c") == "3");
  }
}

TEST_CASE("PlanCache: the text of a convolution contains all of its properties") {
  ConvolutionProblem shape{.element = Element::BFLOAT16,
      .output = Element::FLOAT32,
      .tensorFloats = false,
      .images = 128,
      .x = {64, 32, 31, 64},
      .y = {96, 16, 15, 128},
      .kernelHeight = 3,
      .kernelWidth = 2,
      .stride = 2,
      .pad = 1,
      .deterministic = false};
  CHECK(textOf(shape, Direction::FORWARD) ==
        "forward bf16 to fp32 128 64x32x31 to 96/128x16x15, 3x2 stride 2 pad 1");
  shape.element = Element::FLOAT32;
  shape.tensorFloats = shape.deterministic = true;
  CHECK(textOf(shape, Direction::BACKWARD_FILTERS) ==
        "filters fp32 128 64x32x31 to 96/128x16x15, 3x2 stride 2 pad 1, tf32, deterministic");
}

class FakePlan final: public LibraryPlan {
public:
  FakePlan(kj::StringPtr name, kj::Maybe<double> seconds): seconds(seconds), nameText(name) {}
  kj::StringPtr name() const override { return nameText; }
  size_t workspace_bytes() const override { return 0; }
  kj::Maybe<kj::String> run(const Handles&, const void*, const void*, void*, void*) override {
    KJ_UNIMPLEMENTED("a fake");
  }
  const kj::Maybe<double> seconds;

private:
  kj::StringPtr nameText;
};

kj::String fastestName(kj::Array<kj::Own<LibraryPlan>> plans) {
  auto measure = [](LibraryPlan& plan) { return kj::downcast<FakePlan>(plan).seconds; };
  KJ_IF_MAYBE(plan, fastest(kj::mv(plans), measure)) return kj::str((*plan)->name());
  return kj::str("none");
}

TEST_CASE("fastest: returns the fastest plan that runs, and the first of equal ones") {
  CHECK(fastestName(kj::arr<kj::Own<LibraryPlan>>(kj::heap<FakePlan>("fails", nullptr),
            kj::heap<FakePlan>("slow", 3.0), kj::heap<FakePlan>("fast", 2.0),
            kj::heap<FakePlan>("as fast", 2.0))) == "fast");
  CHECK(fastestName(kj::arr<kj::Own<LibraryPlan>>(kj::heap<FakePlan>("fails", nullptr))) == "none");
}

}  // namespace
}  // namespace nn::cuda
