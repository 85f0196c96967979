// runner run --trace: whether every verb and every slice's journey is there, in order.
#include <capnp/compat/json.h>
#include <capnp/message.h>
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/map.h>

#include "tests/run.h"
#include "tests/text.h"

namespace tests {
namespace {

using Json = capnp::JsonValue::Reader;

constexpr kj::StringPtr MLP = "tests/cluster/mlp.toml"_kj;
constexpr uint WORKERS = 2;
constexpr uint STEPS = 12;

kj::Maybe<Json> find(Json object, kj::StringPtr name) {
  for (auto field: object.getObject()) {
    if (field.getName() == name) return field.getValue();
  }
  return nullptr;
}
Json get(Json object, kj::StringPtr name) {
  return KJ_REQUIRE_NONNULL(find(object, name), "an event lacks", name);
}
kj::StringPtr textOf(Json event, kj::StringPtr name) {
  return get(event, name).getString();
}
double numberOf(Json event, kj::StringPtr name) {
  return get(event, name).getNumber();
}

// The trace file of a run.
class TraceFile {
public:
  explicit TraceFile(kj::StringPtr path) {
    auto root = message.initRoot<capnp::JsonValue>();
    capnp::JsonCodec().decodeRaw(readFile(path), root);
    events = get(root.asReader(), "traceEvents").getArray();
  }

  capnp::List<capnp::JsonValue>::Reader events;

private:
  capnp::MallocMessageBuilder message;
};

// Runs two workers with two servers and leaves the trace in `path`.
void trace(kj::StringPtr path, kj::StringPtr transport, kj::StringPtr steps,
    kj::ArrayPtr<const kj::StringPtr> settings = nullptr) {
  auto folder = newFolder();
  auto limit = kj::str("train.steps=", STEPS);
  auto chosen = kj::str("kvstore.transport=", transport);
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  kj::Vector<kj::StringPtr> words;
  words.addAll(kj::ArrayPtr<const kj::StringPtr>({RUNNER, "run", MLP, "--set", limit, "--set",
      chosen, "--runs", folder, "--trace", path, "--trace-steps", steps}));
  for (auto setting: settings) {
    words.add("--set");
    words.add(setting);
  }
  Command command(words, {.environment = environment});
  auto ended = command.wait();
  INFO(ended.errors);
  REQUIRE(ended.exitCode == 0);
  // It now contains the roles' files.
  auto left = Command({"sh", "-c", kj::str("ls ", folder, "/mlp/1 | grep trace")}).wait();
  CHECK(left.output == "");
}

// The times, in µs, at which a push of a slice was at each station: one entry per visit.
struct Journey {
  enum Station { QUEUED, SENT, ARRIVED, APPLIED, ANSWERED, RETURNED, STATIONS };
  uint worker = 0;
  uint step = 0;
  uint slice = 0;
  kj::String name;
  kj::Vector<double> at_us[STATIONS];
  kj::Vector<double> left_us[STATIONS];  // when it left for the next one
};

Journey::Station stationAtEndOf(kj::StringPtr stretch) {
  kj::StringPtr names[] = {"queued"_kj, "to server"_kj, "round"_kj, "answer"_kj, "to worker"_kj};
  for (uint i = 0; i < kj::size(names); i++) {
    if (stretch == names[i]) return Journey::Station(i + 1);
  }
  return Journey::QUEUED;  // the span of the whole journey
}

kj::HashMap<kj::String, Journey> journeysOf(const TraceFile& file) {
  kj::HashMap<kj::String, Journey> journeys;
  for (auto event: file.events) {
    auto phase = textOf(event, "ph");
    if (phase != "b" && phase != "e") continue;
    auto& journey = journeys.findOrCreate(textOf(event, "id"), [&]() {
      return kj::HashMap<kj::String, Journey>::Entry{kj::str(textOf(event, "id")), Journey()};
    });
    auto station = stationAtEndOf(textOf(event, "name"));
    double ts_us = numberOf(event, "ts");
    if (station == Journey::QUEUED) {
      if (phase == "e") continue;
      journey.at_us[station].add(ts_us);
      auto about = get(event, "args");
      journey.worker = numberOf(about, "worker");
      journey.step = numberOf(about, "step");
      journey.slice = numberOf(about, "slice");
      journey.name = kj::str(textOf(event, "name"));
      CHECK(numberOf(event, "pid") == 1 + journey.worker);
    } else if (phase == "b") {
      journey.left_us[station - 1].add(ts_us);
    } else {
      journey.at_us[station].add(ts_us);
    }
    // Workers have the lowest process numbers.
    bool atServer = phase == "e" ? station >= Journey::ARRIVED && station <= Journey::ANSWERED
                                 : station >= Journey::APPLIED;
    CHECK((numberOf(event, "pid") > WORKERS) == atServer);
  }
  return journeys;
}

void checkJourneys(const TraceFile& file, uint steps) {
  auto journeys = journeysOf(file);
  kj::HashSet<kj::StringPtr> names;
  // When the last push of a round arrived, for each slice and step.
  kj::HashMap<uint64_t, double> lastArrived_us;
  for (auto& entry: journeys) {
    auto& journey = entry.value;
    CAPTURE(journey.name);
    CAPTURE(journey.worker);
    CAPTURE(journey.step);
    for (uint s = 0; s < Journey::STATIONS; s++) {
      CAPTURE(s);
      REQUIRE(journey.at_us[s].size() == 1);
      if (s + 1 == Journey::STATIONS) break;
      REQUIRE(journey.left_us[s].size() == 1);
      CHECK(journey.left_us[s][0] == journey.at_us[s][0]);
      REQUIRE(journey.at_us[s + 1].size() == 1);
      CHECK(journey.at_us[s][0] <= journey.at_us[s + 1][0]);
    }
    names.upsert(journey.name, [](kj::StringPtr&, kj::StringPtr&&) {});
    auto& last = lastArrived_us.findOrCreate(journey.step * 1000 + journey.slice, [&]() {
      return kj::HashMap<uint64_t, double>::Entry{journey.step * 1000 + journey.slice, 0};
    });
    last = kj::max(last, journey.at_us[Journey::ARRIVED][0]);
  }
  CHECK(names.size() > 6);  // three weights and biases, some in several slices
  CHECK(lastArrived_us.size() == steps * names.size());
  CHECK(journeys.size() == WORKERS * steps * names.size());
  for (auto& entry: journeys) {
    auto& journey = entry.value;
    double round_us = KJ_ASSERT_NONNULL(lastArrived_us.find(journey.step * 1000 + journey.slice));
    CHECK(round_us <= journey.at_us[Journey::APPLIED][0]);
  }
}

// All five verbs of each step of each worker, in one thread one after another.
void checkVerbs(const TraceFile& file, uint first, uint steps) {
  kj::StringPtr names[] = {"read"_kj, "forward"_kj, "backward"_kj, "push"_kj, "pull"_kj};
  for (uint worker = 0; worker < WORKERS; worker++) {
    auto found = kj::heapArray<uint>(steps * kj::size(names));
    for (auto& count: found) count = 0;
    double end_us = 0;
    for (auto event: file.events) {
      if (numberOf(event, "pid") != 1 + worker || textOf(event, "ph") != "X") continue;
      CHECK(numberOf(event, "tid") == 1 + 2 * worker);
      CHECK(numberOf(event, "ts") >= end_us - 0.0005);
      end_us = numberOf(event, "ts") + numberOf(event, "dur");
      auto about = get(event, "args");
      CHECK(numberOf(about, "worker") == worker);
      uint step = numberOf(about, "step");
      REQUIRE(step >= first);
      if (step == first + steps) continue;  // the rest at the end of the epoch
      REQUIRE(step < first + steps);
      for (uint verb = 0; verb < kj::size(names); verb++) {
        if (textOf(event, "name") == names[verb]) found[(step - first) * kj::size(names) + verb]++;
      }
    }
    for (uint count: found) CHECK(count > 0);
  }
}

void checkTrace(kj::StringPtr transport, kj::StringPtr chosen, uint first, uint steps) {
  CAPTURE(transport);
  auto path = kj::str(newFolder(), "/trace.json");
  trace(path, transport, chosen);
  TraceFile file(path);
  checkVerbs(file, first, steps);
  checkJourneys(file, steps);
  uint counted = 0;
  for (auto event: file.events) {
    if (textOf(event, "ph") == "X" && numberOf(event, "pid") > WORKERS) counted++;
    // Nothing was dropped.
    CHECK(textOf(event, "ph") != "i");
  }
  CHECK(counted == journeysOf(file).size());
}

TEST_CASE("over TCP every verb and every slice's journey is in the trace, in order") {
  checkTrace("tcp", "0-", 0, STEPS);
}

TEST_CASE("through shared memory every verb and every slice's journey is in the trace, in order") {
  checkTrace("shared_memory", "0-", 0, STEPS);
}

TEST_CASE("a trace of some steps has only those steps") {
  checkTrace("tcp", "3-6", 3, 4);
}

TEST_CASE("local_sgd: --trace-steps selects a push by the last step of its block") {
  auto path = kj::str(newFolder(), "/trace.json");
  trace(path, "tcp", "5-", {"kvstore.mode=local_sgd", "kvstore.local_steps=5"});
  TraceFile file(path);
  checkVerbs(file, 5, STEPS - 5);
  kj::HashMap<uint, uint> pushes;  // by step
  for (auto& entry: journeysOf(file)) {
    for (auto& times: entry.value.at_us) CHECK(times.size() == 1);
    pushes.findOrCreate(entry.value.step, [&]() {
      return kj::HashMap<uint, uint>::Entry{entry.value.step, 0};
    })++;
  }
  // Blocks end with steps 4 and 9, and the run with 11.
  CHECK(pushes.size() == 2);
  CHECK(pushes.find(9) != nullptr);
  CHECK(pushes.find(11) != nullptr);
}

TEST_CASE("a trace that cannot be made is refused before anything runs") {
  auto folder = newFolder();
  auto file = kj::str(folder, "/trace.json");
  auto sweep =
      Command({RUNNER, "run", MLP, "--sweep", "train.seed=1,2", "--runs", folder, "--trace", file})
          .wait();
  CHECK(sweep.exitCode == 2);
  CHECK(contains(sweep.errors, "--trace is for a single run, and this is a sweep"));
  auto nowhere = Command({RUNNER, "run", MLP, "--runs", folder, "--trace-steps", "1-2"}).wait();
  CHECK(nowhere.exitCode == 2);
  CHECK(contains(nowhere.errors, "--trace-steps needs --trace FILE"));
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  auto special = Command(
      {RUNNER, "run", MLP, "--runs", folder, "--trace", "/dev/null"}, {.environment = environment})
                     .wait();
  CHECK(special.exitCode == 2);
  CHECK(contains(
      special.errors, "cannot write the trace /dev/null: exists but is not a regular file"));
  auto role = Command({RUNNER, "role", MLP, "--role", "worker", "--coordinator", "127.0.0.1:1",
                          "--folder", "/nope", "--trace-steps", "0-"},
      {.environment = environment})
                  .wait();
  CHECK(role.exitCode == 2);
  CHECK(contains(role.errors,
      "/nope/worker-0.trace.json: No such file or directory; choose another place with --folder "
      "DIR"));
  // Nothing was started.
  CHECK(Command({"ls", "-A", folder}).wait().output == "");
}

TEST_CASE("--trace-steps: a coordinator records nothing, so it does not check the place") {
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  Command coordinator({RUNNER, "role", MLP, "--role", "coordinator", "--folder",
                          kj::str(newFolder(), "/new"), "--trace-steps", "0-"},
      {.environment = environment});
  CHECK(coordinator.waitForErrors("coordinator listens on "));
}

}  // namespace
}  // namespace tests
