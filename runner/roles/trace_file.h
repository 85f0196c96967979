// runner/roles/trace_file.h: writes the recordings of roles in Chrome's trace-event format.
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

// The text with which a trace of joinTraces() begins.
constexpr kj::StringPtr TRACE_BEGIN = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"_kj;

// Reads `7-99`, `7-`, `-99`, `7`, or `-` for all steps. Null for any other text, or if the end is
// before the beginning.
kj::Maybe<rpc::TraceSteps> parseTraceSteps(kj::StringPtr text);
// Returns the text that parseTraceSteps() reads as `steps`.
kj::String traceStepsText(const rpc::TraceSteps& steps);

// Returns why a run of `made` steps cannot write a trace of `steps` to `path`. Null if it can. The
// advice names `option`: `--trace FILE`.
kj::Maybe<kj::String> whyNoTrace(
    const rpc::TraceSteps& steps, uint64_t made, kj::StringPtr path, kj::StringPtr option);

// Returns for each push of a worker the number of the last step that it is about: see
// rpc::StepsOfPushes. Empty if that is the number of the push, because every step pushes.
kj::Array<uint64_t> stepsOfPushes(const Experiment& experiment, const ModelFacts& facts);

// Returns the memory for the role's recording. Null if the role does not record.
kj::Maybe<kj::Own<rpc::Trace>> traceOf(
    const RoleOptions& options, const Experiment& experiment, const ModelFacts& facts);

// Returns the events of a role as a JSON array. The role is a process with the threads `compute`
// and `io`. Verbs, and a shard's work on each push, are spans (`X`) on these threads.
//
// Each push of a slice has nested spans (`b`, `e`) from queued to returned, in the process of its
// worker: `queued`, `to server`, `round`, `answer`, `to worker`, all with the push's `id`. Several
// roles write the spans of one push together.
//
// Times are in microseconds. `ahead` is added to all of them: see ClockOffset. If events were
// dropped, an instant (`i`) after the last event says how many. See "Trace Event Format", Google
// 2016.
//
// `workers` is the number of workers of the job. `keys` are the keys that `placement` cuts.
kj::String traceJson(const rpc::Trace& trace, uint workers, Role role, uint index,
    const rpc::Placement& placement, kj::ArrayPtr<const nn::Key> keys, kj::Duration ahead);

// Writes traceJson() to the role's file in options.folder. If events were dropped, or if the file
// cannot be written, says so on stderr, and the run still ends well. The threads that record must
// have ended.
void writeTrace(const rpc::Trace& trace, const Experiment& experiment, const RoleOptions& options,
    const rpc::Placement& placement, kj::ArrayPtr<const nn::Key> keys, kj::Duration ahead);

// Joins the files of all roles of the run in `folder` into one JSON object in `path`, and removes
// the files. Throws if a file is missing or `path` cannot be written. The files then stay.
void joinTraces(const Experiment& experiment, const RunFolder& folder, kj::StringPtr path);

}  // namespace runner
