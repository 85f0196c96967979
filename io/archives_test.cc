#include "io/archives.h"

#include <archive.h>
#include <archive_entry.h>
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/vector.h>

#include <cstdio>
#include <cstring>

#include "io/scratch.h"

namespace io {

namespace {

using kj::uint;

// Writes an archive of the files `names`, each holding its own name.
void writeArchive(kj::StringPtr path, int (*filter)(struct archive*),
    int (*format)(struct archive*), kj::ArrayPtr<const kj::StringPtr> names) {
  auto out = archive_write_new();
  KJ_DEFER(archive_write_free(out));
  KJ_ASSERT(filter(out) == ARCHIVE_OK && format(out) == ARCHIVE_OK);
  KJ_ASSERT(archive_write_open_filename(out, path.cStr()) == ARCHIVE_OK);
  for (auto name: names) {
    auto entry = archive_entry_new();
    KJ_DEFER(archive_entry_free(entry));
    archive_entry_set_pathname(entry, name.cStr());
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, name.size());
    KJ_ASSERT(archive_write_header(out, entry) == ARCHIVE_OK);
    KJ_ASSERT(archive_write_data(out, name.begin(), name.size()) == ssize_t(name.size()));
  }
  KJ_ASSERT(archive_write_close(out) == ARCHIVE_OK);
}

// `name=content` of each member, in order.
kj::String contents(kj::StringPtr path) {
  auto members = Members::open(path);
  kj::Vector<kj::String> all;
  for (;;) {
    KJ_IF_MAYBE(name, members->next()) {
      auto copy = kj::str(*name);
      all.add(kj::str(copy, "=", kj::heapString(members->read(100).asChars())));
    } else {
      return kj::strArray(all, " ");
    }
  }
}

}  // namespace

TEST_CASE("Members: archives of every kind give their files in order, without a leading ./") {
  Scratch scratch;
  const kj::StringPtr names[] = {"./b/x.txt", "a's.txt"};
  auto tar = scratch.path("x.tar");
  writeArchive(tar, archive_write_add_filter_none, archive_write_set_format_pax, names);
  auto xz = scratch.path("x.tar.xz");
  writeArchive(xz, archive_write_add_filter_xz, archive_write_set_format_ustar, names);
  auto zip = scratch.path("x.zip");
  writeArchive(zip, archive_write_add_filter_none, archive_write_set_format_zip, names);
  for (auto& path: {&tar, &xz, &zip}) CHECK(contents(*path) == "b/x.txt=./b/x.txt a's.txt=a's.txt");
}

TEST_CASE("Members: a folder gives its files sorted by path, hidden ones left out") {
  Scratch scratch;
  scratch.write("f/b.txt", kj::StringPtr("1").asBytes());
  scratch.write("f/a/c.txt", kj::StringPtr("2").asBytes());
  scratch.write("f/.hidden", kj::StringPtr("3").asBytes());
  CHECK(contents(scratch.path("f")) == "a/c.txt=2 b.txt=1");
}

TEST_CASE("Members: a file larger than allowed, and what is no archive, are refused") {
  Scratch scratch;
  auto tar = scratch.path("x.tar");
  const kj::StringPtr names[] = {"0123456789"};
  writeArchive(tar, archive_write_add_filter_gzip, archive_write_set_format_pax, names);
  auto members = Members::open(tar);
  CHECK(members->next() != nullptr);
  CHECK(thrownBy([&]() { members->read(9); }) ==
        kj::str("0123456789 of ", tar, " is refused: it has more than the 9 bytes that are read"));
  auto text = scratch.write("x.txt", kj::StringPtr("no archive at all").asBytes());
  auto message = thrownBy([&]() { Members::open(text)->next(); });
  CHECK(message ==
        kj::str("cannot open ", text,
            ": Unrecognized archive format; name a folder, or an archive that can be read"));
  CHECK(thrownBy([&]() { Members::open(scratch.path("none")); }) ==
        kj::str("there is no folder or archive at ", scratch.path("none")));
}

TEST_CASE("Members: a file of absurd size, or one that ends early, is refused by name") {
  Scratch scratch;
  // A header of tar (POSIX 1003.1, ustar) that says 8 GiB, and nothing behind it.
  char header[512] = "x.jpg";
  auto field = [&](size_t at, kj::StringPtr text) {
    memcpy(header + at, text.begin(), text.size());
  };
  field(100, "0000644");
  field(124, "77777777777 ");
  field(136, "00000000000");
  field(148, "        ");
  field(156, "0");
  field(257, "ustar");
  field(263, "00");
  uint sum = 0;
  for (unsigned char c: header) sum += c;
  snprintf(header + 148, 8, "%06o", sum);
  auto tar = scratch.write("x.tar", kj::arrayPtr(header, sizeof(header)).asBytes());
  auto members = Members::open(tar);
  CHECK(KJ_ASSERT_NONNULL(members->next()) == "x.jpg");
  CHECK(thrownBy([&]() { members->read(1000); }) ==
        kj::str("x.jpg of ", tar, " is refused: it has more than the 1000 bytes that are read"));

  members = Members::open(tar);
  CHECK(members->next() != nullptr);
  auto message = thrownBy([&]() { members->read(size_t(1) << 33); });
  CHECK(message.startsWith(kj::str("cannot read ", tar, ": ")));
  CHECK(message.endsWith("; is the file whole? get it again"));
}

TEST_CASE("readUnpacked: unpacks a compressed file and leaves another as it is") {
  Scratch scratch;
  auto packed = scratch.path("x.gz");
  const kj::StringPtr names[] = {"some text"};
  writeArchive(packed, archive_write_add_filter_gzip, archive_write_set_format_raw, names);
  CHECK(kj::heapString(readUnpacked(packed, 100).asChars()) == "some text");
  CHECK(thrownBy([&]() { readUnpacked(packed, 8); }) ==
        kj::str(packed, " is refused: it has more than the 8 bytes that are read"));
  auto plain = scratch.write("plain", kj::StringPtr("other").asBytes());
  CHECK(kj::heapString(readUnpacked(plain, 100).asChars()) == "other");
  CHECK(readUnpacked(scratch.write("empty", nullptr), 100).size() == 0);
}

}  // namespace io
