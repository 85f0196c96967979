// runner/logs/role_logs.h: one file per role in the run's folder: worker-0.log, server-0.log, ….
#pragma once

#include <kj/array.h>
#include <kj/string.h>
#include <kj/vector.h>

#include "runner/logs/job.capnp.h"
#include "runner/logs/run_folder.h"
#include "runner/system/files.h"

namespace runner {

// What each server and worker says by its events: the lines that these have in the run's log style,
// and in plain words what no style has a line for: joining, what a server holds, bad records, and
// how the job ended. A file begins with its role's first event, or with a server's first key.
class RoleLogs {
public:
  // `folder` is copied.
  explicit RoleLogs(const RunFolder& folder);

  // Goes on with the files that are in the folder, without a last line that a full disk has torn.
  // Without this, what ends the job is appended only to files that were begun here.
  void reopen();

  // `lines` are those of `event` in the log's style. Throws if a file cannot be written.
  void append(Event::Reader event, kj::ArrayPtr<const kj::String> lines);

private:
  struct Log {
    Role role;
    kj::uint index;
    LineFile file;
  };

  LineFile& fileOf(Role role, kj::uint index);

  RunFolder folder;
  kj::Vector<Log> logs;
};

}  // namespace runner
