#include "runner/checkpoints/saved_part.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include "runner/system/reason.h"
#include "tests/text.h"

namespace runner {
namespace {

// An object that keeps something of each type.
struct Keeper {
  float weights[5] = {1, 2, 3, 4, 5};
  uint64_t versions[2] = {7, 1ull << 63};
  double seconds = 0.1;
  bool rested = true;
  kj::StringPtr weightsName = "weights"_kj;

  void visitState(configs::StateVisitor& visitor) {
    kj::ArrayPtr<float> pieces[] = {
        kj::arrayPtr(weights, 2), kj::ArrayPtr<float>(), kj::arrayPtr(weights + 2, 3)};
    visitor.floats(weightsName, kj::arrayPtr(pieces, 3));
    visitor.floats("nothing", kj::ArrayPtr<float>());
    visitor.counts("versions", versions);
    visitor.number("seconds", seconds);
    visitor.count("rested", rested);
  }
};

// Returns the file in which an object is saved.
template <typename T>
kj::Array<kj::byte> saved(T& object) {
  PartSaver saver(0);
  object.visitState(saver);
  auto part = saver.finish();
  auto bytes = kj::heapArray<kj::byte>(part.size());
  part.copy(0, bytes);
  return bytes;
}

// Returns the error if `object` cannot be restored from a file. Empty if it can.
template <typename T>
kj::String whyNotRestored(T& object, kj::ArrayPtr<const kj::byte> bytes) {
  auto restore = [&]() {
    PartLoader loader(bytes);
    object.visitState(loader);
    loader.finish();
  };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(restore)) return reasonOf(*e);
  return kj::str();
}

// An object that keeps one array.
struct OneArray {
  kj::StringPtr name;
  configs::StateVisitor::Type type;
  kj::Array<kj::byte> bytes;

  void visitState(configs::StateVisitor& visitor) {
    auto piece = bytes.asPtr();
    visitor.visit(name, type, kj::arrayPtr(&piece, 1));
  }
};

OneArray zeros(kj::StringPtr name, configs::StateVisitor::Type type, size_t bytes) {
  auto values = kj::heapArray<kj::byte>(bytes);
  for (auto& value: values) value = 0;
  return {name, type, kj::mv(values)};
}

TEST_CASE("SavedPart: an object that is restored has the values that were saved") {
  Keeper before;
  auto bytes = saved(before);
  Keeper after;
  for (auto& weight: after.weights) weight = 0;
  for (auto& version: after.versions) version = 0;
  after.seconds = 0;
  after.rested = false;
  CHECK(whyNotRestored(after, bytes) == "");
  for (auto i: kj::indices(before.weights)) CHECK(after.weights[i] == before.weights[i]);
  for (auto i: kj::indices(before.versions)) CHECK(after.versions[i] == before.versions[i]);
  CHECK(after.seconds == before.seconds);
  CHECK(after.rested);
  // Saving changes nothing.
  CHECK(saved(before) == bytes);
  CHECK(saved(after) == bytes);
}

TEST_CASE("SavedPart: pieces of any size put together are the whole file") {
  Keeper keeper;
  auto whole = saved(keeper);
  PartSaver saver(0);
  keeper.visitState(saver);
  auto part = saver.finish();
  for (size_t size: {1, 7, 8, 100, int(part.head.size()), int(whole.size())}) {
    auto copy = kj::heapArray<kj::byte>(whole.size());
    for (size_t at = 0; at < copy.size(); at += size) {
      part.copy(at, copy.slice(at, kj::min(at + size, copy.size())));
    }
    CHECK_MESSAGE(copy == whole, size);
  }
}

TEST_CASE("SavedPart: a part of another experiment is refused, and the array is named") {
  using Type = configs::StateVisitor::Type;
  auto floats = zeros("weights", Type::FLOAT32, 8);
  auto bytes = saved(floats);
  auto missing = zeros("bias", Type::FLOAT32, 8);
  CHECK(whyNotRestored(missing, bytes) == "it has no `bias`");
  auto smaller = zeros("weights", Type::FLOAT32, 4);
  CHECK(whyNotRestored(smaller, bytes) ==
        "its `weights` has another type or size than this experiment's");
  auto otherType = zeros("weights", Type::FLOAT64, 8);
  CHECK(whyNotRestored(otherType, bytes) ==
        "its `weights` has another type or size than this experiment's");
  struct Nothing {
    void visitState(configs::StateVisitor&) {}
  } nothing;
  CHECK(whyNotRestored(nothing, bytes) == "it has `weights`, which this experiment does not have");
}

TEST_CASE("SavedPart: two arrays with one name are neither saved nor restored") {
  Keeper keeper;
  keeper.weightsName = "versions"_kj;
  CHECK_THROWS_WITH(saved(keeper), doctest::Contains("versions"));

  Tensor tensors[] = {
      {kj::str("twice"), "F32"_kj, kj::str("1"), 4}, {kj::str("twice"), "F32"_kj, kj::str("1"), 4}};
  auto head = safetensorsHead({}, tensors);
  auto file = kj::heapArray<kj::byte>(head.size() + 8);
  for (auto i: kj::indices(file)) file[i] = i < head.size() ? head[i] : 0;
  CHECK_THROWS_WITH(PartLoader{file}, doctest::Contains("it has `twice` twice"));
}

TEST_CASE("SavedPart: a file that is not a part is refused") {
  Keeper keeper;
  kj::byte few[] = {1, 2, 3};
  CHECK(whyNotRestored(keeper, kj::arrayPtr(few, 3)) ==
        "it is cut short, or not in the safetensors format");
}

}  // namespace
}  // namespace runner
