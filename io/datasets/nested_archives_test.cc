#include "io/datasets/nested_archives.h"

#include <doctest/doctest.h>
#include <kj/vector.h>
#include <stdlib.h>

#include "io/paths.h"
#include "io/testing/archive_files.h"
#include "io/testing/scratch.h"
#include "tests/text.h"

namespace io {

namespace {

// Returns `name=content` of each file.
kj::String contentsOf(Members& members) {
  kj::Vector<kj::String> all;
  for (;;) {
    KJ_IF_MAYBE(name, members.next()) {
      auto path = kj::str(*name);
      all.add(kj::str(path, "=", members.read(100).asChars()));
    } else {
      return kj::strArray(all, " ");
    }
  }
}

kj::String tarOf(const Scratch& scratch, kj::ArrayPtr<const kj::StringPtr> entries) {
  auto path = scratch.path("inner.tar");
  writeTar(path, entries);
  return kj::heapString(readFile(path, 1 << 20).asChars());
}

}  // namespace

TEST_CASE("openNested: reads an archive in a folder or archive as a folder of the same name") {
  Scratch scratch;
  auto cats = tarOf(scratch, {"1.jpg=a"_kj, ".hidden=b"_kj, "more/2.jpg=c"_kj, "3.jpg>1.jpg"_kj});
  auto dogs = tarOf(scratch, {"1.jpg=d"_kj});
  scratch.write("in/cat.tar", cats.asBytes());
  scratch.write("in/x/dog.tar", dogs.asBytes());
  scratch.write("in/readme=", "e"_kj.asBytes());
  auto outer = scratch.path("outer.tar");
  auto first = kj::str("cat.tar=", cats), second = kj::str("x/dog.tar=", dogs);
  writeTar(outer, {kj::StringPtr(first), kj::StringPtr(second), ".readme=e"_kj});

  auto folder = openNested(scratch.path("in"));
  CHECK(contentsOf(*folder) == "cat/1.jpg=a cat/more/2.jpg=c readme==e x/dog/1.jpg=d");
  CHECK(folder->hidden().names() == "cat/.hidden");
  CHECK(folder->notRegular().names() == "cat/3.jpg (a symbolic link)");

  auto archive = openNested(outer);
  CHECK(contentsOf(*archive) == "cat/1.jpg=a cat/more/2.jpg=c x/dog/1.jpg=d");
  CHECK(archive->hidden().names() == "cat/.hidden, .readme");
  CHECK(archive->hidden().count() == 2);
}

TEST_CASE("openNested: names empty folders outside and inside of archives") {
  Scratch scratch;
  scratch.write("cat/1.jpg", "a"_kj.asBytes());
  REQUIRE(::system(kj::str("cd ", scratch.path("cat"),
              " && mkdir -p kitten ../in/fox && tar -cf "
              "../in/cat.tar .")
                       .cStr()) == 0);
  auto members = openNested(scratch.path("in"));
  CHECK(contentsOf(*members) == "cat/1.jpg=a");
  CHECK(members->empty().count() == 2);
  CHECK(members->empty().names() == "cat/kitten, fox");
}

TEST_CASE("openNested: names an archive that cannot be read, and the archive that contains it") {
  Scratch scratch;
  auto cats = tarOf(scratch, {"1.jpg=a"_kj, "2.jpg=b"_kj});
  auto cut = kj::heapString(cats.slice(0, 1024 + 100));
  auto outer = scratch.path("outer.tar");
  auto entry = kj::str("cat.tar=", cut);
  writeTar(outer, {kj::StringPtr(entry)});
  auto members = openNested(outer);
  auto refusal = thrownBy([&]() { contentsOf(*members); });
  INFO(refusal);
  CHECK(tests::contains(refusal, kj::str("cat.tar of ", outer)));
  CHECK(!tests::contains(refusal, "/proc/"));
}

}  // namespace io
