// runner/roles/trace_file.h: what roles have recorded, in the trace-event format of Chrome.
#pragma once

#include <kj/array.h>
#include <kj/string.h>
#include <kj/time.h>

#include "nn/network/graph.h"
#include "rpc/placement.h"
#include "rpc/trace.h"
#include "runner/experiment/experiment.h"
#include "runner/experiment/model_facts.h"
#include "runner/roles/role_options.h"

namespace runner {

// `7-99`, `7-`, `-99` or `7`; null if the text is none of them, or ends before it begins.
kj::Maybe<rpc::TraceSteps> parseTraceSteps(kj::StringPtr text);
// The same, so that it can be parsed.
kj::String traceStepsText(const rpc::TraceSteps& steps);

// Why a run of so many steps would leave no trace of `steps` in `path`, or null if it will. The way
// out names `option`: `--trace FILE`.
kj::Maybe<kj::String> whyNoTrace(
    const rpc::TraceSteps& steps, uint64_t made, kj::StringPtr path, kj::StringPtr option);

// The step that each push of a worker ends, where that is not its own number: see
// rpc::StepsOfPushes.
kj::Array<uint64_t> stepsOfPushes(const Experiment& experiment, const ModelFacts& facts);

// The memory for what a role is to record, if it is to.
kj::Maybe<kj::Own<rpc::Trace>> traceOf(
    const RoleOptions& options, const Experiment& experiment, const ModelFacts& facts);

// The events of a role as a JSON array: a process with the threads `compute` and `io`, on which
// verbs, and what a shard counts, are spans (`X`); and for each push of a slice, in the process of
// its worker, nested spans (`b`, `e`) from queued to returned, which several roles write together:
// `queued`, `to server`, `round`, `answer`, `to worker`, all with the push's `id`. Times are in
// microseconds. `ahead` is added to all: see ClockOffset. Events that were dropped are told by an
// instant (`i`) behind the last. See "Trace Event Format", Google 2016.
//
// `workers` is how many the job has; `keys` are those that `placement` cuts.
kj::String traceJson(const rpc::Trace& trace, uint workers, Role role, uint index,
    const rpc::Placement& placement, kj::ArrayPtr<const nn::Key> keys, kj::Duration ahead);

// Writes traceJson() to the role's file in options.folder. Tells on stderr if events were dropped,
// or if it cannot be written: that costs no run its end. The threads that record must have ended.
void writeTrace(const rpc::Trace& trace, const Experiment& experiment, const RoleOptions& options,
    const rpc::Placement& placement, kj::ArrayPtr<const nn::Key> keys, kj::Duration ahead);

// Joins the files of all roles of a run in `folder` into `path`, one JSON object, and removes them.
// Throws if one is missing or `path` cannot be written: then they stay.
void joinTraces(const Experiment& experiment, const RunFolder& folder, kj::StringPtr path);

}  // namespace runner
