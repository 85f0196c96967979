#include "io/datasets/archives.h"

#include <archive.h>
#include <archive_entry.h>
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <locale.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cstdio>
#include <cstring>

#include "io/paths.h"
#include "io/testing/scratch.h"
#include "tests/text.h"

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

// Writes a tar of `entries`: each a name, then what it is: `=content`, `>target` of a symbolic
// link,
// `+target` of a hard link, `|` of a pipe.
void writeTar(kj::StringPtr path, kj::ArrayPtr<const kj::StringPtr> entries) {
  auto out = archive_write_new();
  KJ_DEFER(archive_write_free(out));
  KJ_ASSERT(archive_write_set_format_ustar(out) == ARCHIVE_OK);
  KJ_ASSERT(archive_write_open_filename(out, path.cStr()) == ARCHIVE_OK);
  for (auto text: entries) {
    auto mark = strcspn(text.cStr(), "=>+|");
    auto rest = text.slice(mark + 1);
    auto entry = archive_entry_new();
    KJ_DEFER(archive_entry_free(entry));
    archive_entry_set_pathname(entry, kj::heapString(text.slice(0, mark)).cStr());
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_filetype(entry, text[mark] == '>'   ? AE_IFLNK
                                      : text[mark] == '|' ? AE_IFIFO
                                                          : AE_IFREG);
    if (text[mark] == '=') archive_entry_set_size(entry, rest.size());
    if (text[mark] == '>') archive_entry_set_symlink(entry, rest.cStr());
    if (text[mark] == '+') archive_entry_set_hardlink(entry, rest.cStr());
    KJ_ASSERT(archive_write_header(out, entry) == ARCHIVE_OK);
    if (text[mark] == '=') {
      KJ_ASSERT(archive_write_data(out, rest.begin(), rest.size()) == ssize_t(rest.size()));
    }
  }
  KJ_ASSERT(archive_write_close(out) == ARCHIVE_OK);
}

// A zip of files, each holding its own name, uncompressed (PKWARE's APPNOTE 6.3). `utf8` sets the
// flag that says that names are UTF-8: libarchive's writer would not set it over other bytes.
kj::Array<kj::byte> zipOf(kj::ArrayPtr<const kj::StringPtr> names, bool utf8) {
  kj::Vector<kj::byte> zip, directory;
  auto put = [](kj::Vector<kj::byte>& to, uint64_t number, uint bytes) {
    for (uint i = 0; i < bytes; ++i) {
      to.add(kj::byte(number));
      number >>= 8;
    }
  };
  uint flags = utf8 ? 0x800 : 0;
  for (auto name: names) {
    auto bytes = name.asBytes();
    uint32_t crc = crc32_z(0, bytes.begin(), bytes.size());
    // Version needed, flags, method, time and date, checksum, sizes, length of the name.
    auto putHeader = [&](kj::Vector<kj::byte>& to) {
      put(to, 20, 2);
      put(to, flags, 2);
      put(to, 0, 2 + 4);
      put(to, crc, 4);
      put(to, bytes.size(), 4);
      put(to, bytes.size(), 4);
      put(to, bytes.size(), 2);
    };
    auto begin = zip.size();
    put(zip, 0x04034b50, 4);
    putHeader(zip);
    put(zip, 0, 2);
    zip.addAll(bytes);
    zip.addAll(bytes);
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);
    putHeader(directory);
    put(directory, 0, 2 + 2 + 2 + 2 + 4);
    put(directory, begin, 4);
    directory.addAll(bytes);
  }
  auto directoryAt = zip.size();
  zip.addAll(directory);
  put(zip, 0x06054b50, 4);
  put(zip, 0, 2 + 2);
  put(zip, names.size(), 2);
  put(zip, names.size(), 2);
  put(zip, directory.size(), 4);
  put(zip, directoryAt, 4);
  put(zip, 0, 2);
  return zip.releaseAsArray();
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
  CHECK(thrownBy([&]() { members->read(9); }) == "has more than the 9 bytes that are read");
  auto text = scratch.write("x.txt", kj::StringPtr("no archive at all").asBytes());
  auto message = thrownBy([&]() { Members::open(text)->next(); });
  CHECK(message ==
        kj::str("cannot open ", text,
            ": Unrecognized archive format; name a folder, or an archive that can be read"));
  CHECK(thrownBy([&]() { Members::open(scratch.path("none")); }) ==
        kj::str("there is no folder or archive at ", scratch.path("none")));
}

TEST_CASE("Members: an archive that cannot be opened says why, and one cut at its start asks") {
  Scratch scratch;
  const kj::StringPtr names[] = {"0123456789"};
  auto tar = scratch.path("x.tar.gz");
  writeArchive(tar, archive_write_add_filter_gzip, archive_write_set_format_pax, names);
  auto cut = scratch.write("cut.tar.gz", readFile(tar, 1 << 20).slice(0, 20));
  auto message = thrownBy([&]() { contents(cut); });
  CHECK(message.startsWith(kj::str("cannot open ", cut, ": ")));
  CHECK(message.endsWith("; is the file whole? get it again"));
  auto empty = scratch.write("empty.tar", nullptr);
  CHECK(thrownBy([&]() { contents(empty); }) ==
        kj::str("cannot read ", empty, ": it is empty; get it again"));
  AsOrdinaryUser user;
  REQUIRE(::chmod(tar.cStr(), 0000) == 0);
  CHECK(thrownBy([&]() { contents(tar); }) == kj::str("cannot open ", tar, ": Permission denied"));
}

TEST_CASE("Members: a file that is encrypted says so") {
  Scratch scratch;
  auto zip = zipOf({"a.jpg"_kj}, false);
  // The lowest bit of the flags, in the header of the file and in the directory.
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
  CHECK(thrownBy([&]() { members->read(1000); }) == "has more than the 1000 bytes that are read");

  members = Members::open(tar);
  CHECK(members->next() != nullptr);
  auto message = thrownBy([&]() { members->read(size_t(1) << 33); });
  CHECK(message.startsWith("cannot be read: "));
  CHECK(message.endsWith("; is the file whole? get it again"));
}

TEST_CASE("Members: a tar without its end mark, or with a header of zeros, is refused") {
  Scratch scratch;
  auto tar = scratch.path("x.tar");
  writeTar(tar, {"a=one"_kj, "b=two"_kj, "c=three"_kj});
  auto whole = readFile(tar, 1 << 20);
  CHECK(contents(tar) == "a=one b=two c=three");
  // Each entry has a header and one block.
  auto cut = scratch.write("cut.tar", whole.slice(0, 4 * 512));
  CHECK(thrownBy([&]() { contents(cut); }) ==
        kj::str("cannot read ", cut,
            ": the archive ends early: it has no end mark; is the file whole? get it again"));
  memset(whole.begin() + 2 * 512, 0, 512);
  auto zeros = scratch.write("zeros.tar", whole);
  CHECK(thrownBy([&]() { contents(zeros); })
            .startsWith(kj::str("cannot read ", zeros,
                ": its end mark is at byte 1024, but data follow at byte 1536; ")));
}

TEST_CASE("Members: data behind the end mark of a tar are refused, packed or not") {
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
  CHECK(refusal(both) ==
        kj::str("cannot read ", both,
            ": its end mark is at byte 1024, but data follow at byte 2048; if archives were put "
            "one behind the other, unpack it with `tar --ignore-zeros -xf` and name the folder; "
            "otherwise it is damaged: get it again"));
  auto packed = made("both.tgz", "gzip <x.tar >both.tgz && gzip <y.tar >>both.tgz");
  CHECK(tests::contains(
      refusal(packed), "at byte 1024 of the unpacked archive, but data follow at byte 2048; "));
  auto rubbish = made("rubbish.tar", "(cat x.tar; echo rubbish) >rubbish.tar");
  CHECK(tests::contains(refusal(rubbish), "data follow at byte 2048; "));
  // What tar itself puts together has one end mark, with as many zeros behind it as it likes.
  CHECK(contents(made("added.tar", "cp x.tar added.tar && tar -A -f added.tar y.tar")) ==
        "a=one b=two");
  CHECK(
      contents(made("padded.tar", "cp x.tar padded.tar && truncate -s 1M padded.tar")) == "a=one");
}

TEST_CASE("Members: a compressed tar without its end mark is refused") {
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

TEST_CASE("Members: a gzip file whose checksum is wrong is refused") {
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
  CHECK(message ==
        kj::str("cannot read ", packed, ": incorrect data check; is the file whole? get it again"));
}

TEST_CASE("Members: names beyond ASCII are read, whether or not the zip says that they are UTF-8") {
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

TEST_CASE("Members: a zip or tar of which two names become one is refused, and says what to do") {
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

  // Names that are no UTF-8, as far as the archive says, stay apart.
  auto both = kj::str(one, "=", one, " ", other, "=", other);
  CHECK(contents(scratch.write("z.zip", zipOf({one, other}, false))) == both);
  CHECK(contents(packed("gnu.tar", "--sort=name --format=gnu")) == both);
  // A name may come twice, and a folder more than once.
  auto twice = scratch.write("t.zip", zipOf({one, one, kj::str("a/", APART, "/3.jpg")}, true));
  CHECK(thrownBy([&]() { contents(twice); }) == "");
}

TEST_CASE("Members: a tar of Unicode names gives them as a zip does, those of hard links too") {
  Scratch scratch;
  scratch.write("f/Ka\xcc\x88se.jpg", kj::StringPtr("x").asBytes());
  auto command = kj::str("cd ", scratch.path("f"),
      " && ln Ka\xcc\x88se.jpg o\xcc\x88.jpg && tar --format=posix --sort=name -cf ../x.tar *");
  REQUIRE(::system(command.cStr()) == 0);
  CHECK(contents(scratch.path("x.tar")) == "K\xc3\xa4se.jpg=x \xc3\xb6.jpg=x");
}

TEST_CASE("Members: a name that is not valid UTF-8 is read as its bytes, or counted") {
  Scratch scratch;
  // Latin-1.
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

TEST_CASE("Members: reading an archive leaves the locale of the program as it was") {
  Scratch scratch;
  const kj::StringPtr names[] = {"Äpfel.jpg"};
  auto before = ::uselocale(locale_t(0));
  CHECK(contents(scratch.write("x.zip", zipOf(names, true))).size() > 0);
  CHECK(::uselocale(locale_t(0)) == before);
  CHECK(kj::StringPtr(::setlocale(LC_ALL, nullptr)) == "C");
}

TEST_CASE("Members: hard links in a tar come last, with the content of the files they name") {
  Scratch scratch;
  auto tar = scratch.path("x.tar");
  writeTar(tar, {"./b.jpg=two"_kj, "c.jpg+./b.jpg"_kj, "a.jpg=one"_kj, "d.jpg+a.jpg"_kj,
                    "e.jpg+c.jpg"_kj, "f.jpg=six"_kj});
  CHECK(contents(tar) == "b.jpg=two a.jpg=one f.jpg=six c.jpg=two e.jpg=two d.jpg=one");
}

TEST_CASE("Members: a hard link to a file that the archive lacks is named, and cannot be read") {
  Scratch scratch;
  auto tar = scratch.path("x.tar");
  writeTar(tar, {"a.jpg+none.jpg"_kj, "b.jpg=two"_kj, "c.jpg+d.jpg"_kj, "d.jpg+c.jpg"_kj});
  auto members = Members::open(tar);
  CHECK(KJ_ASSERT_NONNULL(members->next()) == "b.jpg");
  CHECK(KJ_ASSERT_NONNULL(members->next()) == "a.jpg");
  CHECK(thrownBy([&]() { members->read(100); }) ==
        kj::str("is a hard link to none.jpg, which is not a file of ", tar));
  // Two that name each other.
  CHECK(KJ_ASSERT_NONNULL(members->next()) == "c.jpg");
  CHECK(KJ_ASSERT_NONNULL(members->next()) == "d.jpg");
  CHECK(members->next() == nullptr);
}

TEST_CASE("Members: entries that are neither files nor folders are counted and named") {
  Scratch scratch;
  auto tar = scratch.path("x.tar");
  writeTar(tar, {"a.jpg=one"_kj, "link.jpg>a.jpg"_kj, "pipe|"_kj});
  auto members = Members::open(tar);
  CHECK(KJ_ASSERT_NONNULL(members->next()) == "a.jpg");
  CHECK(members->next() == nullptr);
  CHECK(members->notRegular().count() == 2);
  CHECK(members->notRegular().names() == "link.jpg (a symbolic link), pipe (a pipe)");
}

TEST_CASE("Members: after a file that is too large, the next one is read") {
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

TEST_CASE("readUnpacked: unpacks a compressed file and leaves another as it is") {
  Scratch scratch;
  auto packed = scratch.path("x.gz");
  const kj::StringPtr names[] = {"some text"};
  writeArchive(packed, archive_write_add_filter_gzip, archive_write_set_format_raw, names);
  CHECK(kj::heapString(readUnpacked(packed, 100).asChars()) == "some text");
  CHECK(thrownBy([&]() { readUnpacked(packed, 8); }) ==
        kj::str(packed, " has more than the 8 bytes that are read"));
  auto plain = scratch.write("plain", kj::StringPtr("other").asBytes());
  CHECK(kj::heapString(readUnpacked(plain, 100).asChars()) == "other");
  CHECK(readUnpacked(scratch.write("empty", nullptr), 100).size() == 0);
}

}  // namespace io
