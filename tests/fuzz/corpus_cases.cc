// Gives a parser the files of its corpus and simple mutations of them, without libFuzzer. This way,
// bugs that the fuzzer has found stay fixed.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <stdlib.h>

#include <random>

#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

constexpr uint64_t SEED = 1;
constexpr size_t INPUT_BYTES_MAX = 1 << 14;

kj::StringPtr variable(const char* name) {
  const char* value = ::getenv(name);
  KJ_REQUIRE(value != nullptr, "the macro fuzz_target sets this variable", name);
  return value;
}

// The files that CORPUS names, with spaces between them.
kj::Array<kj::Array<kj::byte>> corpus() {
  kj::Vector<kj::Array<kj::byte>> inputs;
  kj::StringPtr rest = variable("CORPUS");
  while (rest.size() > 0) {
    size_t end = rest.findFirst(' ').orDefault(rest.size());
    inputs.add(contentOf(kj::heapString(rest.slice(0, end))));
    rest = rest.slice(kj::min(end + 1, rest.size()));
  }
  return inputs.releaseAsArray();
}

// Random numbers that are the same on every machine.
class Draw {
public:
  uint64_t below(uint64_t count) { return count == 0 ? 0 : generator() % count; }

private:
  std::mt19937_64 generator{SEED};
};

// Returns `input` with one random edit: some bytes overwritten, removed, repeated, cut off, or
// replaced by a piece of `other`.
kj::Array<kj::byte> mutated(Bytes input, Bytes other, Draw& draw) {
  constexpr kj::byte EXTREMES[] = {0, 1, 0x7f, 0x80, 0xff, '"', '-', '9', '\n', '[', '{'};
  size_t from = draw.below(input.size() + 1);
  size_t length = kj::min(input.size() - from, size_t(1) << draw.below(8));
  kj::Vector<kj::byte> result;
  result.addAll(input.slice(0, from));
  auto middle = input.slice(from, from + length);
  switch (draw.below(5)) {
    case 0:
      for (size_t i = 0; i < middle.size(); i++) {
        result.add(draw.below(2) ? kj::byte(draw.below(256)) : EXTREMES[draw.below(11)]);
      }
      break;
    case 1:
      break;
    case 2:
      for (auto repeats = draw.below(8); repeats > 0; repeats--) result.addAll(middle);
      break;
    case 3:
      return result.releaseAsArray();
    case 4: {
      size_t at = draw.below(other.size() + 1);
      result.addAll(other.slice(at, kj::min(other.size(), at + length)));
      break;
    }
  }
  result.addAll(input.slice(from + length, input.size()));
  return result.releaseAsArray();
}

TEST_CASE("each file of the corpus is read, or refused with a sentence") {
  auto inputs = corpus();
  REQUIRE(inputs.size() > 0);
  for (auto& input: inputs) feedOne(input);
}

TEST_CASE("each mutation of the corpus is read, or refused with a sentence") {
  auto inputs = corpus();
  Draw draw;
  for (auto left = variable("MUTATIONS").parseAs<kj::uint>(); left > 0; left--) {
    auto input = kj::heapArray<kj::byte>(inputs[draw.below(inputs.size())]);
    for (auto edits = draw.below(4); edits < 4; edits++) {
      input = mutated(input, inputs[draw.below(inputs.size())], draw);
      if (input.size() > INPUT_BYTES_MAX) input = kj::heapArray(input.slice(0, INPUT_BYTES_MAX));
    }
    feedOne(input);
  }
}

}  // namespace
}  // namespace fuzz
