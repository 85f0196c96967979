// `bench codec`: measures the cost of encoding and decoding, per value.
#include <kj/debug.h>
#include <kj/function.h>
#include <math.h>

#include "configs/language/document.h"
#include "configs/language/failure.h"
#include "configs/language/random.h"
#include "configs/language/reader.h"
#include "rpc/codec/codec.h"
#include "rpc/codec/loops.h"
#include "rpc/wire/payload.h"
#include "runner/text/numbers.h"
#include "tools/bench/benches.h"
#include "tools/bench/command.h"
#include "tools/bench/figures.h"

namespace tools {
namespace {

using rpc::codec::Codec;
using rpc::codec::Number;
using runner::fixedPoint;

constexpr uint GRADIENTS = 8;  // how many are used in turn
constexpr uint ROUNDS = 9;     // the best one counts
constexpr double ROUND_S = 0.05;

struct Row {
  kj::String name;
  kj::String keys;  // of [kvstore]
};

// Returns the halves, then every compression, with its default keys or with keys that make its
// figures meaningful.
kj::Array<Row> rows() {
  kj::Vector<Row> rows;
  for (auto wire: {"float16"_kj, "bfloat16"_kj}) {
    rows.add(Row{kj::str(wire), kj::str("wire = '", wire, "'")});
  }
  for (auto kind: rpc::codec::compressionKinds()) {
    auto add = [&](kj::StringPtr name, kj::StringPtr keys, kj::StringPtr wire = "") {
      rows.add(Row{
          kj::str(kind, name), kj::str("compression = { kind = '", kind, "'", keys, " }", wire)});
    };
    if (kind == "none") continue;
    if (kind == "2bit") {
      // A few per cent of the gathered values reach this threshold in a step.
      add("", ", threshold = 8");
    } else if (kind == "topk") {
      add(" 99 %", ", sparsity = 0.99, momentum = 0.9");
      add(" 99.9 %", ", sparsity = 0.999, momentum = 0.9");
      add(" 99 %, float16", ", sparsity = 0.99, momentum = 0.9", "\nwire = 'float16'");
    } else {
      add("", "");
    }
  }
  return rows.releaseAsArray();
}

Codec codecOf(kj::StringPtr keys) {
  configs::Diagnostics diagnostics;
  auto document = configs::parse("kvstore.toml", keys, diagnostics);
  configs::Reading reading{diagnostics, {}};
  auto codec = configs::readDocument(*document, reading, Codec::read);
  KJ_ASSERT(diagnostics.count() == 0, keys);
  return codec;
}

// Returns the processor time of this thread in the best of several rounds.
double secondsOf(kj::FunctionParam<void()> work) {
  double best = kj::inf();
  for (uint round = 0; round < ROUNDS; round++) {
    double begin = threadSeconds(), end = begin;
    uint64_t count = 0;
    for (; end - begin < ROUND_S; end = threadSeconds()) {
      for (uint i = 0; i < 16; i++) work();
      count += 16;
    }
    best = kj::min(best, (end - begin) / double(count));
  }
  return best;
}

// Returns gradients of one worker, of `values` values each, about normal with deviation 1.
kj::Array<kj::Array<float>> gradientsOf(uint worker, uint values) {
  configs::Random random(worker, configs::Purpose::INITIAL_VALUES);
  return KJ_MAP(i, kj::zeroTo(GRADIENTS)) {
    auto gradient = kj::heapArray<float>(values);
    for (auto& value: gradient) value = random.normal();
    return gradient;
  };
}

struct Times {
  double encode_s, add_s, encodeSum_s, decodeSum_s;
  double pushBytes, sumBytes;
};

Times measure(const Codec& codec, uint values, uint workers) {
  rpc::Placement placement;
  placement.slices = kj::heapArray<rpc::Slice>({{0, 0, values, 0}});
  auto pushes = codec.pushes();
  auto sum = kj::heapArray<float>(values), decoded = kj::heapArray<float>(values);
  for (auto& value: sum) value = 0;
  Times times{};
  // Each worker first makes this many steps, so that its residuals are as in the middle of a run.
  // Only the last worker is timed.
  constexpr uint64_t STEPS_BEFORE = 64;
  for (uint worker = 0; worker < workers; worker++) {
    auto gradients = gradientsOf(worker, values);
    rpc::PushEncoder encoder(codec, placement, workers);
    uint64_t step = 0;
    auto encode = [&]() {
      auto& gradient = gradients[step % GRADIENTS];
      return encoder.encode(0, step++, gradient.asPtr());
    };
    while (step < STEPS_BEFORE) encode();
    auto payload = encode();
    pushes.check(payload, values);
    pushes.add(payload, sum);
    if (worker + 1 < workers) continue;
    times.pushBytes = double(payload.size());
    times.encode_s = secondsOf([&]() { encode(); });
    payload = encode();
    times.add_s = secondsOf([&]() {
      pushes.check(payload, values);
      pushes.add(payload, decoded);
    });
  }
  Codec summed = codec;
  summed.answersSums = true;
  auto answers = summed.answers(workers);
  rpc::codec::Encoder encoder;
  rpc::codec::Buffer buffer;
  auto payload = encoder.encode(answers, sum, buffer);
  times.sumBytes = double(payload.size());
  times.encodeSum_s = secondsOf([&]() { encoder.encode(answers, sum, buffer); });
  times.decodeSum_s = secondsOf([&]() {
    answers.check(payload, values);
    answers.decode(payload, decoded);
  });
  bool exact = codec.wire == Number::FLOAT32;
  for (auto i: kj::indices(sum)) {
    double error = fabs(double(sum[i]) - double(decoded[i]));
    if (error > (exact ? 0 : 0.01 * fabs(double(sum[i])))) {
      configs::fail("a sum that was encoded is ", decoded[i], " instead of ", sum[i]);
    }
  }
  return times;
}

class BenchCodec {
public:
  explicit BenchCodec(runner::CommandLine& commandLine): commandLine(commandLine) {}

  kj::MainFunc getMain();

private:
  Validity run();

  runner::CommandLine& commandLine;
  uint values = 65536;
  uint workers = 4;
};

kj::MainFunc BenchCodec::getMain() {
  return kj::MainBuilder(commandLine, "bench",
      "Times what a worker does with a slice before it pushes the slice, and what a server does "
      "with each push and with the sum. Runs on one thread, with data in cache. GB/s count float32 "
      "values.")
      .addOptionWithArg({"values"}, numberSetter(values), "N", "values per slice (default: 65536)")
      .addOptionWithArg({"workers"}, numberSetter(workers), "N", "pushes per sum (default: 4)")
      .callAfterParsing(KJ_BIND_METHOD(*this, run))
      .build();
}

Validity BenchCodec::run() {
  auto time = [&](double seconds) {
    double ns = 1e9 * seconds / values;
    return kj::str(fixedPoint(ns, 2), " ns, ", fixedPoint(sizeof(float) / ns, 1), " GB/s");
  };
  auto bits = [&](double bytes) { return fixedPoint(8 * bytes / values, 2); };
  auto measured = KJ_MAP(row, rows()) {
    auto times = measure(codecOf(row.keys), values, workers);
    return cells(row.name, bits(times.pushBytes), time(times.encode_s), time(times.add_s),
        bits(times.sumBytes), time(times.encodeSum_s), time(times.decodeSum_s));
  };
  auto header = cells(
      "", "bits pushed", "encode", "check, add", "bits of the sum", "encode sum", "decode sum");
  runner::print(kj::str(values, " values, ", workers, " workers, ", rpc::codec::loops().name,
      "; figures are per value\n", inColumns({kj::mv(header), kj::mv(measured), nullptr}, 1)));
  return true;
}

}  // namespace

kj::MainFunc benchCodec(runner::CommandLine& commandLine) {
  return mainOf<BenchCodec>(commandLine);
}

}  // namespace tools
