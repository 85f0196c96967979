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

// The same, piece by piece. What is not finished is removed.
class WholeFile {
public:
  // Throws as append() does. `wayOut` is where else to write, for a disk that is full.
  explicit WholeFile(
      kj::StringPtr path, kj::StringPtr wayOut = "choose another folder with --runs");
  ~WholeFile() noexcept;
  KJ_DISALLOW_COPY(WholeFile);

  // Throws with path, cause and way out.
  void append(kj::ArrayPtr<const kj::byte> bytes);
  // Puts it at its path, in place of a file that is there.
  void finish();

private:
  const kj::String path;
  const kj::String temporary;
  const kj::StringPtr wayOut;
  kj::AutoCloseFd fd;
  bool finished = false;
};

// Why no WholeFile can be written to `path` now, or null if it can: only a regular file, and no
// link, may be replaced. Leaves what is there as it is.
kj::Maybe<kj::String> whyUnwritable(kj::StringPtr path);

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
