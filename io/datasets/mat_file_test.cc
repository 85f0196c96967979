#include "io/datasets/mat_file.h"

#include <doctest/doctest.h>

#include "io/testing/mat_file.h"
#include "io/testing/scratch.h"
#include "tests/text.h"

namespace io {

namespace {

constexpr Synset SYNSETS[] = {{1, "n02"_kj, "kit fox, Vulpes macrotis"_kj}, {2, "n01"_kj, "a"_kj}};

}  // namespace

TEST_CASE("matTable: reads the texts and numbers of a struct array, compressed or not") {
  for (bool isPacked: {false, true}) {
    auto rows = matTable(matFileOf(SYNSETS, isPacked), "synsets");
    REQUIRE(rows.size() == 2);
    for (auto i: kj::indices(rows)) {
      CHECK(KJ_ASSERT_NONNULL(rows[i].numbers.find("ILSVRC2012_ID"_kj)) == SYNSETS[i].id);
      CHECK(KJ_ASSERT_NONNULL(rows[i].texts.find("WNID"_kj)) == SYNSETS[i].folder);
      CHECK(KJ_ASSERT_NONNULL(rows[i].texts.find("words"_kj)) == SYNSETS[i].words);
      // An array without values has neither a text nor a number.
      CHECK(rows[i].texts.size() == 2);
      CHECK(rows[i].numbers.size() == 1);
    }
  }
}

TEST_CASE("matTable: reports errors in a file") {
  auto refusal = [](kj::ArrayPtr<const kj::byte> file, kj::StringPtr name) {
    return thrownBy([&]() { matTable(file, name); });
  };
  auto file = matFileOf(SYNSETS, false);
  CHECK(refusal(file, "other") == "has no table other");
  CHECK(refusal("text"_kj.asBytes(), "x") == "is damaged, or is not a MAT-file of level 5");
}

TEST_CASE("matTable: refuses a damaged file, or reads another table from it") {
  for (bool isPacked: {false, true}) {
    auto file = matFileOf(SYNSETS, isPacked);
    for (size_t at = 128; at < file.size(); ++at) {
      auto cut = kj::heapArray<kj::byte>(file.slice(0, at));
      thrownBy([&]() { matTable(cut, "synsets"); });
      for (auto byte: {0, 1, 0x7f, 0xff}) {
        auto changed = kj::heapArray<kj::byte>(file);
        changed[at] = byte;
        auto refusal = thrownBy([&]() {
          auto rows = matTable(changed, "synsets");
          CHECK(rows.size() <= file.size());
        });
        bool isPlain = refusal == "" || refusal == "has no table synsets" ||
                       refusal == "is damaged, or is not a MAT-file of level 5";
        INFO(refusal);
        CHECK(isPlain);
      }
    }
  }
}

}  // namespace io
