// The logic of tools/gpu/verify.sh, with fake programs: which parts it keeps, which it leaves for
// the next call, which fail, and how it summarizes figures.
#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/command.h"
#include "tests/text.h"

namespace tests {
namespace {

// Each call is recorded in `calls`, and takes `tick` seconds on a fake clock. `fail` holds a
// pattern for the calls that fail.
constexpr kj::StringPtr PRELUDE = R"sh(#!/bin/sh
cd "$MACHINE"
call="$(basename "$0") $*"
[ "$1" = devices ] || {
  echo "$call" >>calls
  echo $(($(cat clock) + $(cat tick))) >clock
}
if [ -s fail ] && echo "$call" | grep -q -e "$(cat fail)"; then
  echo "the GPU fell off" >&2
  exit 1
fi
)sh"_kj;

constexpr kj::StringPtr RUNNER_SCRIPT = R"sh(
if [ "$1" = devices ]; then
  echo "cpu: avx512"
  cat gpu
  exit
fi
case $call in *cuda:0*) accuracy=$(cat accuracy) ;; *) accuracy=0.8 ;; esac
echo "| epoch | train-accuracy | valid-accuracy | time |"
echo "|  1 | 0.100000 | 0.200000 | 0.5 |"
echo "|  2 | 0.300000 | $accuracy | 0.5 |"
case $call in *airbench94*) ;; *) exit ;; esac
# Accuracies alternate with the seed.
seed=${call##*train.seed=}
mkdir -p "$4/cifar10_airbench94/1"
cat >"$4/cifar10_airbench94/1/events.jsonl" <<END
{"time_s":1000.5,"role":"worker","index":0,"validated":{"accuracy":0.1,"last":false,"views":1}}
{"time_s":1002.5,"role":"worker","index":0,"ended":{"step":483,"training_s":2.5}}
{"time_s":1003.0,"role":"worker","index":0,"validated":{"accuracy":0.94$((seed % 2)),"last":true}}
END
exit 3
)sh"_kj;

constexpr kj::StringPtr BENCH_SCRIPT = R"sh(
case $call in
  *" losses "*cuda:0*deterministic*) [ ! -f drifts ] || wc -l <calls; cat losses ;;
  *" losses "*cuda:0*) cat losses ;;
  *" losses "*) echo '{"losses":[2.000000000,1.000000000]}' ;;
  *" train "*) echo '{"images_per_s":123456.789,"steps":3}' ;;
  *" peers "*) echo "{\"row\":\"$2\",\"ours\":300,\"theirs\":200,\"ratio\":1.500,\"how\":\"x\"}" ;;
esac
)sh"_kj;

constexpr kj::StringPtr OPS_SCRIPT = R"sh(
echo '[doctest] test cases:  3 |  3 passed | 0 failed | 9 skipped'
)sh"_kj;

constexpr kj::StringPtr DATE_SCRIPT = R"sh(#!/bin/sh
cat "$(dirname "$0")/../clock"
)sh"_kj;

// A folder as //runner:dist unpacks to, on a machine with a GPU.
class Machine {
public:
  Machine(): root(newFolder()), results(kj::str(root, "/results")) {
    Command copy({"sh", "-c", "mkdir -p \"$1/tools\" \"$1/bin\" && cp -rL tools/gpu \"$1/tools\"",
        "sh", root});
    REQUIRE(copy.wait().exitCode == 0);
    program("runner", kj::str(PRELUDE, RUNNER_SCRIPT));
    program("bench", kj::str(PRELUDE, BENCH_SCRIPT));
    program("check_test", kj::str(PRELUDE, OPS_SCRIPT));
    program("bin/date", DATE_SCRIPT);
    write("gpu", "cuda:0: Some GPU, 1.0 GiB, compute capability 9.0\n");
    write("losses", "{\"losses\":[2.000100000,1.000000000]}\n");
    write("accuracy", "0.805");
    write("fail", "");
    write("tick", "40");
  }

  void write(kj::StringPtr name, kj::StringPtr text) { writeFile(kj::str(root, '/', name), text); }
  void makeFolder(kj::StringPtr name) { ::mkdir(kj::str(root, '/', name).cStr(), 0777); }

  void program(kj::StringPtr name, kj::StringPtr text) {
    write(name, text);
    ::chmod(kj::str(root, '/', name).cStr(), 0755);
  }

  // Moves the programs from where an archive unpacks them to where Bazel builds the real ones.
  void moveToBuildFolder() {
    kj::StringPtr script = R"sh(
for built in $BUILT; do
  mkdir -p "$1/bazel-bin/$(dirname "$built")"
  mv "$1/$(basename "$built")" "$1/bazel-bin/$built" || exit 1
done
)sh";
    Command move({"sh", "-c", script, "sh", root});
    REQUIRE(move.wait().exitCode == 0);
  }

  // A call of verify.sh, with a new clock, and how many calls of other programs it made.
  struct Verified {
    Ended ended;
    size_t calls;
    kj::String json;
  };
  Verified verify(kj::ArrayPtr<const kj::StringPtr> words) {
    write("calls", "");
    write("clock", "1000000");
    kj::Vector<kj::StringPtr> all;
    auto script = kj::str(root, "/tools/gpu/verify.sh");
    all.add(script);
    all.addAll(words);
    all.add(results);
    auto path = kj::str("PATH=", root, "/bin:", ::getenv("PATH"));
    auto datasets = kj::str("RUNNER_DATASETS=", root, "/datasets");
    auto machine = kj::str("MACHINE=", root);
    kj::StringPtr environment[] = {path, datasets, machine, "CUDA_HOME=/none"};
    Command command(all, {.folder = root, .environment = environment});
    auto ended = command.wait();
    size_t calls = 0;
    for (char c: readFile(kj::str(root, "/calls"))) calls += c == '\n';
    auto json = readFile(kj::str(results, '/', words[0], ".json"));
    return {kj::mv(ended), calls, kj::mv(json)};
  }

private:
  kj::String root, results;
};

// Calls one stage until none of its parts is left. Returns how many calls that takes.
uint callsUntilDone(Machine& machine, kj::StringPtr stage, int exitCode) {
  uint calls = 0;
  for (;;) {
    ++calls;
    REQUIRE(calls < 20);
    auto verified = machine.verify({stage});
    INFO(doctest::String(verified.ended.output.cStr()));
    if (verified.ended.exitCode == 5) {
      CHECK(contains(verified.json, "parts are left"));
      continue;
    }
    CHECK(verified.ended.exitCode == exitCode);
    return calls;
  }
}

TEST_CASE(
    "verify.sh: keeps finished parts, reports the parts that are left, and --again repeats all") {
  Machine machine;
  auto first = machine.verify({"train"});
  CHECK(first.ended.exitCode == 5);
  // A part of at most 120 s begins while 30 of the 530 s are left.
  CHECK(first.calls == 13);
  CHECK(contains(
      first.json, "\"mlp-fp32\": {\"images_per_s\":123456.789,\"steps\":3}, \"mlp-tf32\""));
  CHECK(contains(first.json, "\"failed\": {}, \"left\": [\"inception-small-512-tf32\", "));
  CHECK(contains(first.ended.output, "\ninception-small-512     512     123457          -"));
  // The first of these calls does 13 more parts, and the second the last 6 and both trainings.
  machine.makeFolder("datasets");
  machine.makeFolder("datasets/mnist");
  CHECK(callsUntilDone(machine, "train", 0) == 2);
  auto again = machine.verify({"train"});
  CHECK(again.ended.exitCode == 0);
  CHECK(again.calls == 0);
  CHECK(contains(again.json, "\"outcome\": \"passed\""));
  CHECK(contains(again.json, "\"left\": []}"));
  CHECK(machine.verify({"train", "--again"}).calls == 13);
}

TEST_CASE("verify.sh: a part that fails says why, ends the stage with 1, and is repeated") {
  Machine machine;
  machine.write("fail", "lenet.*GPU_NOT_HERE\\|peers lenet-plain");
  int code = 5;
  kj::String json;
  while (code == 5) {
    auto verified = machine.verify({"peers"});
    code = verified.ended.exitCode;
    json = kj::mv(verified.json);
  }
  CHECK(code == 1);
  CHECK(contains(json, "\"lenet-plain\": \"the GPU fell off\""));
  machine.write("fail", "");
  CHECK(callsUntilDone(machine, "peers", 0) >= 1);
  auto done = machine.verify({"peers"});
  CHECK(done.calls == 0);
  CHECK(contains(
      done.ended.output, "\nlenet-plain                             300          200   1.500"));
}

TEST_CASE("verify.sh check: losses may differ by a thousandth, and the ops' GPU cases must run") {
  Machine machine;
  machine.write("tick", "1");
  auto good = machine.verify({"check"});
  CHECK(good.ended.exitCode == 0);
  CHECK(contains(good.json, "\"losses-lenet\": {\"steps\": 2, \"largest_difference\": 5e-05}"));
  CHECK(contains(good.json, "compute-sanitizer is not installed"));
  for (auto losses: {"{\"losses\":[2.0,1.002]}", "{\"losses\":[2.0]}", "{\"losses\":[2.0,nan]}"}) {
    machine.write("losses", losses);
    auto bad = machine.verify({"check", "--again"});
    CHECK(bad.ended.exitCode == 1);
    CHECK(contains(bad.json, "\"losses-mlp\": \"the losses of the GPU differ"));
  }
  machine.write("losses", "{\"losses\":[2.0,1.0]}");
  machine.write("fail", "check_test .*test-case=");
  CHECK(contains(machine.verify({"check", "--again"}).json, "\"ops-gpu\": \"the GPU fell off\""));
}

TEST_CASE("verify.sh check: a deterministic run must have the same losses twice") {
  Machine machine;
  machine.write("tick", "1");
  CHECK(contains(machine.verify({"check"}).json, "\"deterministic\": {\"same\": true}"));
  machine.write("drifts", "");
  auto bad = machine.verify({"check", "--again"});
  CHECK(bad.ended.exitCode == 1);
  CHECK(contains(bad.json, "\"deterministic\": \"the same run gives other losses the second time"));
}

TEST_CASE("verify.sh check: checks memory accesses after a run that has chosen the convolutions") {
  Machine machine;
  machine.write("tick", "1");
  machine.program("bin/compute-sanitizer", R"sh(#!/bin/sh
grep -q 'losses.* --steps=2 .*batch_size=8 .*cuda:0' "$(dirname "$0")/../calls" || exit 9
)sh");
  CHECK(contains(machine.verify({"check"}).json, "{\"outcome\": \"no error\"}"));
}

TEST_CASE("verify.sh train: fails if training on the GPU misses the processor's accuracy") {
  Machine machine;
  machine.write("tick", "1");
  machine.makeFolder("datasets");
  machine.makeFolder("datasets/mnist");
  machine.write("accuracy", "0.85");
  auto bad = machine.verify({"train"});
  CHECK(bad.ended.exitCode == 1);
  CHECK(contains(bad.json, "validation accuracy is 0.8 on the processor, 0.85 on the GPU"));
}

TEST_CASE(
    "verify.sh cifar: averages over ten seeds or more, and ends with 3 without the data set") {
  Machine machine;
  auto none = machine.verify({"cifar"});
  CHECK(none.ended.exitCode == 3);
  CHECK(contains(none.json, "RUNNER_DATASETS must name a folder that holds cifar10"));
  machine.makeFolder("datasets");
  machine.makeFolder("datasets/cifar10");
  auto first = machine.verify({"cifar"});
  // 40 s each: 13 fit. Seven of 0.941, six of 0.940.
  CHECK(first.ended.exitCode == 0);
  CHECK(first.calls == 13);
  CHECK(contains(first.json,
      "\"seed-2\": {\"seed\": 2, \"accuracy\": 0.940, \"training_s\": 2.5000, "
      "\"evaluation_s\": 0.5000}"));
  CHECK(contains(first.ended.output, "13        0.94054    0.00014     3.000     0.000"));
  // Later calls add more seeds to the mean.
  CHECK(contains(machine.verify({"cifar"}).ended.output, "26        0.94050"));
}

TEST_CASE("verify.sh: an unusable GPU does not count, and parts of another machine are refused") {
  Machine machine;
  machine.write("gpu", "cuda:0: Old GPU, 1.0 GiB; cannot be used: too old\n");
  auto old = machine.verify({"check"});
  CHECK(old.ended.exitCode == 4);
  CHECK(contains(old.json, "no GPU: nothing to verify (too old)"));
  machine.write("gpu", "cuda:0: Some GPU\n");
  machine.write("tick", "1");
  CHECK(machine.verify({"check"}).ended.exitCode == 0);
  machine.write("gpu", "cuda:0: Other GPU\n");
  auto other = machine.verify({"check"});
  CHECK(other.ended.exitCode == 2);
  CHECK(contains(other.ended.errors, "is from another machine"));
  CHECK(machine.verify({"check", "--again"}).ended.exitCode == 0);
}

TEST_CASE("verify.sh: finds the programs where Bazel has built them") {
  Machine machine;
  machine.write("tick", "1");
  machine.moveToBuildFolder();
  auto verified = machine.verify({"check"});
  INFO(doctest::String(verified.ended.errors.cStr()));
  CHECK(verified.ended.exitCode == 0);
}

}  // namespace
}  // namespace tests
