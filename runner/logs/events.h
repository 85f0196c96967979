// runner/logs/events.h: writes an event as a line of JSON, and reads the events of a run back.
#pragma once

#include <kj/function.h>
#include <kj/string.h>

#include "runner/logs/job.capnp.h"
#include "runner/logs/run_folder.h"

namespace runner {

// formatEvent() returns one event as a line of JSON, without newline. parseEvent() reads it back.
// The field names are those of job.capnp, with their units. parseEvent() throws if `line` is not an
// event.
kj::String formatEvent(Event::Reader event);
void parseEvent(kj::StringPtr line, Event::Builder event);

// The largest size of events.jsonl. An event takes about 300 bytes, and each worker writes one
// every log.every steps.
constexpr uint64_t EVENTS_BYTES_MAX = 1ull << 34;

// Calls `take` for each event of the run in `folder`, in order. Skips a last line that is cut off,
// because the run was killed while it wrote it. Throws, and says what to do, if the folder has no
// events or a line is not an event.
void eachEvent(const RunFolder& folder, kj::FunctionParam<void(Event::Reader)> take);
// Does the same, but skips events `speed` without parsing them. Most events of a long run are such
// events.
void eachEventButSpeed(const RunFolder& folder, kj::FunctionParam<void(Event::Reader)> take);
// Does the same as eachEvent(), but ends at the first line that is not an event. After a power
// failure, the unwritten part of a file may hold any bytes. Returns a clause that names this line:
// "runs/x/1/events.jsonl:3 is not an event of a run". Empty if there is none.
kj::String eachEventUntilDamage(
    const RunFolder& folder, kj::FunctionParam<void(Event::Reader)> take);
// Whether the events of the run in `folder` begin with an event.
bool beginsWithEvent(const RunFolder& folder);

// Whether `event` is the last one of a run: finished, failed, interrupted or stopped.
bool isLast(Event::Reader event);
// Whether `event` says how an attempt to save the run has ended.
bool endsSaving(Event::Reader event);

}  // namespace runner
