#include "io/testing/archive_files.h"

#include <archive_entry.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <zlib.h>

#include <cstring>

#include "io/datasets/archives.h"

namespace io {

using kj::uint;

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

}  // namespace io
