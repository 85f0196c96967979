// runner/files.h: files that are whole or not there, appended to line by line, or read at once.
#pragma once

#include <kj/array.h>
#include <kj/io.h>
#include <kj/string.h>

namespace runner {

// Writes `pieces` one after another to `path` by way of a temporary file beside it, fsync and
// rename, so that a crash at any point leaves the old file or the new one. Throws with path, cause
// and way out (a full disk).
void writeWhole(kj::StringPtr path, kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces);
void writeWhole(kj::StringPtr path, kj::StringPtr text);

// Writes all of `text` to an open descriptor, for the eyes of a user; ends quietly if it cannot be
// written.
void writeQuietly(int fd, kj::StringPtr text);

// The whole text of a file, or of an open descriptor (a pipe, standard input) that messages call
// `name`. Throws if it cannot be read, is a folder, or is longer than `bytesMax`.
kj::String readWhole(kj::StringPtr path, uint64_t bytesMax);
kj::String readWhole(int fd, kj::StringPtr name, uint64_t bytesMax);

// A file that grows by whole lines or records; each is handed to the kernel at once, so that a kill
// tears none.
class LineFile {
public:
  // Creates or appends to `path`.
  explicit LineFile(kj::StringPtr path);
  // Takes over an open descriptor; `name` is what messages call it.
  LineFile(kj::AutoCloseFd fd, kj::StringPtr name);

  // Appends `line` and a newline. Throws with name, cause and way out (a full disk, a closed pipe).
  void append(kj::StringPtr line);
  // Appends `record` as it is. Throws likewise.
  void appendWhole(kj::ArrayPtr<const kj::byte> record);

private:
  kj::String name;
  kj::AutoCloseFd fd;
};

}  // namespace runner
