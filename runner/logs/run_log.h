// runner/logs/run_log.h: the one stream of a run's events: events.jsonl, log.txt, a file a role,
// and the launcher.
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

// One event as a line of JSON, without newline; and back. The field names are those of job.capnp,
// with their units. parseEvent throws if `line` is not an event.
kj::String formatEvent(Event::Reader event);
void parseEvent(kj::StringPtr line, Event::Builder event);

// Calls `take` for each event of the run in `folder`, in their order. A last line that is torn is
// left out: the run was killed. Throws, with the way out, if the folder has no events or a line of
// them is no event.
void eachEvent(const RunFolder& folder, kj::FunctionParam<void(Event::Reader)> take);

// Whether `event` is the last one of a run: it has finished, failed, or was interrupted or stopped.
bool isLast(Event::Reader event);

// Whether an inline coordinator may still write its run's files. Nobody can end its thread, so the
// launcher closes the access before it writes to the files itself. For any threads.
class LogAccess final: public kj::AtomicRefcounted {
public:
  // Waits for what is being written now.
  void close() const { *isOpen.lockExclusive() = false; }
  // Calls `write` while nobody can close the access. Throws, and does not call it, if it is closed.
  template <typename Func>
  void use(Func&& write) const {
    auto open = isOpen.lockExclusive();
    KJ_REQUIRE(*open, "the launcher has taken the run's files over");
    write();
  }

private:
  kj::MutexGuarded<bool> isOpen{true};
};

// Written by one role alone, so that lines of different roles are never torn or out of step with
// each other: by the coordinator, and after its end by the launcher.
//
// A run has one last event: see isLast(). Whoever appends the first one decides how the run ended.
class RunLog {
public:
  // Takes an event for whoever watches the run, and the same as a line of JSON.
  using Tell = kj::Function<void(Event::Reader event, kj::StringPtr json)>;
  // Writes the lines to a launcher's pipe.
  static Tell toLauncher(kj::AutoCloseFd pipe);
  // Nobody watches.
  static Tell toNobody();

  // Writes the files of `folder`, log.txt and those of the roles in `style`, and hands each event
  // on to `tell`. `board`, if there is one, takes all events too. Nothing is written once `access`
  // is closed. Throws if the folder has events: those of a run that has ended, or of one that goes
  // on now.
  RunLog(const RunFolder& folder, const LogStyle& style, Tell tell,
      kj::Maybe<TensorBoard> board = nullptr, kj::Maybe<kj::Own<const LogAccess>> access = nullptr);
  // Goes on with the files that roles have left in `folder`, or begins them; there is no launcher
  // to tell. The roles must be gone. A last line that a full disk has torn is removed.
  static RunLog reopen(const RunFolder& folder, const LogStyle& style);

  // Writes the event to all of them. Throws if one of them cannot be written, and if the run has
  // its last event.
  void append(Event::Reader event);
  // The run's last event as a line of JSON; null while the run goes on.
  kj::Maybe<kj::StringPtr> lastEvent() const;
  // Whether the events are still at their path: see LineFile::isInPlace().
  bool isInPlace() const { return events.isInPlace(); }
  // Hands an event to `tell` only: it is not part of the record.
  void show(Event::Reader event);

private:
  RunLog(LineFile events, const RunFolder& folder, const LogStyle& style, Tell tell,
      kj::Maybe<TensorBoard> board, kj::Maybe<kj::Own<const LogAccess>> access);
  void write(Event::Reader event, kj::StringPtr json);

  LineFile events;
  LineFile log;
  RoleLogs roles;
  kj::Own<LineWriter> writer;
  Tell tell;
  kj::Maybe<TensorBoard> board;
  kj::Maybe<kj::Own<const LogAccess>> access;
  kj::Maybe<kj::String> last;  // see lastEvent()
};

}  // namespace runner
