#include "io/datasets/name_forms.h"

#include <doctest/doctest.h>

#include <cstring>

#include "io/testing/scratch.h"

namespace io {

namespace {

constexpr kj::StringPtr APART = "Ka\xcc\x88se.jpg"_kj;
constexpr kj::StringPtr TOGETHER = "K\xc3\xa4se.jpg"_kj;

}  // namespace

TEST_CASE("composed: makes a letter and its accents one character, as in the names of a zip") {
  CHECK(composed(APART) == TOGETHER);
  CHECK(composed(TOGETHER) == TOGETHER);
  CHECK(composed("Kase.jpg") == "Kase.jpg");
  CHECK(composed("\xc4pfel.jpg") == "\xc4pfel.jpg");
}

TEST_CASE("namesOfZip: a file that is not a zip, or whose directory is wrong, has no names") {
  Scratch scratch;
  CHECK(namesOfZip(scratch.path("none")).size() == 0);
  CHECK(namesOfZip(scratch.write("empty", nullptr)).size() == 0);
  // The record that ends a zip. It says that its directory has 99 bytes, or 22.
  kj::byte end[22] = {'P', 'K', 5, 6};
  end[12] = 99;
  CHECK(namesOfZip(scratch.write("x.zip", end)).size() == 0);
  kj::byte both[22 + 46 + 22] = {};
  memcpy(both + 22, "PK\1\2", 4);
  // A name that is longer than the directory.
  both[22 + 28] = 200;
  memcpy(both + 22 + 46, end, sizeof(end));
  both[22 + 46 + 12] = 46;
  CHECK(namesOfZip(scratch.write("y.zip", both)).size() == 0);
}

}  // namespace io
