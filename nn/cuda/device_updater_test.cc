#include <doctest/doctest.h>
#include <kj/debug.h>
#include <string.h>

#include "configs/language/random.h"
#include "nn/cuda/device_updater.h"
#include "nn/cuda/testing/host_device.h"

namespace nn::cuda {
namespace {

constexpr RunLength RUN{.updatesPerEpoch = 4, .updates = 14};
constexpr float RESCALE = 1.0f / 96;

// Checks that all kept values were written. The memory of a HostDevice initially holds NaNs.
class NumberChecker final: public configs::StateVisitor {
public:
  bool restores() const override { return false; }
  void visit(
      kj::StringPtr name, Type type, kj::ArrayPtr<const kj::ArrayPtr<kj::byte>> pieces) override {
    CAPTURE(name);
    REQUIRE(type == Type::FLOAT32);
    bool areNumbers = true;
    for (auto& piece: pieces) {
      float value;
      for (size_t i = 0; i < piece.size(); i += sizeof(value)) {
        memcpy(&value, piece.begin() + i, sizeof(value));
        areNumbers = areNumbers && value == value;
      }
    }
    CHECK(areNumbers);
  }
};

struct Read {
  configs::Diagnostics diagnostics;
  kj::Own<configs::Document> document;
  UpdateRules rules;

  Read(kj::StringPtr text, const Conventions& conventions) {
    document = configs::parse("x.toml", text, diagnostics);
    configs::Reading reading{diagnostics, {}};
    rules = configs::readDocument(*document, reading,
        [&](configs::Reader& reader) { return UpdateRules::read(reader, conventions); });
    auto wrong = diagnostics.format("x.toml");
    INFO(doctest::String(wrong.cStr()));
    REQUIRE(diagnostics.count() == 0);
  }
};

// Three layers, with keys of one value, of less than a piece and of several pieces. One key is
// held.
kj::Array<Key> someKeys() {
  kj::Vector<Key> keys;
  uint64_t offset = 0;
  auto add = [&](kj::StringPtr name, Key::Role role, uint64_t size, float rate) {
    keys.add(Key{.name = kj::str(name),
        .role = role,
        .node = 0,
        .offset = offset,
        .size = size,
        .rows = 1,
        .cols = uint(size),
        .learningRateFactor = rate});
    offset += size;
  };
  add("a_weight", Key::WEIGHT, 2 * MOST_OF_PIECE + 7, 1);
  add("a_bias", Key::BIAS, 1, 1);
  add("b_gamma", Key::GAMMA, 33, 0);
  add("b_beta", Key::BETA, 33, 1);
  add("c_weight", Key::WEIGHT, 1003, 1);
  add("c_bias", Key::BIAS, 5, 2);
  return keys.releaseAsArray();
}

kj::Array<float> drawn(uint64_t seed, uint64_t size) {
  configs::Random random(seed, configs::Purpose::INITIAL_VALUES);
  auto result = kj::heapArray<float>(size);
  for (float& value: result) value = float(random.normal());
  return result;
}

bool sameBits(kj::ArrayPtr<const float> a, kj::ArrayPtr<const float> b) {
  return a.size() == b.size() && memcmp(a.begin(), b.begin(), a.size() * sizeof(float)) == 0;
}

// A shard's update of one key.
struct KeyByItself {
  const Key& key;
  KeyRule rule;
  kj::Array<float> state;
  kj::Array<float> slow;

  void update(uint64_t number, const UpdateRules& rules, kj::ArrayPtr<const float> gradients,
      kj::ArrayPtr<float> values) {
    auto value = values.slice(key.offset, key.offset + key.size);
    if (number == 0) slow = kj::heapArray<float>(value.asConst());
    if (rule.isFrozen()) return;
    if (rule.trainsIn(number, RUN)) {
      auto next = kj::heapArray<float>(key.size);
      rule.optimizer->apply({.gradient = gradients.slice(key.offset, key.offset + key.size),
          .rescale = RESCALE,
          .current = value,
          .next = next,
          .state = state,
          .learningRate = rule.learningRate(number, RUN),
          .decay = rule.decay(),
          .number = number});
      memcpy(value.begin(), next.begin(), next.asBytes().size());
    }
    KJ_IF_MAYBE(lookahead, rules.lookahead) lookahead->apply(number, RUN, value, slow);
  }
};

void check(kj::StringPtr text, const Conventions& conventions) {
  INFO(doctest::String(text.cStr()));
  INFO(doctest::String(conventions.name));
  Read read(text, conventions);
  auto keys = someKeys();
  uint64_t size = keys.back().offset + keys.back().size;
  auto byKeys = KJ_MAP(key, keys) {
    auto rule = read.rules.of(key);
    auto state = kj::heapArray<float>(key.size * rule.optimizer->stateArrays());
    for (float& value: state) value = 0;
    return KeyByItself{key, rule, kj::mv(state), nullptr};
  };
  auto expected = drawn(1, size), found = drawn(1, size);
  auto statistics = drawn(2, 50), expectedStatistics = drawn(2, 50);
  auto slowStatistics = drawn(2, 50), gradients = drawn(3, size);

  auto updates = KJ_ASSERT_NONNULL(ValueRules::of(read.rules, keys, RUN, RESCALE));
  HostDevice device;
  DeviceUpdater onDevice(device, updates,
      {found.begin(), size, gradients.begin(), statistics.begin(), statistics.size()});
  auto recorded = device.record([&]() { onDevice.ask(); });
  onDevice.begin(found, statistics);
  for (uint64_t number = 0; number < RUN.updates; ++number) {
    CAPTURE(number);
    auto drawnNow = drawn(10 + number, size);
    memcpy(gradients.begin(), drawnNow.begin(), drawnNow.asBytes().size());
    for (auto i: kj::indices(statistics)) statistics[i] = expectedStatistics[i] += 0.25f;
    for (auto& key: byKeys) key.update(number, read.rules, gradients, expected);
    KJ_IF_MAYBE(lookahead, read.rules.lookahead) {
      lookahead->apply(number, RUN, expectedStatistics, slowStatistics);
    }
    onDevice.prepare(number);
    device.replay(*recorded);
    REQUIRE(sameBits(found, expected));
    REQUIRE(sameBits(statistics, expectedStatistics));
    CHECK(device.takeWork().size() == (read.rules.lookahead == nullptr ? 1 : 2));
  }
  NumberChecker checker;
  onDevice.visitState(checker);
}

constexpr kj::StringPtr OPTIMIZERS[] = {"kind = \"sgd\""_kj,
    "kind = \"sgd\", momentum = 0.9, weight_decay = 1e-2"_kj,
    "kind = \"sgd\", momentum = 0.9, nesterov = true"_kj, "kind = \"adam\", weight_decay = 1e-2"_kj,
    "kind = \"adamw\""_kj, "kind = \"rmsprop\", weight_decay = 1e-2"_kj,
    "kind = \"rmsprop\", momentum = 0.9"_kj, "kind = \"rmsprop\", centered = true"_kj,
    "kind = \"rmsprop\", centered = true, momentum = 0.5"_kj};

TEST_CASE("DeviceUpdater: updates have the bits of a shard's, for each optimizer and convention") {
  for (auto& conventions: CONVENTIONS) {
    for (auto& optimizer: OPTIMIZERS) {
      check(kj::str("optimizer = { ", optimizer, " }\n",
                "schedule = { kind = \"cosine\", warmup_steps = 3 }"),
          conventions);
    }
  }
}

TEST_CASE(
    "DeviceUpdater: honours groups, frozen keys, keys whose epochs are over, and the lookahead") {
  kj::StringPtr groups = R"(
optimizer = { kind = "adam" }

[[groups]]
keys = ["c_weight"]
learning_rate_factor = 0
[[groups]]
keys = ["*_weight"]
epochs = 2
decay_factor = 0.5
optimizer = { kind = "rmsprop", momentum = 0.9, weight_decay = 0.1 }
schedule = { kind = "poly" }
[[groups]]
keys = ["b_*"]
learning_rate_factor = 3
)"_kj;
  kj::StringPtr lookaheads[] = {"", "[lookahead]\nevery = 3\ndecay = 0.75\npower = 3\n",
      "[lookahead]\nevery = 7\ndecay = 1\npower = 1\n"};
  for (auto& lookahead: lookaheads) check(kj::str(groups, lookahead), CONVENTIONS[0]);
}

TEST_CASE(
    "ValueRules: there are none for an optimizer that needs whole keys, unless they are frozen") {
  auto keys = someKeys();
  for (auto optimizer: {"lars"_kj, "muon"_kj}) {
    Read common(kj::str("optimizer = { kind = \"", optimizer, "\" }"), CONVENTIONS[0]);
    CHECK(ValueRules::of(common.rules, keys, RUN, RESCALE) == nullptr);
    Read group(
        kj::str("[[groups]]\nkeys = [\"a_weight\"]\noptimizer = { kind = \"", optimizer, "\" }"),
        CONVENTIONS[0]);
    CHECK(ValueRules::of(group.rules, keys, RUN, RESCALE) == nullptr);
    Read frozen(kj::str("[[groups]]\nkeys = [\"a_weight\"]\nlearning_rate_factor = 0\n",
                    "optimizer = { kind = \"", optimizer, "\" }"),
        CONVENTIONS[0]);
    CHECK(ValueRules::of(frozen.rules, keys, RUN, RESCALE) != nullptr);
  }
}

TEST_CASE("ValueRules: neighbours with the same rule are one piece") {
  auto keys = someKeys();
  Read read("", CONVENTIONS[0]);
  auto updates = KJ_ASSERT_NONNULL(ValueRules::of(read.rules, keys, RUN, RESCALE));
  // The held gamma separates two pieces, and the last bias has a different rate.
  REQUIRE(updates.pieces().size() == 3);
  CHECK(updates.pieces()[0].range.size() == 2 * MOST_OF_PIECE + 8);
  CHECK(updates.pieces()[1].range.size() == 33 + 1003);
  CHECK(updates.pieces()[0].rule == updates.pieces()[1].rule);
  CHECK(updates.pieces()[2].rule != updates.pieces()[1].rule);
  CHECK(updates.rules() == 3);
}

}  // namespace
}  // namespace nn::cuda
