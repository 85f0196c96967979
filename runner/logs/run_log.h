// runner/logs/run_log.h: the events of a run go to events.jsonl, log.txt, one file per role, and
// the launcher.
#pragma once

#include <kj/function.h>
#include <kj/mutex.h>
#include <kj/refcount.h>
#include <kj/string.h>
#include <kj/vector.h>

#include "runner/logs/job.capnp.h"
#include "runner/logs/log_styles.h"
#include "runner/logs/role_logs.h"
#include "runner/logs/run_folder.h"
#include "runner/logs/tensorboard.h"
#include "runner/system/files.h"

namespace runner {

// Throws, with the way out, if a run in `folder` would replace files there that no run has written.
// A folder without events may hold the remains of a run that was killed before its first event: its
// experiment and logs of roles. `isOfRun` returns whether a run has written the experiment file at
// a path.
void refuseOtherFiles(const RunFolder& folder, kj::FunctionParam<bool(kj::StringPtr)> isOfRun);

// Whether an inline coordinator may still write its run's files. Nobody can end its thread.
// Therefore the launcher closes the access before it writes to the files itself. Thread-safe.
class LogAccess final: public kj::AtomicRefcounted {
public:
  // Waits for a write in progress.
  void close() const { *isOpen.lockExclusive() = false; }
  // Calls `write`, and nobody can close the access meanwhile. If the access is closed, throws and
  // does not call it.
  template <typename Func>
  void use(Func&& write) const {
    auto open = isOpen.lockExclusive();
    KJ_REQUIRE(*open, "the launcher has taken the run's files over");
    write();
  }

private:
  kj::MutexGuarded<bool> isOpen{true};
};

// The log of one run. Only one role writes it, so that lines of different roles are never mixed or
// out of order: the coordinator, and after its end the launcher.
//
// A run has one last event: see isLast(). Whoever appends it first decides how the run ended.
class RunLog {
public:
  // Takes an event for whoever watches the run, and the same event as a line of JSON.
  using Tell = kj::Function<void(Event::Reader event, kj::StringPtr json)>;
  // Writes the lines to a launcher's pipe.
  static Tell toLauncher(kj::AutoCloseFd pipe);
  // For a run that nobody watches.
  static Tell toNobody();

  // Writes the files of `folder` (log.txt and those of the roles in `style`), and passes each event
  // on to `tell` and to `board`, if there is one. Writes nothing after `access` is closed. Throws
  // if the folder already has events.
  RunLog(const RunFolder& folder, const LogStyle& style, Tell tell,
      kj::Maybe<TensorBoard> board = nullptr, kj::Maybe<kj::Own<const LogAccess>> access = nullptr);
  // Continues the run in `folder` from the time when its events took `events_bytes`: later ones are
  // removed. Cuts all other logs to the lengths in `logs`, which extents() returned at that time.
  // If `logs` is empty, or the logs are no longer as they were, makes all of them again from the
  // events that stay. That takes long in a long run. Passes nothing to `tell` yet. The roles of the
  // run must be gone. Throws if the events are shorter, or cannot be read or written.
  static RunLog resume(const RunFolder& folder, const LogStyle& style, Tell tell,
      kj::Maybe<TensorBoard> board, kj::Maybe<kj::Own<const LogAccess>> access,
      uint64_t events_bytes, const LogExtents& logs);
  // Continues the files that roles have left in `folder`, or begins them. There is no launcher to
  // tell. The roles must be gone. Removes a last line that a full disk has cut off.
  static RunLog reopen(const RunFolder& folder, const LogStyle& style);

  // Writes the event to all files. Throws if one cannot be written, or if the run already has its
  // last event.
  void append(Event::Reader event);
  // Returns how long events.jsonl is now.
  uint64_t events_bytes() const { return events.bytes(); }
  // Returns the CRC-32 of what the run has written there. Call it only on a log that was not
  // reopened.
  uint32_t events_crc32() const { return eventsCrc32; }
  // Returns how long all other logs are now, without checksums.
  LogExtents extents() const;
  // Returns the paths of those other logs that somebody has removed or renamed. They lack what was
  // appended since then. The events have it all.
  kj::Vector<kj::String> removedLogs() const;
  // The run's last event as a line of JSON. Null while the run is in progress.
  kj::Maybe<kj::StringPtr> lastEvent() const;
  // Whether the events file is still at its path: see LineFile::isInPlace().
  bool isInPlace() const { return events.isInPlace(); }
  // Passes an event to `tell` only. It does not become part of the record.
  void show(Event::Reader event);

private:
  RunLog(LineFile events, const RunFolder& folder, const LogStyle& style, Tell tell,
      kj::Maybe<TensorBoard> board, kj::Maybe<kj::Own<const LogAccess>> access);
  void write(Event::Reader event, kj::StringPtr json);
  void writeOthers(Event::Reader event);
  // Calls `take` with each file except events.jsonl.
  void eachOther(kj::FunctionParam<void(const LineFile& file)> take) const;

  RunFolder folder;
  const LogStyle& style;
  LineFile events;
  uint32_t eventsCrc32 = 0;  // see events_crc32()
  LineFile log;
  RoleLogs roles;
  kj::Own<LineWriter> writer;
  Tell tell;
  kj::Maybe<TensorBoard> board;
  kj::Maybe<kj::Own<const LogAccess>> access;
  kj::Maybe<kj::String> last;  // see lastEvent()
};

}  // namespace runner
