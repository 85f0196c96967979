#include "runner/roles/trace_file.h"

#include <kj/exception.h>
#include <kj/vector.h>
#include <stdlib.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "runner/logs/role_names.h"
#include "runner/system/files.h"
#include "runner/system/reason.h"
#include "runner/system/terminal.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

// The largest possible file of a role is a tenth of this.
constexpr uint64_t FILE_BYTES_MAX = 1ull << 30;

constexpr kj::StringPtr VERBS[] = {"read"_kj, "forward"_kj, "backward"_kj, "push"_kj, "pull"_kj};

// A role's threads. NONE is the process itself.
enum Thread { NONE, COMPUTE, IO };

// Returns `text` as a JSON string.
kj::String quoted(kj::StringPtr text) {
  kj::Vector<char> all;
  all.add('"');
  for (char c: text) {
    if (c == '"' || c == '\\') all.add('\\');
    all.add(0 <= c && c < ' ' ? ' ' : c);
  }
  all.add('"');
  return kj::heapString(all.releaseAsArray());
}

// Returns `ns` in µs, with three decimals.
kj::String microseconds(int64_t ns) {
  auto rest = kj::str(ns % 1000 + 1000);
  return kj::str(ns / 1000, '.', rest.slice(1));
}

// Returns the names of the slices, each as a JSON string: "conv1_weight", or "conv1_weight[2]" if
// the key has several slices.
kj::Array<kj::String> namesOf(const rpc::Placement& placement, kj::ArrayPtr<const nn::Key> keys) {
  auto& slices = placement.slices;
  uint piece = 0;
  return KJ_MAP(id, kj::indices(slices)) {
    uint key = slices[id].key;
    piece = id > 0 && slices[id - 1].key == key ? piece + 1 : 0;
    bool alone = piece == 0 && (id + 1 == slices.size() || slices[id + 1].key != key);
    return quoted(alone ? kj::str(keys[key].name) : kj::str(keys[key].name, '[', piece, ']'));
  };
}

// Returns the number of a role's process in a trace. Workers come first.
uint processOf(uint workers, Role role, uint index) {
  return 1 + index + (role == Role::WORKER ? 0 : workers);
}

// Writes the events of one role, one by one.
class Writer {
public:
  Writer(uint workers, Role role, uint index, const rpc::Placement& placement,
      kj::ArrayPtr<const nn::Key> keys, int64_t ahead_ns)
      : workers(workers),
        process(processOf(workers, role, index)),
        slices(placement.slices.size()),
        names(namesOf(placement, keys)),
        ahead_ns(ahead_ns) {
    tell("process_name", NONE, kj::str("{\"name\":", quoted(roleName(role, index)), "}"));
    tell("process_sort_index", NONE, kj::str("{\"sort_index\":", process, "}"));
    tell("thread_name", COMPUTE, kj::str("{\"name\":\"compute\"}"));
    tell("thread_name", IO, kj::str("{\"name\":\"io\"}"));
  }

  void add(const rpc::TraceLane& lane, Thread thread) {
    for (auto& event: lane.all()) add(event, thread);
    if (lane.dropped() == 0) return;
    auto end_ns = lane.all().size() == 0 ? 0 : lane.all().back().end_ns;
    add(kj::str("{\"ph\":\"i\",\"s\":\"p\",\"name\":\"", lane.dropped(),
        " later events were dropped\",", where(thread), time(end_ns), "}"));
  }

  kj::String finish() { return kj::str("[\n", kj::heapString(text.releaseAsArray()), "\n]\n"); }

private:
  void add(const rpc::TraceEvent& event, Thread thread) {
    switch (event.point) {
      case rpc::TracePoint::READ:
      case rpc::TracePoint::FORWARD:
      case rpc::TracePoint::BACKWARD:
      case rpc::TracePoint::PUSH:
      case rpc::TracePoint::PULL:
        return span(kj::str('"', VERBS[uint(event.point)], '"'), event, thread, "segment");
      case rpc::TracePoint::COUNTED:
        return span(kj::str(names[event.item]), event, thread, "slice");
      case rpc::TracePoint::QUEUED:
        journey('b', names[event.item], event, argumentsOf(event, "slice"));
        return journey('b', "\"queued\"", event);
      case rpc::TracePoint::SENT:
        return pass("\"queued\"", "\"to server\"", event);
      case rpc::TracePoint::ARRIVED:
        return pass("\"to server\"", "\"round\"", event);
      case rpc::TracePoint::APPLIED:
        return pass("\"round\"", "\"answer\"", event);
      case rpc::TracePoint::ANSWERED:
        return pass("\"answer\"", "\"to worker\"", event);
      case rpc::TracePoint::RETURNED:
        journey('e', "\"to worker\"", event);
        return journey('e', names[event.item], event);
    }
  }

  // Writes a span during which a thread was busy.
  void span(kj::String name, const rpc::TraceEvent& event, Thread thread, kj::StringPtr item) {
    add(kj::str("{\"ph\":\"X\",\"name\":", name, ",", where(thread), time(event.begin_ns),
        ",\"dur\":", microseconds(event.end_ns - event.begin_ns), argumentsOf(event, item), "}"));
  }

  // Writes that a push ends the span `from` and begins the span `to`.
  void pass(kj::StringPtr from, kj::StringPtr to, const rpc::TraceEvent& event) {
    journey('e', from, event);
    journey('b', to, event);
  }

  void journey(char phase, kj::StringPtr name, const rpc::TraceEvent& event,
      kj::StringPtr arguments = nullptr) {
    uint64_t id = (event.step * workers + event.worker) * slices + event.item;
    add(kj::str("{\"ph\":\"", phase, "\",\"cat\":\"slice\",\"id\":\"0x", kj::hex(id),
        "\",\"name\":", name, ",", where(IO), time(event.begin_ns), arguments, "}"));
  }

  void tell(kj::StringPtr what, Thread thread, kj::String arguments) {
    add(kj::str(
        "{\"ph\":\"M\",\"name\":\"", what, "\",", where(thread), "\"args\":", arguments, "}"));
  }

  kj::String where(Thread thread) const {
    // Thread numbers are unique over all processes, because some readers identify a thread by its
    // number alone.
    uint number = thread == NONE ? 0 : 2 * (process - 1) + thread;
    return kj::str("\"pid\":", process, ",\"tid\":", number, ",");
  }
  kj::String time(int64_t ns) const { return kj::str("\"ts\":", microseconds(ns + ahead_ns)); }
  static kj::String argumentsOf(const rpc::TraceEvent& event, kj::StringPtr item) {
    return kj::str(",\"args\":{\"worker\":", event.worker, ",\"step\":", event.step, ",\"", item,
        "\":", event.item, "}");
  }

  void add(kj::String event) {
    if (text.size() > 0) text.addAll(",\n"_kj);
    text.addAll(event);
  }

  const uint64_t workers;
  const uint process;
  const uint64_t slices;
  const kj::Array<kj::String> names;
  const int64_t ahead_ns;
  kj::Vector<char> text;
};

}  // namespace

kj::Maybe<rpc::TraceSteps> parseTraceSteps(kj::StringPtr text) {
  constexpr uint64_t STEP_MAX = 999'999'999'999'999;
  rpc::TraceSteps steps;
  size_t dash = text.findFirst('-').orDefault(text.size());
  if (dash > 0) {
    KJ_IF_MAYBE(first, parseWhole(text.slice(0, dash), STEP_MAX)) {
      steps.first = *first;
    } else {
      return nullptr;
    }
  }
  if (dash == text.size()) {
    steps.last = steps.first;
  } else if (dash + 1 < text.size()) {
    KJ_IF_MAYBE(last, parseWhole(text.slice(dash + 1), STEP_MAX)) {
      steps.last = *last;
    } else {
      return nullptr;
    }
  }
  if (text.size() == 0 || steps.last < steps.first) return nullptr;
  return steps;
}

kj::String traceStepsText(const rpc::TraceSteps& steps) {
  auto last = steps.last == rpc::TraceSteps().last ? kj::str() : kj::str(steps.last);
  return kj::str(steps.first, '-', last);
}

kj::Maybe<kj::String> whyNoTrace(
    const rpc::TraceSteps& steps, uint64_t made, kj::StringPtr path, kj::StringPtr option) {
  if (steps.first >= made) {
    return kj::str("--trace-steps ", traceStepsText(steps), " would record nothing: the run makes ",
        made, " steps, from 0");
  }
  KJ_IF_MAYBE(why, whyUnwritable(path)) {
    return kj::str(
        "cannot write the trace ", path, ": ", *why, "; choose another place with ", option);
  }
  return nullptr;
}

kj::Array<uint64_t> stepsOfPushes(const Experiment& experiment, const ModelFacts& facts) {
  auto block = experiment.kvstore.mode->stepsAlone().orDefault(1);
  if (block == 1) return nullptr;
  // The end of an epoch also ends an incomplete block.
  kj::Vector<uint64_t> steps;
  uint64_t begin = 0;
  uint epochs = facts.epochs(experiment);
  for (uint epoch = 1; epoch <= epochs; epoch++) {
    uint64_t end = facts.stepsUntilEndOf(epoch, experiment);
    for (; begin < end; begin = steps.back() + 1) {
      steps.add(kj::min(begin + block, end) - 1);
    }
  }
  return steps.releaseAsArray();
}

kj::Maybe<kj::Own<rpc::Trace>> traceOf(
    const RoleOptions& options, const Experiment& experiment, const ModelFacts& facts) {
  KJ_IF_MAYBE(steps, options.trace) {
    return kj::heap<rpc::Trace>(*steps, stepsOfPushes(experiment, facts));
  }
  return nullptr;
}

kj::String traceJson(const rpc::Trace& trace, uint workers, Role role, uint index,
    const rpc::Placement& placement, kj::ArrayPtr<const nn::Key> keys, kj::Duration ahead) {
  Writer writer(workers, role, index, placement, keys, ahead / kj::NANOSECONDS);
  writer.add(trace.compute, COMPUTE);
  writer.add(trace.io, IO);
  return writer.finish();
}

void writeTrace(const rpc::Trace& trace, const Experiment& experiment, const RoleOptions& options,
    const rpc::Placement& placement, kj::ArrayPtr<const nn::Key> keys, kj::Duration ahead) {
  auto path = options.folder.trace(roleWord(options.role), options.index);
  auto json = traceJson(
      trace, experiment.cluster.seats(), options.role, options.index, placement, keys, ahead);
  // A trace that cannot be written does not fail the run.
  auto failure = kj::runCatchingExceptions([&]() { writeWhole(path, json); });
  KJ_IF_MAYBE(e, failure) {
    tell(kj::str("warning: the trace of this role is missing: ", reasonOf(*e)));
  }
  uint64_t dropped = trace.compute.dropped() + trace.io.dropped();
  if (dropped == 0) return;
  tell(kj::str("warning: the trace lacks the last ", dropped, " events: it has room for ",
      rpc::TraceLane::EVENTS_MAX, " events per thread; choose fewer steps with --trace-steps"));
}

void joinTraces(const Experiment& experiment, const RunFolder& folder, kj::StringPtr path) {
  kj::Vector<kj::String> parts;
  auto& cluster = experiment.cluster;
  for (uint i = 0; i < cluster.seats(); i++) {
    auto part = folder.trace(roleWord(Role::WORKER), i);
    // A worker that was lost, or that never joined, leaves no file.
    bool mayLack = cluster.onLoss->continues && ::access(part.cStr(), F_OK) != 0;
    if (!mayLack) parts.add(kj::mv(part));
  }
  for (uint i = 0; i < cluster.servers; i++) parts.add(folder.trace(roleWord(Role::SERVER), i));
  WholeFile file(path, "choose another file with --trace");
  file.append(TRACE_BEGIN.asBytes());
  for (auto& part: parts) {
    if (&part != parts.begin()) file.append(",\n"_kj.asBytes());
    auto text = readRegular(part, FILE_BYTES_MAX);
    // Appends the text without its brackets, which are on separate lines.
    if (text.size() < 5 || !text.startsWith("[\n") || !text.endsWith("\n]\n")) {
      configs::fail(part, " is not the trace of a role; record the run again");
    }
    file.append(text.slice(2, text.size() - 3).asBytes());
  }
  file.append("\n]}\n"_kj.asBytes());
  file.finish();
  for (auto& part: parts) ::unlink(part.cStr());
}

}  // namespace runner
