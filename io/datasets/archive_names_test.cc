// Tests names beyond ASCII in archives.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <locale.h>
#include <stdlib.h>

#include "io/datasets/archives.h"
#include "io/testing/archive_files.h"
#include "io/testing/scratch.h"

namespace io {

TEST_CASE("Members: reads names beyond ASCII, whether or not the zip says that they are UTF-8") {
  Scratch scratch;
  const kj::StringPtr names[] = {"Äpfel/1.jpg", "b/日本.jpg", "c/3.jpg"};
  for (bool utf8: {false, true}) {
    auto zip = scratch.write("x.zip", zipOf(names, utf8));
    auto members = Members::open(zip);
    CHECK(contents(zip) == "Äpfel/1.jpg=Äpfel/1.jpg b/日本.jpg=b/日本.jpg c/3.jpg=c/3.jpg");
  }
  auto tar = scratch.path("x.tar");
  writeTar(tar, {"Äpfel/1.jpg=x"_kj});
  CHECK(contents(tar) == "Äpfel/1.jpg=x");
}

TEST_CASE("Members: a zip gives a letter and its accents as one character") {
  Scratch scratch;
  auto members = Members::open(scratch.write("x.zip", zipOf({"Ka\xcc\x88se.jpg"_kj}, true)));
  CHECK(KJ_ASSERT_NONNULL(members->next()) == "K\xc3\xa4se.jpg");
}

TEST_CASE("Members: refuses a zip or tar in which two names become one, and says what to do") {
  constexpr kj::StringPtr APART = "Ka\xcc\x88se"_kj;
  constexpr kj::StringPtr TOGETHER = "K\xc3\xa4se"_kj;
  auto refusal = [](kj::StringPtr path, kj::StringPtr what) {
    return kj::str(path, " has two ", what,
        ", whose names are written in different forms of Unicode (NFC and NFD): rename one of "
        "them and pack them again, or unpack the archive and name the folder");
  };
  auto folders = kj::str("folders that are called a/", TOGETHER);
  Scratch scratch;
  auto one = kj::str("a/", APART, "/1.jpg"), other = kj::str("a/", TOGETHER, "/2.jpg");
  for (auto name: {one.asPtr(), other.asPtr()}) scratch.write(kj::str("f/", name), name.asBytes());
  auto zip = scratch.write("x.zip", zipOf({one, other}, true));
  CHECK(thrownBy([&]() { contents(zip); }) == refusal(zip, folders));
  auto packed = [&](kj::StringPtr name, kj::StringPtr options) {
    auto path = scratch.path(name);
    auto command = kj::str("tar ", options, " -cf ", path, " -C ", scratch.path("f"), " a");
    REQUIRE(::system(command.cStr()) == 0);
    return path;
  };
  for (auto& tar: {packed("x.tar", "--format=posix"), packed("x.tar.gz", "-z --format=posix")}) {
    CHECK(thrownBy([&]() { contents(tar); }) == refusal(tar, folders));
  }
  auto files = scratch.write(
      "y.zip", zipOf({kj::str("b/", APART, ".jpg"), kj::str("b/", TOGETHER, ".jpg")}, true));
  CHECK(thrownBy([&]() { contents(files); }) ==
        refusal(files, kj::str("files that are called b/", TOGETHER, ".jpg")));

  // Names that are not UTF-8 according to the archive stay different.
  auto both = kj::str(one, "=", one, " ", other, "=", other);
  CHECK(contents(scratch.write("z.zip", zipOf({one, other}, false))) == both);
  CHECK(contents(packed("gnu.tar", "--sort=name --format=gnu")) == both);
  // A name may come twice, and a folder more than once.
  auto twice = scratch.write("t.zip", zipOf({one, one, kj::str("a/", APART, "/3.jpg")}, true));
  CHECK(thrownBy([&]() { contents(twice); }) == "");
}

TEST_CASE("Members: reads Unicode names of a tar like those of a zip, also of hard links") {
  Scratch scratch;
  scratch.write("f/Ka\xcc\x88se.jpg", kj::StringPtr("x").asBytes());
  auto command = kj::str("cd ", scratch.path("f"),
      " && ln Ka\xcc\x88se.jpg o\xcc\x88.jpg && tar --format=posix --sort=name -cf ../x.tar *");
  REQUIRE(::system(command.cStr()) == 0);
  CHECK(contents(scratch.path("x.tar")) == "K\xc3\xa4se.jpg=x \xc3\xb6.jpg=x");
}

TEST_CASE("Members: reads a name that is not valid UTF-8 as its bytes, or counts it") {
  Scratch scratch;
  // Bytes in Latin-1.
  const kj::StringPtr names[] = {"a.jpg", "\xc4pfel.jpg", "b.jpg"};
  auto honest = scratch.write("honest.zip", zipOf(names, false));
  CHECK(contents(honest) == "a.jpg=a.jpg \xc4pfel.jpg=\xc4pfel.jpg b.jpg=b.jpg");
  auto tar = scratch.path("x.tar");
  writeTar(tar, {"\xc4pfel.jpg=x"_kj});
  CHECK(contents(tar) == "\xc4pfel.jpg=x");

  auto wrong = scratch.write("wrong.zip", zipOf(names, true));
  auto members = Members::open(wrong);
  CHECK(KJ_ASSERT_NONNULL(members->next()) == "a.jpg");
  CHECK(KJ_ASSERT_NONNULL(members->next()) == "b.jpg");
  CHECK(members->next() == nullptr);
  CHECK(members->unreadable().count() == 1);
  CHECK(members->unreadable().names() ==
        "entry 2 (its name is not valid, or this machine has no UTF-8 locale)");
}

TEST_CASE("Members: reading an archive does not change the locale of the program") {
  Scratch scratch;
  const kj::StringPtr names[] = {"Äpfel.jpg"};
  auto before = ::uselocale(locale_t(0));
  CHECK(contents(scratch.write("x.zip", zipOf(names, true))).size() > 0);
  CHECK(::uselocale(locale_t(0)) == before);
  CHECK(kj::StringPtr(::setlocale(LC_ALL, nullptr)) == "C");
}

}  // namespace io
