// runner/system/file_remover.h: removes files when a process ends, however it ends.
#pragma once

#include <kj/array.h>
#include <kj/io.h>
#include <kj/string.h>
#include <sys/types.h>

namespace runner {

// Removes files in its destructor. If `kill -9` ends this process before that, a child process
// removes them. Nothing removes the files if that child is killed first, or if the machine goes
// down.
class FileRemover {
public:
  // The files need not exist yet. `paths` must be absolute, or the current folder must not change.
  // Throws if no process can be started.
  explicit FileRemover(kj::ArrayPtr<const kj::String> paths);
  // Returns when the files are removed.
  ~FileRemover() noexcept;
  KJ_DISALLOW_COPY(FileRemover);

private:
  kj::AutoCloseFd alive;  // the child waits until this end of a socket is closed
  pid_t child;
};

}  // namespace runner
