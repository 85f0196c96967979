#include "runner/roles/trace_file.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>

#include "runner/system/files.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

kj::String parsed(kj::StringPtr text) {
  KJ_IF_MAYBE(steps, parseTraceSteps(text)) return traceStepsText(*steps);
  return kj::str("nothing");
}

TEST_CASE("parseTraceSteps: reads both ends, one of them, or a single step") {
  CHECK(parsed("7-99") == "7-99");
  CHECK(parsed("7-") == "7-");
  CHECK(parsed("-99") == "0-99");
  CHECK(parsed("7") == "7-7");
  CHECK(parsed("-") == "0-");
  for (auto wrong: {"", "9-7", "a-7", "7-b", "1-2-3", "9999999999999999"}) {
    CHECK(parsed(wrong) == "nothing");
  }
}

// Two keys, the second one in two slices.
rpc::Placement placement() {
  rpc::Placement result;
  result.slices = kj::arr(rpc::Slice{0, 0, 8, 0}, rpc::Slice{1, 8, 16, 0}, rpc::Slice{1, 24, 4, 0});
  return result;
}

kj::TimePoint at(int64_t ns) {
  return kj::origin<kj::TimePoint>() + ns * kj::NANOSECONDS;
}

kj::Array<nn::Key> keys() {
  auto keys = kj::heapArray<nn::Key>(2);
  keys[0].name = kj::str("bias");
  keys[1].name = kj::str("a \"weight\"");
  return keys;
}

kj::String jsonOf(const rpc::Trace& trace, Role role, kj::Duration ahead) {
  return traceJson(trace, 3, role, 1, placement(), keys(), ahead);
}

TEST_CASE("traceJson: verbs are spans, and a push passes from one span to the next") {
  rpc::Trace trace({});
  trace.compute.add(rpc::TracePoint::BACKWARD, 1, 5, 2, at(1000), at(3005));
  trace.compute.add(rpc::TracePoint::QUEUED, 1, 5, 2, at(3010), at(3010));
  trace.io.add(rpc::TracePoint::SENT, 1, 5, 2, at(4000), at(4000));
  trace.io.add(rpc::TracePoint::RETURNED, 1, 5, 0, at(9000), at(9000));
  CHECK(jsonOf(trace, Role::WORKER, 1 * kj::MICROSECONDS) == R"([
{"ph":"M","name":"process_name","pid":2,"tid":0,"args":{"name":"worker 1"}},
{"ph":"M","name":"process_sort_index","pid":2,"tid":0,"args":{"sort_index":2}},
{"ph":"M","name":"thread_name","pid":2,"tid":3,"args":{"name":"compute"}},
{"ph":"M","name":"thread_name","pid":2,"tid":4,"args":{"name":"io"}},
{"ph":"X","name":"backward","pid":2,"tid":3,"ts":2.000,"dur":2.005,"args":{"worker":1,"step":5,"segment":2}},
{"ph":"b","cat":"slice","id":"0x32","name":"a \"weight\"[1]","pid":2,"tid":4,"ts":4.010,"args":{"worker":1,"step":5,"slice":2}},
{"ph":"b","cat":"slice","id":"0x32","name":"queued","pid":2,"tid":4,"ts":4.010},
{"ph":"e","cat":"slice","id":"0x32","name":"queued","pid":2,"tid":4,"ts":5.000},
{"ph":"b","cat":"slice","id":"0x32","name":"to server","pid":2,"tid":4,"ts":5.000},
{"ph":"e","cat":"slice","id":"0x30","name":"to worker","pid":2,"tid":4,"ts":10.000},
{"ph":"e","cat":"slice","id":"0x30","name":"bias","pid":2,"tid":4,"ts":10.000}
]
)");
}

TEST_CASE("traceJson: says after the last event how many events were dropped") {
  rpc::Trace trace({}, nullptr, 1);
  trace.io.add(rpc::TracePoint::APPLIED, 0, 0, 0, at(2000), at(2000));
  trace.io.add(rpc::TracePoint::ANSWERED, 0, 0, 0, at(2001), at(2001));
  auto json = jsonOf(trace, Role::SERVER, 0 * kj::NANOSECONDS);
  CHECK(contains(json,
      R"({"ph":"i","s":"p","name":"1 later events were dropped","pid":5,"tid":10,"ts":2.000})"));
  CHECK(contains(json, "\"name\":\"answer\""));
  CHECK_FALSE(contains(json, "to worker"));
}

TEST_CASE("writeTrace: does not throw if the folder cannot be written") {
  auto loaded = loadExperiment("configs/fashion_mnist_dist_sync.toml", nullptr);
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  rpc::Trace trace({}, nullptr, 1);
  RoleOptions options{Role::SERVER, 1, kj::str(), {kj::str(::getenv("TEST_TMPDIR"), "/none")}};
  writeTrace(trace, experiment, options, placement(), keys(), 0 * kj::NANOSECONDS);
  CHECK(::access(options.folder.trace("server", 1).cStr(), F_OK) != 0);
}

TEST_CASE("stepsOfPushes: local_sgd pushes at the end of a block, or of an epoch inside a block") {
  auto stepsOf = [](kj::ArrayPtr<const kj::StringPtr> overrides) {
    auto loaded = loadExperiment("configs/fashion_mnist_dist_sync.toml", overrides);
    REQUIRE(loaded.errors == "");
    auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
    ModelFacts facts(experiment);
    return stepsOfPushes(experiment, facts);
  };
  // 60,000 images, two workers: 6 steps per epoch.
  kj::StringPtr local[] = {
      "data.batch_size=5000", "train.epochs=2", "kvstore.mode=local_sgd", "kvstore.local_steps=4"};
  CHECK(kj::str(stepsOf(local)) == "3, 5, 9, 11");
  CHECK(stepsOf({}).size() == 0);
}

TEST_CASE("whyNoTrace: names steps that the run does not make, and paths that cannot be written") {
  auto folder = kj::str(::getenv("TEST_TMPDIR"), "/why");
  KJ_SYSCALL(::mkdir(folder.cStr(), 0777));
  auto why = [](rpc::TraceSteps steps, kj::StringPtr path) {
    return whyNoTrace(steps, 600, path, "--trace FILE").orDefault(kj::str("fine"));
  };
  auto file = kj::str(folder, "/trace.json");
  CHECK(why({599, 700}, file) == "fine");
  CHECK(std::filesystem::is_empty(folder.cStr()));
  CHECK(why({600, 700}, file) ==
        "--trace-steps 600-700 would record nothing: the run makes 600 steps, from 0");
  writeWhole(file, "kept");
  CHECK(why({}, file) == "fine");
  CHECK(readWhole(file, 100) == "kept");
  CHECK(why({}, kj::str(folder, "/none/trace.json")) ==
        kj::str("cannot write the trace ", folder,
            "/none/trace.json: No such file or directory; choose another place with --trace FILE"));
  for (kj::StringPtr special: {folder.asPtr(), "/dev/null"_kj}) {
    CHECK(why({}, special) ==
          kj::str("cannot write the trace ", special,
              ": exists but is not a regular file; choose another place with --trace FILE"));
  }
  auto link = kj::str(folder, "/link.json");
  KJ_SYSCALL(::symlink(file.cStr(), link.cStr()));
  CHECK(why({}, link) != "fine");
}

}  // namespace
}  // namespace runner
