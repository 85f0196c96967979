// runner/system/files.h: files that are whole or not there, appended to line by line, or read at
// once.
#pragma once

#include <kj/array.h>
#include <kj/io.h>
#include <kj/string.h>

namespace runner {

// Where else to write a run, for a disk that is full or a folder that cannot be written: "choose
// another folder with --runs". Any thread may call it.
kj::StringPtr otherRuns();
// In place of `--runs` messages name `--folder`, which a role that is started by hand takes. Call
// it before other threads start.
void nameFolderOption();

// Writes `pieces` one after another to `path`, as a WholeFile. Throws with path, cause and way out
// (a full disk).
void writeWhole(kj::StringPtr path, kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces,
    kj::StringPtr wayOut = otherRuns());
void writeWhole(kj::StringPtr path, kj::StringPtr text, kj::StringPtr wayOut = otherRuns());

// A file that appears at its path when it is complete. It is written under a temporary name in the
// same folder, `<path>.part-<process>-<number>`, then synced to disk and renamed, and the folder is
// synced too. A crash at any point leaves the old file or the new one. Several processes and
// threads may write the same path at once: each file is whole, and the last one stays. A file that
// is not finished is removed by its destructor. If the process was killed, the next WholeFile of
// that path removes it: a writer holds a file lock on its temporary file as long as it lives.
class WholeFile {
public:
  // Throws as append() does. `wayOut` is where else to write, for a disk that is full.
  explicit WholeFile(kj::StringPtr path, kj::StringPtr wayOut = otherRuns());
  ~WholeFile() noexcept;
  KJ_DISALLOW_COPY(WholeFile);

  // Throws with path, cause and way out.
  void append(kj::ArrayPtr<const kj::byte> bytes);
  // Puts it at its path, in place of a file that is there.
  void finish();

private:
  const kj::String path;
  const kj::StringPtr wayOut;
  kj::String temporary;
  kj::AutoCloseFd fd;
  bool finished = false;
};

// The path of the WholeFile that a temporary file belongs to; null if `path` is not the name of a
// temporary file.
kj::Maybe<kj::String> wholeFileOf(kj::StringPtr path);

// Removes the temporary files of `path` whose writer was killed.
void removeAbandoned(kj::StringPtr path);

// Why no WholeFile can be written to `path` now, or null if it can: only a regular file, and no
// link, may be replaced. Leaves what is there as it is.
kj::Maybe<kj::String> whyUnwritable(kj::StringPtr path);

// Writes all of `bytes` to an open descriptor. Returns 0, or the system's error if it cannot be
// written.
int writeAll(int fd, kj::ArrayPtr<const kj::byte> bytes);
// The same for a text, where nobody can be told of an error.
void writeQuietly(int fd, kj::StringPtr text);
// Writes `line` and a newline so, with control characters as configs::printable() shows them: what
// a user reads may hold names from anywhere.
void writeLineQuietly(int fd, kj::StringPtr line);

// The whole text of a file, or of an open descriptor (a pipe, standard input) that messages call
// `name`. Throws if it cannot be read, is a folder, or is longer than `bytesMax`.
kj::String readWhole(kj::StringPtr path, uint64_t bytesMax);
kj::String readWhole(int fd, kj::StringPtr name, uint64_t bytesMax);
// The same of a file that must be a regular one: to open a pipe would wait for whoever writes to
// it.
kj::String readRegular(kj::StringPtr path, uint64_t bytesMax);

// The last line of the file at `path` that has its newline, without that newline. Empty if there is
// no such line, or no such file. Throws with path and cause.
kj::String lastLineOf(kj::StringPtr path);

// Removes what follows the last newline of the file at `path`: a full disk may have torn that line.
// Does nothing if there is no such file. Throws with path and cause.
void removeTornLine(kj::StringPtr path);

// A file that grows by whole lines or records; each is handed to the kernel at once, so that a kill
// tears none.
class LineFile {
public:
  // Creates or appends to `path`.
  explicit LineFile(kj::StringPtr path);
  // Creates `path`; null if it exists, whoever else creates it at the same moment.
  static kj::Maybe<LineFile> create(kj::StringPtr path);
  // Takes over an open descriptor; `name` is what messages call it.
  LineFile(kj::AutoCloseFd fd, kj::StringPtr name);

  // Appends `line` and a newline. Throws with name, cause and way out (a full disk, a closed pipe).
  void append(kj::StringPtr line);
  // Appends `record` as it is. Throws likewise.
  void appendWhole(kj::ArrayPtr<const kj::byte> record);
  // Whether the file is still at its path: nobody has removed or renamed it, or its folder.
  bool isInPlace() const;

private:
  kj::String name;
  kj::AutoCloseFd fd;
};

}  // namespace runner
