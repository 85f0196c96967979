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

// The most that events.jsonl may hold. An event takes some 300 bytes, and each worker writes one
// every log.every steps.
constexpr uint64_t EVENTS_BYTES_MAX = 1ull << 34;

// Calls `take` for each event of the run in `folder`, in order. Skips a last line that is cut off:
// the run was killed then. Throws, with the way out, if the folder has no events or a line of them
// is not an event.
void eachEvent(const RunFolder& folder, kj::FunctionParam<void(Event::Reader)> take);
// The same, but leaves out the events `speed`, unread. Most events of a long run are such events.
void eachEventButSpeed(const RunFolder& folder, kj::FunctionParam<void(Event::Reader)> take);
// The same as eachEvent(), but ends at the first line that is not an event. A loss of power may
// leave any bytes in what a file system had not written yet.
void eachEventUntilDamage(const RunFolder& folder, kj::FunctionParam<void(Event::Reader)> take);
// Whether the events of the run in `folder` begin with an event.
bool beginsWithEvent(const RunFolder& folder);

// Whether `event` is the last one of a run: finished, failed, interrupted or stopped.
bool isLast(Event::Reader event);
// Whether `event` says how an attempt to save the run has ended.
bool endsSaving(Event::Reader event);

}  // namespace runner
