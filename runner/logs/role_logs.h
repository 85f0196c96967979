// runner/logs/role_logs.h: one file per role in the run's folder: worker-0.log, server-0.log, ….
#pragma once

#include <kj/array.h>
#include <kj/function.h>
#include <kj/string.h>
#include <kj/vector.h>

#include "runner/logs/job.capnp.h"
#include "runner/logs/run_folder.h"
#include "runner/system/files.h"
#include "runner/system/growing_files.h"

namespace runner {

// Writes one file per server and worker from its events. It holds the lines of the run's log style.
// Lines in plain words cover events for which no style has a line: joining, the keys of a server,
// bad records, and the end of the job. A file begins with its role's first event, or with a
// server's first key.
class RoleLogs {
public:
  // Copies `folder`.
  explicit RoleLogs(const RunFolder& folder);

  // Continues the files in the folder, after removing a last line that a full disk has cut off.
  // Without reopen() or restart(), the end of the job is appended only to files that this object
  // began.
  void reopen();

  // Truncates the files in the folder to `extents`, and continues them. Empties files that are not
  // in `extents`.
  void restart(kj::ArrayPtr<const FileExtent> extents);

  // Calls `take` with each file that is open.
  void eachFile(kj::FunctionParam<void(const LineFile& file)> take) const;

  // `lines` are the lines of `event` in the log's style. Throws if a file cannot be written.
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
