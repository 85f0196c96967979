#include "io/datasets/archives.h"

#include <archive.h>
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstring>

#include "io/paths.h"
#include "io/testing/archive_files.h"
#include "io/testing/scratch.h"
#include "tests/text.h"

namespace io {

using kj::uint;

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

TEST_CASE("Members: a folder gives its files sorted by path, without hidden ones") {
  Scratch scratch;
  scratch.write("f/b.txt", kj::StringPtr("1").asBytes());
  scratch.write("f/a/c.txt", kj::StringPtr("2").asBytes());
  scratch.write("f/.hidden", kj::StringPtr("3").asBytes());
  CHECK(contents(scratch.path("f")) == "a/c.txt=2 b.txt=1");
}

TEST_CASE("Members: refuses a file that is too large, and a path that is not an archive") {
  Scratch scratch;
  auto tar = scratch.path("x.tar");
  const kj::StringPtr names[] = {"0123456789"};
  writeArchive(tar, archive_write_add_filter_gzip, archive_write_set_format_pax, names);
  auto members = Members::open(tar);
  CHECK(members->next() != nullptr);
  CHECK(thrownBy([&]() { members->read(9); }) == "has more than the allowed 9 bytes");
  auto text = scratch.write("x.txt", kj::StringPtr("no archive at all").asBytes());
  auto message = thrownBy([&]() { Members::open(text)->next(); });
  CHECK(message ==
        kj::str("cannot open ", text,
            ": Unrecognized archive format. Name a folder, or an archive that can be read"));
  CHECK(thrownBy([&]() { Members::open(scratch.path("none")); }) ==
        kj::str("there is no folder or archive at ", scratch.path("none")));
}

TEST_CASE("Members: says why an archive cannot be opened, also if it is incomplete or empty") {
  Scratch scratch;
  const kj::StringPtr names[] = {"0123456789"};
  auto tar = scratch.path("x.tar.gz");
  writeArchive(tar, archive_write_add_filter_gzip, archive_write_set_format_pax, names);
  auto cut = scratch.write("cut.tar.gz", readFile(tar, 1 << 20).slice(0, 20));
  auto message = thrownBy([&]() { contents(cut); });
  CHECK(message.startsWith(kj::str("cannot open ", cut, ": ")));
  CHECK(message.endsWith(". The file may be incomplete: get it again"));
  auto empty = scratch.write("empty.tar", nullptr);
  CHECK(thrownBy([&]() { contents(empty); }) ==
        kj::str("cannot read ", empty, ": it is empty. Get it again"));
  AsOrdinaryUser user;
  REQUIRE(::chmod(tar.cStr(), 0000) == 0);
  CHECK(thrownBy([&]() { contents(tar); }) == kj::str("cannot open ", tar, ": Permission denied"));
}

TEST_CASE("Members: reports an encrypted file") {
  Scratch scratch;
  auto zip = zipOf({"a.jpg"_kj}, false);
  // The lowest bit of the flags marks an encrypted file, in the header of the file and in the
  // directory.
  zip[6] |= 1;
  const kj::byte DIRECTORY[] = {0x50, 0x4b, 0x01, 0x02};
  auto entry = static_cast<kj::byte*>(memmem(zip.begin(), zip.size(), DIRECTORY, 4));
  REQUIRE(entry != nullptr);
  entry[8] |= 1;
  auto members = Members::open(scratch.write("x.zip", zip));
  CHECK(KJ_ASSERT_NONNULL(members->next()) == "a.jpg");
  CHECK(thrownBy([&]() { members->read(100); }) ==
        "is encrypted: unpack the archive with its password");
}

TEST_CASE("Members: refuses by name a file of absurd size, or one that ends early") {
  Scratch scratch;
  // A tar header (POSIX 1003.1, ustar) that says 8 GiB, with nothing after it.
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
  CHECK(thrownBy([&]() { members->read(1000); }) == "has more than the allowed 1000 bytes");

  members = Members::open(tar);
  CHECK(members->next() != nullptr);
  auto message = thrownBy([&]() { members->read(size_t(1) << 33); });
  CHECK(message.startsWith("cannot be read: "));
  CHECK(message.endsWith(". The file may be incomplete: get it again"));
}

TEST_CASE("Members: refuses a tar without its end mark, or with a header of zeros") {
  Scratch scratch;
  auto tar = scratch.path("x.tar");
  writeTar(tar, {"a=one"_kj, "b=two"_kj, "c=three"_kj});
  auto whole = readFile(tar, 1 << 20);
  CHECK(contents(tar) == "a=one b=two c=three");
  // Each entry has a header and one block.
  auto cut = scratch.write("cut.tar", whole.slice(0, 4 * 512));
  CHECK(thrownBy([&]() { contents(cut); }) == kj::str("cannot read ", cut,
                                                  ": the archive ends early: it has no end mark. "
                                                  "The file may be incomplete: get it again"));
  memset(whole.begin() + 2 * 512, 0, 512);
  auto zeros = scratch.write("zeros.tar", whole);
  CHECK(thrownBy([&]() { contents(zeros); })
            .startsWith(kj::str("cannot read ", zeros,
                ": its end mark is at byte 1024, but there is more data at byte 1536. ")));
}

TEST_CASE("Members: refuses data after the end mark of a tar, compressed or not") {
  Scratch scratch;
  writeTar(scratch.path("x.tar"), {"a=one"_kj});
  writeTar(scratch.path("y.tar"), {"b=two"_kj});
  auto made = [&](kj::StringPtr name, kj::StringPtr command) {
    auto line = kj::str("cd ", scratch.path(""), " && ", command);
    REQUIRE(::system(line.cStr()) == 0);
    return scratch.path(name);
  };
  auto refusal = [&](kj::StringPtr path) { return thrownBy([&]() { contents(path); }); };
  auto both = made("both.tar", "cat x.tar y.tar >both.tar");
  CHECK(
      refusal(both) == kj::str("cannot read ", both,
                           ": its end mark is at byte 1024, but there is more data at byte 2048. "
                           "If it consists of several archives, unpack it with `tar --ignore-zeros "
                           "-xf` and name the folder. Otherwise it is damaged: get it again"));
  auto packed = made("both.tgz", "gzip <x.tar >both.tgz && gzip <y.tar >>both.tgz");
  CHECK(tests::contains(refusal(packed),
      "at byte 1024 of the unpacked archive, but there is more data at byte 2048. "));
  auto rubbish = made("rubbish.tar", "(cat x.tar; echo rubbish) >rubbish.tar");
  CHECK(tests::contains(refusal(rubbish), "there is more data at byte 2048. "));
  // Archives that tar joins have one end mark, and any number of zeros after it.
  CHECK(contents(made("added.tar", "cp x.tar added.tar && tar -A -f added.tar y.tar")) ==
        "a=one b=two");
  CHECK(
      contents(made("padded.tar", "cp x.tar padded.tar && truncate -s 1M padded.tar")) == "a=one");
}

TEST_CASE("Members: refuses a compressed tar without its end mark") {
  Scratch scratch;
  auto tar = scratch.path("x.tar");
  writeTar(tar, {"a=one"_kj, "b=two"_kj, "c=three"_kj});
  scratch.write("cut.tar", readFile(tar, 1 << 20).slice(0, 4 * 512));
  for (auto program: {"gzip", "bzip2"}) {
    for (auto name: {"x.tar", "cut.tar"}) {
      auto packed = scratch.path(kj::str(name, ".", program));
      auto command = kj::str(program, " <", scratch.path(name), " >", packed);
      REQUIRE(::system(command.cStr()) == 0);
      bool isRefused = thrownBy([&]() { contents(packed); }) != "";
      CHECK(isRefused == (name == "cut.tar"_kj));
    }
  }
}

TEST_CASE("Members: refuses a gzip file whose checksum is wrong") {
  Scratch scratch;
  auto packed = scratch.path("x.tar.gz");
  const kj::StringPtr names[] = {"some text"};
  writeArchive(packed, archive_write_add_filter_gzip, archive_write_set_format_ustar, names);
  CHECK(contents(packed) == "some text=some text");
  auto bytes = readFile(packed, 1 << 20);
  // The last eight bytes are the checksum and the size.
  bytes[bytes.size() - 8] ^= 1;
  scratch.write("x.tar.gz", bytes);
  auto message = thrownBy([&]() { contents(packed); });
  CHECK(message == kj::str("cannot read ", packed,
                       ": incorrect data check. The file may be incomplete: get it again"));
}

TEST_CASE("Members: hard links of a tar come last, with the content of their files") {
  Scratch scratch;
  auto tar = scratch.path("x.tar");
  writeTar(tar, {"./b.jpg=two"_kj, "c.jpg+./b.jpg"_kj, "a.jpg=one"_kj, "d.jpg+a.jpg"_kj,
                    "e.jpg+c.jpg"_kj, "f.jpg=six"_kj});
  CHECK(contents(tar) == "b.jpg=two a.jpg=one f.jpg=six c.jpg=two e.jpg=two d.jpg=one");
}

TEST_CASE("Members: a file takes precedence over an earlier hard link of the same name") {
  Scratch scratch;
  auto tar = scratch.path("x.tar");
  writeTar(tar, {"a=one"_kj, "b+a"_kj, "c+none"_kj, "b=two"_kj, "c=three"_kj, "d=four"_kj});
  CHECK(contents(tar) == "a=one d=four b=two b=two c=three c=three");
  writeTar(tar, {"a=one"_kj, "b+a"_kj, "b=two"_kj, "b+a"_kj});
  CHECK(contents(tar) == "a=one b=one b=one b=one");
}

TEST_CASE("Members: a hard link has the content of the last file of that name before it") {
  Scratch scratch;
  auto tar = scratch.path("x.tar");
  // As if all files were appended a second time.
  writeTar(tar, {"a=one"_kj, "b+a"_kj, "a=two"_kj, "b+a"_kj});
  CHECK(contents(tar) == "a=one a=two b=two b=two");
  writeTar(tar, {"a=one"_kj, "b+a"_kj, "a=two"_kj});
  CHECK(contents(tar) == "a=one a=two b=one");
  writeTar(tar, {"a=one"_kj, "b+a"_kj, "c+b"_kj, "b=two"_kj, "d+b"_kj});
  CHECK(contents(tar) == "a=one c=one b=two b=two d=two");
}

TEST_CASE("Members: a long chain of hard links ends at its file") {
  Scratch scratch;
  auto tar = scratch.path("a.tar");
  // If each link were followed to its end by itself, this would take minutes.
  constexpr uint LINKS = 100000;
  kj::Vector<kj::String> entries;
  entries.add(kj::str("0.jpg=one"));
  for (uint i = 1; i <= LINKS; ++i) entries.add(kj::str(i, ".jpg+", i - 1, ".jpg"));
  writeTar(
      tar, KJ_MAP(entry, entries) { return kj::StringPtr(entry); });
  auto members = Members::open(tar);
  uint count = 0;
  while (members->next() != nullptr) {
    ++count;
    CHECK(kj::heapString(members->read(10).asChars()) == "one");
  }
  CHECK(count == LINKS + 1);
}

TEST_CASE("Members: names a hard link to a file that the archive lacks, and cannot read it") {
  Scratch scratch;
  auto tar = scratch.path("x.tar");
  writeTar(tar, {"a.jpg+none.jpg"_kj, "b.jpg=two"_kj, "c.jpg+d.jpg"_kj, "d.jpg+c.jpg"_kj});
  auto members = Members::open(tar);
  CHECK(KJ_ASSERT_NONNULL(members->next()) == "b.jpg");
  CHECK(KJ_ASSERT_NONNULL(members->next()) == "a.jpg");
  CHECK(thrownBy([&]() { members->read(100); }) ==
        kj::str("is a hard link to none.jpg, which is not a file before it in ", tar));
  // Two links that point to each other.
  CHECK(KJ_ASSERT_NONNULL(members->next()) == "c.jpg");
  CHECK(KJ_ASSERT_NONNULL(members->next()) == "d.jpg");
  CHECK(members->next() == nullptr);
}

TEST_CASE("Members: counts and names entries that are neither files nor folders") {
  Scratch scratch;
  auto tar = scratch.path("x.tar");
  writeTar(tar, {"a.jpg=one"_kj, "link.jpg>a.jpg"_kj, "pipe|"_kj});
  auto members = Members::open(tar);
  CHECK(KJ_ASSERT_NONNULL(members->next()) == "a.jpg");
  CHECK(members->next() == nullptr);
  CHECK(members->notRegular().count() == 2);
  CHECK(members->notRegular().names() == "link.jpg (a symbolic link), pipe (a pipe)");
}

TEST_CASE("Members: reads the next file after one that is too large") {
  Scratch scratch;
  auto tar = scratch.path("x.tar");
  writeTar(tar, {"a=0123456789"_kj, "b=next"_kj, "c+a"_kj, "d+a"_kj, "e+b"_kj});
  auto members = Members::open(tar);
  kj::Vector<kj::String> all;
  for (;;) {
    KJ_IF_MAYBE(name, members->next()) {
      auto copy = kj::str(*name);
      kj::String content;
      auto problem = thrownBy([&]() { content = kj::heapString(members->read(9).asChars()); });
      all.add(kj::str(copy, "=", content, problem == "" ? "" : "?"));
    } else {
      break;
    }
  }
  CHECK(kj::strArray(all, " ") == "a=? b=next c=? d=? e=next");
}

TEST_CASE("readUnpacked: unpacks a compressed file, and leaves another file as it is") {
  Scratch scratch;
  auto packed = scratch.path("x.gz");
  const kj::StringPtr names[] = {"some text"};
  writeArchive(packed, archive_write_add_filter_gzip, archive_write_set_format_raw, names);
  CHECK(kj::heapString(readUnpacked(packed, 100).asChars()) == "some text");
  CHECK(thrownBy([&]() { readUnpacked(packed, 8); }) ==
        kj::str(packed, " has more than the allowed 8 bytes"));
  // The file ends with its checksum and its length, of four bytes each.
  auto damaged = kj::heapArray<kj::byte>(readFile(packed, 1000));
  damaged[damaged.size() - 8] ^= 1;
  auto path = scratch.write("y.gz", damaged);
  CHECK(thrownBy([&]() { readUnpacked(path, 100); }).startsWith(kj::str("cannot read ", path)));
  // Any other damage gives the advice that the caller chooses. No name of a compressed file makes
  // it advice about folders and archives.
  auto xz = scratch.path("x.log.xz");
  writeArchive(xz, archive_write_add_filter_xz, archive_write_set_format_raw, names);
  auto cut = scratch.write("cut.log.xz", readFile(xz, 1000).slice(0, 30));
  auto usual = thrownBy([&]() { readUnpacked(cut, 100); });
  CHECK(tests::contains(usual, cut));
  CHECK(usual.endsWith(". The file may be incomplete: get it again"));
  auto chosen = thrownBy([&]() { readUnpacked(cut, 100, "Keep it again"); });
  CHECK(tests::contains(chosen, cut));
  CHECK(chosen.endsWith(". Keep it again"));
  auto pipe = scratch.path("pipe");
  REQUIRE(::mkfifo(pipe.cStr(), 0600) == 0);
  CHECK(thrownBy([&]() { readUnpacked(pipe, 100); }) ==
        kj::str("cannot open ", pipe, ": it is not a regular file"));
  auto plain = scratch.write("plain", kj::StringPtr("other").asBytes());
  CHECK(kj::heapString(readUnpacked(plain, 100).asChars()) == "other");
  CHECK(readUnpacked(scratch.write("empty", nullptr), 100).size() == 0);
}

}  // namespace io
