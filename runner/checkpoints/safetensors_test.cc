#include "runner/checkpoints/safetensors.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <string.h>

#include "runner/system/reason.h"
#include "tests/text.h"

namespace runner {
namespace {

using kj::uint;
using tests::contains;

// Returns a file with this header, followed by the given number of bytes of values.
kj::Array<kj::byte> fileWith(kj::StringPtr header, size_t values_bytes = 0) {
  auto file = kj::heapArray<kj::byte>(8 + header.size() + values_bytes);
  for (uint i = 0; i < 8; i++) file[i] = kj::byte(uint64_t(header.size()) >> (8 * i));
  memcpy(file.begin() + 8, header.begin(), header.size());
  for (size_t i = 0; i < values_bytes; i++) file[8 + header.size() + i] = kj::byte(i);
  return file;
}

// Returns the error of tensorsIn() about a file with this header. Empty if it accepts the file.
kj::String complaintAbout(kj::StringPtr header, size_t values_bytes = 0) {
  auto file = fileWith(header, values_bytes);
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { tensorsIn(file); })) return reasonOf(*e);
  return kj::str();
}

// Three tensors with 12, 16 and 0 bytes of values.
kj::Array<kj::byte> smallFile() {
  Tensor tensors[] = {{kj::str("bias"), "F32"_kj, kj::str("3"), 12},
      {kj::str("counts"), "U64"_kj, kj::str("2,1"), 16},
      {kj::str("none"), "F64"_kj, kj::str("0"), 0}};
  Note notes[] = {{"format"_kj, kj::str("pt")}};
  auto head = safetensorsHead(notes, tensors);
  auto file = kj::heapArray<kj::byte>(head.size() + 28);
  memcpy(file.begin(), head.begin(), head.size());
  for (uint i = 0; i < 28; i++) file[head.size() + i] = kj::byte(i + 1);
  return file;
}

TEST_CASE("safetensors: a file has the tensors that were written, in their order") {
  auto file = smallFile();
  auto tensors = tensorsIn(file);
  REQUIRE(tensors.size() == 3);
  CHECK(tensors[0].name == "bias");
  CHECK(tensors[0].type == "F32");
  CHECK(tensors[0].values.size() == 12);
  CHECK(tensors[0].values[0] == 1);
  CHECK(tensors[1].name == "counts");
  CHECK(tensors[1].type == "U64");
  CHECK(tensors[1].shape == "2,1");
  CHECK(tensors[1].values.size() == 16);
  CHECK(tensors[1].values[0] == 13);
  CHECK(tensors[2].name == "none");
  CHECK(tensors[2].values.size() == 0);
  CHECK((tensors[0].values.begin() - file.begin()) % 8 == 0);
  CHECK(KJ_ASSERT_NONNULL(valuesIn(file)).size() == 28);
}

TEST_CASE("safetensors: a file that is cut short anywhere is refused") {
  auto file = smallFile();
  for (size_t bytes = 0; bytes < file.size(); bytes++) {
    INFO(bytes);
    // A copy, so that sanitizers see reads beyond the end.
    auto cut = kj::heapArray<kj::byte>(file.slice(0, bytes));
    CHECK_THROWS(tensorsIn(cut));
  }
}

TEST_CASE("safetensors: a file with bytes after its last value is refused") {
  auto file = smallFile();
  auto longer = kj::heapArray<kj::byte>(file.size() + 1);
  memcpy(longer.begin(), file.begin(), file.size());
  CHECK_THROWS_WITH(
      tensorsIn(longer), doctest::Contains("the tensors in its header overlap, or leave bytes"));
}

TEST_CASE("safetensors: a file with any flipped bit is refused, or its tensors are within it") {
  auto file = smallFile();
  auto values = KJ_ASSERT_NONNULL(valuesIn(file));
  size_t accepted = 0;
  for (size_t at: kj::indices(file)) {
    for (uint bit = 0; bit < 8; bit++) {
      INFO("byte ", at, ", bit ", bit);
      auto copy = kj::heapArray<kj::byte>(file.asPtr());
      copy[at] ^= 1 << bit;
      kj::Array<FoundTensor> tensors;
      bool refused = kj::runCatchingExceptions([&]() { tensors = tensorsIn(copy); }) != nullptr;
      if (refused) {
        CHECK(at < size_t(values.begin() - file.begin()));
        continue;
      }
      accepted++;
      size_t total = 0;
      for (auto& tensor: tensors) {
        CHECK(tensor.values.begin() >= copy.begin());
        CHECK(tensor.values.end() <= copy.end());
        CHECK(tensor.values.size() % (tensor.type == "F32" ? 4 : 8) == 0);
        total += tensor.values.size();
      }
      CHECK(total == 28);
    }
  }
  CHECK(accepted >= 28 * 8);
}

TEST_CASE("safetensors: a header with wrong offsets, sizes or shapes is refused") {
  struct Case {
    kj::StringPtr entry;
    kj::StringPtr complaint;
  };
  constexpr Case CASES[] = {
      {R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]})"_kj, "do not agree"_kj},
      {R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]})"_kj, "do not agree"_kj},
      {R"("a":{"dtype":"F64","shape":[2],"data_offsets":[0,8]})"_kj, "do not agree"_kj},
      {R"("a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]})"_kj, "outside of the file"_kj},
      {R"("a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]})"_kj, "outside of the file"_kj},
      {R"("a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]})"_kj, "outside of the file"_kj},
      {R"("a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]})"_kj,
          "`data_offsets` that does not consist of whole"_kj},
      {R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8.5]})"_kj,
          "`data_offsets` that does not consist of whole"_kj},
      {R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,1e300]})"_kj,
          "`data_offsets` that does not consist of whole"_kj},
      {R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,"8"]})"_kj,
          "`data_offsets` that does not consist of whole"_kj},
      {R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,16]})"_kj, "do not agree"_kj},
      {R"("a":{"dtype":"F32","shape":[2],"data_offsets":[]})"_kj, "do not agree"_kj},
      {R"("a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]})"_kj,
          "`shape` that does not consist of whole"_kj},
      {R"("a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"_kj,
          "`shape` that does not consist of whole"_kj},
      {R"("a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})"_kj,
          "too large"_kj},
      {R"("a":{"dtype":"F32","shape":2,"data_offsets":[0,8]})"_kj, "do not agree"_kj},
      {R"("a":{"dtype":"I32","shape":[2],"data_offsets":[0,8]})"_kj, "the type `I32`"_kj},
      {R"("a":{"dtype":4,"shape":[2],"data_offsets":[0,8]})"_kj, "do not agree"_kj},
      {R"("a":{"shape":[2],"data_offsets":[0,8]})"_kj, "do not agree"_kj},
      {R"("a":{"dtype":"F32","data_offsets":[0,8]})"_kj, "do not agree"_kj},
      {R"("a":{"dtype":"F32","shape":[2]})"_kj, "do not agree"_kj},
      {R"("a":[0,8])"_kj, "not a JSON object of objects"_kj},
      // Two tensors at one place, and a place that belongs to no tensor.
      {R"("a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)"
       R"("b":{"dtype":"F64","shape":[1],"data_offsets":[0,8]})"_kj,
          "overlap, or leave bytes"_kj},
      {R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]})"_kj, "overlap, or leave bytes"_kj},
      {R"("a":{"dtype":"F32","shape":[0],"data_offsets":[8,8]})"_kj, "overlap, or leave bytes"_kj},
  };
  for (auto& each: CASES) {
    INFO(each.entry.cStr());
    CHECK_MESSAGE(contains(complaintAbout(kj::str("{", each.entry, "}"), 8), each.complaint),
        complaintAbout(kj::str("{", each.entry, "}"), 8));
  }
  CHECK(complaintAbout(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8) == "");
  // Other programs may list tensors in an order that differs from the order of their values.
  CHECK(complaintAbout(R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
                       R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
            8) == "");
}

TEST_CASE("safetensors: a header that is not JSON, is nested deeply or is huge is refused") {
  CHECK(complaintAbout("") == "its header is not JSON");
  CHECK(complaintAbout("{") == "its header is not JSON");
  CHECK(complaintAbout("[]") == "its header is not a JSON object of objects");
  CHECK(complaintAbout("{\"a\":1}") == "its header is not a JSON object of objects");
  CHECK(complaintAbout("{\"\xff\":1}") != "");
  for (kj::StringPtr opening: {"["_kj, "{\"a\":"_kj}) {
    kj::Vector<kj::StringPtr> deep;
    for (uint i = 0; i < 100000; i++) deep.add(opening);
    CHECK(complaintAbout(kj::strArray(deep, "")) == "its header is not JSON");
  }
  auto huge = kj::heapString(5 << 20);
  memset(huge.begin(), ' ', huge.size());
  CHECK(complaintAbout(huge) == "its header is too large");
}

TEST_CASE("safetensors: a header that claims to be longer than the file is refused") {
  for (uint64_t claim: {uint64_t(3), uint64_t(1) << 40, ~uint64_t(0), ~uint64_t(0) - 7}) {
    INFO(claim);
    auto file = fileWith("{}");
    for (uint i = 0; i < 8; i++) file[i] = kj::byte(claim >> (8 * i));
    CHECK(valuesIn(file) == nullptr);
    CHECK_THROWS_WITH(tensorsIn(file), doctest::Contains("it is cut short"));
  }
}

}  // namespace
}  // namespace runner
