// tests/simulation/virtual_disk.h: a disk that can lose what was not synced.
#pragma once

#include <kj/function.h>
#include <kj/memory.h>
#include <kj/string.h>

#include "tests/simulation/dice.h"

namespace simulation {

// The disk that holds everything below the folder `root`. While this object exists, it replaces the
// C library's functions that change files (open, write, rename, fsync, …), and records what a disk
// would keep after a power failure. One at a time, on one thread.
//
// A disk keeps the content of a file as it was at the last fsync() of the file, and perhaps a part
// of what was written since. It keeps the names in a folder as they were at the last fsync() of the
// folder, and perhaps the first few changes since, in their order. That is what POSIX promises, and
// less than most file systems do.
//
// When an fsync() of a file fails, the disk lacks all that was written since the last one. As on
// Linux, these bytes then count as written: processes read them, the next fsync() succeeds without
// them, and only writing them again gets them to the disk.
class VirtualDisk {
public:
  // `root` is an empty folder. Also collects the output to standard error.
  explicit VirtualDisk(kj::StringPtr root);
  ~VirtualDisk() noexcept(false);
  KJ_DISALLOW_COPY(VirtualDisk);

  // Called before each change, with its number from 0. It may call stop().
  kj::Function<void(uint64_t number)> onChange = [](uint64_t) {};
  // Returns how many changes there were.
  uint64_t changes() const;
  // The writing process was killed: from now on its changes fail.
  void stop();
  // Another process writes now.
  void go();
  // The next `count` changes below a folder whose path contains `part` fail with `error`.
  void fail(int error, uint count, kj::StringPtr part);
  // The next `count` calls of fsync() for files whose path contains `part` fail with EIO.
  void failSyncs(uint count, kj::StringPtr part);
  // A deliberate bug: fsync() does nothing.
  void ignoreSyncs();

  // The machine loses its power. Afterwards, the files are as the disk has kept them. No process
  // may have them open.
  void losePower(Dice& dice);

  // Returns the output to standard error since the last call.
  kj::String takeErrors();
  // Whether `line` is the last line of the output that takeErrors() would return now.
  bool hasSaid(kj::StringPtr line) const;

  struct State;

private:
  kj::Own<State> state;
};

}  // namespace simulation
