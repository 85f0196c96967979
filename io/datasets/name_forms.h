// io/datasets/name_forms.h: finds names in archives that Unicode can encode in more than one way.
#pragma once

#include <kj/array.h>
#include <kj/map.h>
#include <kj/string.h>

namespace io {

// Returns `name` with each letter and its accents as one character, if there is such a character
// (Unicode's form NFC). libarchive returns most names of zip and tar files in this form. macOS
// writes letters and accents as separate characters. Returns `name` unchanged if it is not UTF-8,
// or if this machine has no UTF-8 locale.
kj::String composed(kj::StringPtr name);

// Finds files and folders of one archive to which composed() gives the same name.
class NameForms {
public:
  // `archive` is the archive's name in messages.
  explicit NameForms(kj::StringPtr archive): archive(kj::str(archive)) {}

  // Call it for each file, with its composed path and with the bytes in the archive. Throws, and
  // says what to do, if the file or a folder of the path was added in another form.
  void add(kj::StringPtr path, kj::StringPtr written);

private:
  kj::String archive;
  kj::HashMap<kj::String, kj::String> writtenOf;  // of each path beyond ASCII
};

// A name in a zip.
struct ZipName {
  kj::String written;
  bool isUtf8;  // the zip says so; libarchive then returns the composed() name
};

// Returns all names of the zip at `path` (PKWARE's APPNOTE 6.3). Empty if the file is not a zip, or
// if its directory cannot be read.
kj::Array<ZipName> namesOfZip(kj::StringPtr path);

}  // namespace io
