#include "runner/weights/mxnet_params.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <string.h>

#include "runner/system/reason.h"
#include "tests/text.h"

namespace runner {
namespace {

using kj::uint;

constexpr uint32_t V1 = 0xf993fac8, V2 = 0xf993fac9, V3 = 0xf993faca;
constexpr uint32_t FLOAT32 = 0, FLOAT64 = 1, FLOAT16 = 2, INT8 = 5, BFLOAT16 = 12;

// A file, written number by number.
class File {
public:
  // Begins a list of the given number of arrays.
  explicit File(uint64_t arrays, uint64_t magic = 0x112) {
    add(magic, 8);
    add(0, 8);
    add(arrays, 8);
  }

  File& add(uint64_t value, uint count) {
    for (uint i = 0; i < count; i++) bytes.add(kj::byte(value >> (8 * i)));
    return *this;
  }
  // Adds the beginning of an array of version 1 to 3, to its type.
  File& array(uint32_t version, std::initializer_list<int64_t> shape, uint32_t type) {
    add(version, 4);
    if (version != V1) add(0, 4);  // dense
    add(shape.size(), 4);
    for (auto side: shape) add(side, 8);
    return device().add(type, 4);
  }
  // Adds the beginning of an array as MXNet wrote it before version 1.
  File& oldest(std::initializer_list<uint32_t> shape, uint32_t type) {
    add(shape.size(), 4);
    for (auto side: shape) add(side, 4);
    return device().add(type, 4);
  }
  template <typename T>
  File& values(std::initializer_list<T> list) {
    for (auto& value: list) {
      auto from = reinterpret_cast<const kj::byte*>(&value);
      bytes.addAll(from, from + sizeof(value));
    }
    return *this;
  }
  File& names(std::initializer_list<kj::StringPtr> list) {
    add(list.size(), 8);
    for (auto name: list) {
      add(name.size(), 8);
      bytes.addAll(name.asBytes());
    }
    return *this;
  }

  // A copy of the first bytes, so that sanitizers see reads beyond the end.
  kj::Array<kj::byte> first(size_t count) const {
    return kj::heapArray(bytes.asPtr().slice(0, count));
  }
  kj::Array<kj::byte> whole() const { return first(size()); }
  size_t size() const { return bytes.size(); }

private:
  kj::Vector<kj::byte> bytes;

  File& device() { return add(1, 4).add(0, 4); }
};

kj::String complaintAbout(const File& file) {
  auto bytes = file.whole();
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { mxnetArraysIn(bytes); })) return reasonOf(*e);
  return kj::str();
}

// A file with one array named `arg:x` of 2×1 floats.
File one() {
  File file(1);
  file.array(V2, {2, 1}, FLOAT32).values({1.5f, -2.f}).names({"arg:x"});
  return file;
}

TEST_CASE("MXNet: arrays of all versions and types have their names, shapes and values") {
  File file(6);
  file.array(V2, {2, 1}, FLOAT32).values({1.5f, -2.f});
  file.array(V1, {1}, FLOAT64).values({0.25});
  file.oldest({1, 1, 1, 3}, FLOAT16).values({uint16_t(1), uint16_t(2), uint16_t(3)});
  file.array(V3, {1, 2}, FLOAT32).values({3.f, 4.f});
  file.array(V3, {}, FLOAT32).values({5.f});  // a number
  file.array(V2, {1}, BFLOAT16).values({uint16_t(6)});
  file.names({"arg:fc_weight", "aux:bn_moving_var", "plain", "arg:", "argument", "aux:arg:x"});
  auto bytes = file.whole();
  CHECK(isMxnetParams(bytes));
  auto found = mxnetArraysIn(bytes);
  auto texts = KJ_MAP(array, found) {
    return kj::str(array.name, " ", array.type, " ", array.shape, " ", array.values.size());
  };
  CHECK(kj::strArray(texts, "\n") ==
        "fc_weight F32 2,1 8\nbn_moving_var F64 1 8\nplain F16 1,1,1,3 6\n F32 1,2 8\n"
        "argument F32  4\narg:x BF16 1 2");
  CHECK(found[2].values[4] == 3);
  CHECK(found[5].values[0] == 6);
}

TEST_CASE("MXNet: a file that is cut short anywhere is refused") {
  auto file = one();
  CHECK(complaintAbout(file) == "");
  for (size_t bytes = 0; bytes < file.size(); bytes++) {
    INFO(bytes);
    CHECK_THROWS(mxnetArraysIn(file.first(bytes)));
  }
  CHECK(complaintAbout(one().add(0, 1)) == "it has more bytes after the last name");
}

TEST_CASE("MXNet: numbers that are too large are refused before memory is allocated") {
  constexpr uint64_t MOST = ~0ull;
  CHECK(complaintAbout(File(MOST)) == "it is cut short");
  CHECK(complaintAbout(File(1).add(0xfffffff0, 4)) == "it is cut short");
  CHECK(complaintAbout(File(1).add(V1, 4).add(0xfffffff0, 4)) == "it is cut short");
  CHECK(complaintAbout(File(1).array(V2, {1ll << 40}, FLOAT32)) == "it is cut short");
  CHECK(complaintAbout(File(1).array(V2, {1ll << 40, 1ll << 40, 1ll << 40}, FLOAT32)) ==
        "it is cut short");
  CHECK(complaintAbout(File(0).add(MOST, 8)) == "it has 0 arrays, but 18446744073709551615 names");
  File name(1);
  name.array(V2, {1}, FLOAT32).values({1.f}).add(1, 8).add(MOST, 8);
  CHECK(complaintAbout(name) == "it is cut short");
}

TEST_CASE("MXNet: reports a file that is not one of MXNet's") {
  CHECK(!isMxnetParams("hello"_kj.asBytes()));
  CHECK(complaintAbout(File(0, 0x113)) == "it does not begin as MXNet's lists of arrays do");
}

TEST_CASE("MXNet: refuses arrays without names, a wrong number of names, and equal names") {
  auto array = []() {
    File file(1);
    file.array(V2, {1}, FLOAT32).values({1.f});
    return file;
  };
  CHECK(complaintAbout(array().names({})) ==
        "its arrays have no names. Save them with mx.nd.save(path, {'name': array, …})");
  CHECK(complaintAbout(array().names({"a", "b"})) == "it has 1 arrays, but 2 names");
  File twins(2);
  for (uint i = 0; i < 2; i++) twins.array(V2, {1}, FLOAT32).values({1.f});
  CHECK(complaintAbout(twins.names({"arg:a", "aux:a"})) == "it has two arrays with the name `a`");
}

TEST_CASE("MXNet: says what to do about sparse arrays and whole numbers, and names unknown types") {
  CHECK(complaintAbout(File(3).add(V2, 4).add(1, 4)) ==
        "its array number 1 of 3 is sparse, and only dense arrays are known. Convert it with "
        "array.tostype('default') in MXNet, and save the arrays again");
  File whole(1);
  whole.array(V2, {2}, INT8).add(0, 2).names({"arg:x"});
  CHECK(complaintAbout(whole) ==
        "its array `x` has the type int8, but weights are real numbers. Convert it with "
        "array.astype('float32') in MXNet, and save the arrays again");
  CHECK(complaintAbout(File(1).array(V2, {2}, 13)) ==
        "its array number 1 of 1 has an unknown type, 13");
}

TEST_CASE("MXNet: arrays without values are refused, however they are written") {
  constexpr auto NONE = "its array number 1 of 1 has no values"_kj;
  constexpr uint32_t UNKNOWN = 0xffffffff;
  CHECK(complaintAbout(File(1).add(V2, 4).add(UNKNOWN, 4)) == NONE);
  CHECK(complaintAbout(File(1).add(0, 4)) == NONE);
  CHECK(complaintAbout(File(1).add(V1, 4).add(0, 4)) == NONE);
  CHECK(complaintAbout(File(1).array(V2, {}, FLOAT32)) == NONE);
  CHECK(complaintAbout(File(1).array(V2, {2, 0}, FLOAT32)) == NONE);
  CHECK(complaintAbout(File(1).array(V3, {-1}, FLOAT32)) == NONE);
  CHECK(complaintAbout(File(1).add(V3, 4).add(0, 4).add(UNKNOWN, 4)) == NONE);
}

}  // namespace
}  // namespace runner
