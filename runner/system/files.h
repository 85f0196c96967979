// runner/system/files.h: files that are complete or absent, files that grow line by line, and
// reading whole files.
#pragma once

#include <kj/array.h>
#include <kj/io.h>
#include <kj/string.h>
#include <sys/types.h>
#include <utility>

namespace runner {

// Says where else a run may be written, if a disk is full or a folder cannot be written: "choose
// another folder with --runs". Any thread may call it.
kj::StringPtr otherRuns();
// Makes otherRuns() name `--folder`, for a command that got this option. Call it before other
// threads start.
void nameFolderOption();

// Writes `pieces` one after another to `path`, as a WholeFile. Throws with path, cause and way out
// (a full disk).
void writeWhole(kj::StringPtr path, kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces,
    kj::StringPtr wayOut = otherRuns());
void writeWhole(kj::StringPtr path, kj::StringPtr text, kj::StringPtr wayOut = otherRuns());

// A file that appears at its path when it is complete. It is written under a temporary name in the
// same folder, `<path>.part-<process>-<number>`. finish() syncs it to disk, renames it, and syncs
// the folder. A crash at any point leaves the old file or the new one.
//
// Several processes and threads may write the same path at once. Each file is complete, and the
// last one stays. The destructor removes a file that is not finished. If the process was killed,
// the next WholeFile of that path removes its temporary file. A writer holds a file lock on its
// temporary file while it lives.
class WholeFile {
public:
  // Throws as append() does, also if `path` names something else than a regular file. `wayOut` says
  // where else the user may write.
  explicit WholeFile(kj::StringPtr path, kj::StringPtr wayOut = otherRuns());
  ~WholeFile() noexcept;
  KJ_DISALLOW_COPY(WholeFile);

  // Throws with path, cause and way out.
  void append(kj::ArrayPtr<const kj::byte> bytes);
  // Waits until the bytes so far are on disk. finish() does this, too. Throws as append() does.
  void sync();
  // Moves the file to its path and replaces the file that is there.
  void finish();
  // Finishes several files of one folder. A crash at any point leaves each file old or new. The
  // file system has to write its journal only once or twice, and not twice for each file.
  static void finish(kj::ArrayPtr<kj::Own<WholeFile>> files);

private:
  void rename();
  void syncFolder();

  const kj::String path;
  const kj::StringPtr wayOut;
  kj::String temporary;
  kj::AutoCloseFd fd;
  bool finished = false;
};

// Returns the path of the WholeFile that a temporary file belongs to. Null if `path` is not the
// name of a temporary file.
kj::Maybe<kj::String> wholeFileOf(kj::StringPtr path);

// Removes the temporary files of `path` whose writer was killed.
void removeAbandoned(kj::StringPtr path);

// Returns why no WholeFile can be written to `path` now, or null if one can. Only a regular file
// may be replaced, not a link. Changes nothing.
kj::Maybe<kj::String> whyUnwritable(kj::StringPtr path);

// Returns the first `bytes` of the regular file at `path`, or fewer if it has fewer. Null if there
// is no such file, or if it is empty. Empty if it cannot be read.
kj::Maybe<kj::String> beginningOf(kj::StringPtr path, size_t bytes);

// Whether another program has written the file at `path`: it is a regular file that is not empty
// and does not begin with `begin`. A command calls this before it replaces a file, so that a
// mistyped name does not destroy somebody's file. True if the file cannot be read.
bool isForeignFile(kj::StringPtr path, kj::StringPtr begin);

// Writes all of `bytes` to an open descriptor. Returns 0, or errno if a write fails. Returns EINTR
// instead of waiting for the reader of a pipe while `givesUp` returns true. A signal handler may
// change what `givesUp` returns.
int writeAll(int fd, kj::ArrayPtr<const kj::byte> bytes, bool (*givesUp)() = nullptr);

// Returns the whole text of a file, or of an open descriptor (a pipe, standard input) that messages
// call `name`. Throws if it cannot be read, is a folder, or is longer than `bytesMax`.
kj::String readWhole(kj::StringPtr path, uint64_t bytesMax);
kj::String readWhole(int fd, kj::StringPtr name, uint64_t bytesMax);
// The same, but throws if the file is not a regular one. Opening a pipe would wait for its writer.
kj::String readRegular(kj::StringPtr path, uint64_t bytesMax);

// Returns the last line of the file at `path` that ends in a newline, without that newline. Empty
// if there is no such line or no such file. Throws with path and cause.
kj::String lastLineOf(kj::StringPtr path);

// Waits until the file at `path` is on disk. For a folder, waits only until the names in it are on
// disk. Does nothing if there is neither. Throws with path, cause and way out.
void syncPath(kj::StringPtr path);

// Writes the bytes of the file at `path` again, from byte `from` on. Call it after a failed
// fsync(): Linux then treats the bytes that it could not write as written, so another fsync() would
// not write them. Throws with path, cause and way out.
void writeAgain(kj::StringPtr path, uint64_t from);

// Shortens the file at `path` to `bytes`. Throws with path and cause if it cannot, or if the file
// is shorter than that.
void cutFile(kj::StringPtr path, uint64_t bytes);

// Removes everything after the last newline of the file at `path`. A full disk may have left an
// incomplete line. Does nothing if there is no such file. Throws with path and cause.
void removeTornLine(kj::StringPtr path);

// A file that grows by whole lines or records. Each goes to the kernel in one write, so that a kill
// leaves no incomplete one.
class LineFile {
public:
  // Opens `path` for appending, and creates it if necessary. Throws with path, cause and way out,
  // also if `path` is not a regular file.
  explicit LineFile(kj::StringPtr path);
  // Creates `path`. Null if it exists, even if another process creates it at the same moment.
  static kj::Maybe<LineFile> create(kj::StringPtr path);
  // Takes over an open descriptor. `name` is what messages call it.
  LineFile(kj::AutoCloseFd fd, kj::StringPtr name);

  // Appends `line` and a newline. If a write fails (a full disk, a closed pipe), throws with name,
  // cause and way out. A regular file is then as long as before.
  void append(kj::StringPtr line);
  // Appends `record` unchanged. Throws as append() does.
  void appendWhole(kj::ArrayPtr<const kj::byte> record);
  // The path of the file, or the name of the descriptor.
  kj::StringPtr path() const { return name; }
  // Returns how long the file is now.
  uint64_t bytes() const;
  // Whether the file is still at its path: nobody has removed or renamed the file or its folder.
  bool isInPlace() const;

private:
  kj::String name;
  kj::AutoCloseFd fd;
};

// Whether there is a folder at `path`. A link to a folder does not count.
bool isFolder(kj::StringPtr path);

// Returns the names of the folders in `path` by name, 2 before 10. Leaves out those that begin with
// a dot. Throws if `path` cannot be read.
kj::Array<kj::String> foldersIn(kj::StringPtr path);
// A folder, or a link to one.
struct FoundFolder {
  kj::String name;
  std::pair<dev_t, ino_t> identity;  // of the folder, whichever path leads to it
};

// Returns the folders in `path` as foldersIn() does, together with links to folders, such as runs
// that were moved to another disk. Leaves out links to folders that it returns under another name,
// like `last`.
kj::Array<FoundFolder> foldersAndLinksIn(kj::StringPtr path);

// Returns the identity of the folder at `path`. Null if there is none.
kj::Maybe<std::pair<dev_t, ino_t>> folderIdentity(kj::StringPtr path);

}  // namespace runner
