// runner/run_log.h: the one stream of a run's events: events.jsonl, log.txt, a file a role, and the
// launcher.
#pragma once

#include <kj/function.h>
#include <kj/string.h>
#include <kj/vector.h>

#include "runner/files.h"
#include "runner/job.capnp.h"
#include "runner/log_styles.h"
#include "runner/role_logs.h"
#include "runner/run_folder.h"
#include "runner/tensorboard.h"

namespace runner {

// One event as a line of JSON, without newline; and back. The field names are those of job.capnp,
// with their units. parseEvent throws if `line` is not an event.
kj::String formatEvent(Event::Reader event);
void parseEvent(kj::StringPtr line, Event::Builder event);

// Calls `take` for each event of the run in `folder`, in their order. A last line that is torn is
// left out: the run was killed. Throws, with the way out, if the folder has no events or a line of
// them is no event.
void eachEvent(const RunFolder& folder, kj::FunctionParam<void(Event::Reader)> take);

// Written by one role alone, so that lines of different roles are never torn or out of step with
// each other: by the coordinator, and after its end by the launcher.
class RunLog {
public:
  // Takes an event for whoever watches the run, and the same as a line of JSON.
  using Tell = kj::Function<void(Event::Reader event, kj::StringPtr json)>;
  // Writes the lines to a launcher's pipe.
  static Tell toLauncher(kj::AutoCloseFd pipe);
  // Nobody watches.
  static Tell toNobody();

  // Writes the files of `folder`, log.txt and those of the roles in `style`, and hands each event
  // on to `tell`. `board`, if there is one, takes all events too. Throws if
  // the folder has events: those of a run that has ended, or of one that goes on now.
  RunLog(const RunFolder& folder, const LogStyle& style, Tell tell,
      kj::Maybe<TensorBoard> board = nullptr);
  // Goes on with the files that roles have left in `folder`, or begins them; there is no launcher
  // to tell. The roles must be gone. A last line that a full disk has torn is removed.
  static RunLog reopen(const RunFolder& folder, const LogStyle& style);

  // Writes the event to all of them. Throws if one of them cannot be written.
  void append(Event::Reader event);
  // Hands an event to `tell` only: it is not part of the record.
  void show(Event::Reader event);

private:
  RunLog(LineFile events, const RunFolder& folder, const LogStyle& style, Tell tell,
      kj::Maybe<TensorBoard> board);

  LineFile events;
  LineFile log;
  RoleLogs roles;
  kj::Own<LineWriter> writer;
  Tell tell;
  kj::Maybe<TensorBoard> board;
};

}  // namespace runner
