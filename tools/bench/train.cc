// `bench train`: measures the training steps of a file's network.
#include <kj/debug.h>
#include <sys/resource.h>

#include "nn/cpu/cpu.h"
#include "runner/text/numbers.h"
#include "tools/bench/benches.h"
#include "tools/bench/figures.h"
#include "tools/bench/ops.h"
#include "tools/bench/peaks.h"
#include "tools/bench/training.h"

namespace tools {
namespace {

constexpr uint WARM_UP_STEPS = 3;
// The least number of steps for a median.
constexpr uint STEPS_MIN = 3;
// The longest time for the table of ops, apart from a few steps.
constexpr double TABLE_S = 5;

using runner::fixedPoint;
using SetBatch = kj::Function<void()>;

struct Verb {
  kj::StringPtr name;
  double runner::VerbTimes::*time_s;
};

constexpr Verb VERBS[] = {{"read"_kj, &runner::VerbTimes::read_s},
    {"forward"_kj, &runner::VerbTimes::forward_s}, {"backward"_kj, &runner::VerbTimes::backward_s},
    {"push"_kj, &runner::VerbTimes::push_s}, {"pull"_kj, &runner::VerbTimes::pull_s}};

// The measurements of some steps.
struct Measured {
  uint steps;
  double best_s;
  double median_s;
  double mean_s;
  double cpu_s;             // of all threads, mean
  runner::VerbTimes verbs;  // the median of each verb
};

uint64_t peakBytes() {
  rusage usage;
  KJ_SYSCALL(::getrusage(RUSAGE_SELF, &usage));
  return uint64_t(usage.ru_maxrss) * 1024;
}

void warmUp(Training& training, SetBatch& set) {
  runner::VerbTimes verbs;
  for (uint i = 0; i < WARM_UP_STEPS; i++) {
    set();
    training.step(verbs);
  }
}

// Times `steps` steps. If `seconds` is not 0, times steps for this time, and at least STEPS_MIN.
Measured measure(Training& training, SetBatch set, uint steps, uint seconds) {
  warmUp(training, set);
  kj::Vector<runner::VerbTimes> verbs;
  kj::Vector<double> times;
  auto isEnough = [&](double passed_s) {
    return seconds > 0 ? times.size() >= STEPS_MIN && passed_s >= seconds : times.size() >= steps;
  };
  double cpuBefore_s = processSeconds();
  Measured measured{};
  measured.best_s = kj::inf();
  runner::Stopwatch whole;
  while (!isEnough(whole.elapsed_s())) {
    runner::Stopwatch step, read;
    set();
    auto& taken = verbs.add(runner::VerbTimes{});
    read.chargeTo(taken.read_s);
    training.step(taken);
    times.add(step.elapsed_s());
    measured.mean_s += times.back();
    measured.best_s = kj::min(measured.best_s, times.back());
  }
  measured.steps = times.size();
  measured.cpu_s = (processSeconds() - cpuBefore_s) / measured.steps;
  measured.mean_s /= measured.steps;
  measured.median_s = medianOf(times);
  for (auto& verb: VERBS) {
    measured.verbs.*verb.time_s = medianOf(KJ_MAP(taken, verbs) { return taken.*verb.time_s; });
  }
  return measured;
}

nn::Precision precisionUsed(nn::Precision asked) {
  return asked == nn::Precision::AUTO ? nn::automaticPrecision(nn::instructionSet()) : asked;
}

kj::String milliseconds(double seconds) {
  return kj::str(fixedPoint(seconds * 1e3, 2), " ms");
}

kj::String megabytes(double bytes) {
  return kj::str(fixedPoint(bytes / 1e6, 0), " MB");
}

// All results of the bench.
struct Report {
  const runner::Experiment& experiment;
  kj::String checked;
  Measured synthetic;
  kj::Maybe<Measured> data;
  double flops;  // per step
  uint64_t program_bytes;
  uint64_t peak_bytes;

  double rate(double step_s) const { return experiment.data.batchSize / step_s; }
};

kj::String jsonOf(const Report& report) {
  auto& experiment = report.experiment;
  auto& seen = report.synthetic;
  Json json;
  auto add = [&](kj::StringPtr key, double value) { json.add(key, fixedPoint(value, 6)); };
  add("images_per_s", report.rate(seen.median_s));
  KJ_IF_MAYBE(measured, report.data) {
    add("data_images_per_s", report.rate(measured->median_s));
    add("data_read_s", measured->verbs.read_s);
  }
  add("step_s_median", seen.median_s);
  add("step_s_best", seen.best_s);
  add("step_cpu_s", seen.cpu_s);
  json.add("steps", seen.steps);
  json.add("batch", experiment.data.batchSize);
  json.add("threads", experiment.cluster.threadsPerWorker);
  json.addText("precision", runner::wordOf(precisionUsed(experiment.train.precision)));
  json.addText("instruction_set", nn::instructionSet());
  json.addText("devices", kj::strArray(experiment.cluster.devices, " "));
  json.addText("checked", report.checked);
  for (auto& verb: VERBS) add(kj::str(verb.name, "_s"), seen.verbs.*verb.time_s);
  add("gflop_per_s", report.flops / seen.median_s / 1e9);
  json.add("program_bytes", report.program_bytes);
  json.add("peak_bytes", report.peak_bytes);
  return kj::str(json.object(), "\n");
}

kj::String textOf(const Report& report) {
  auto& experiment = report.experiment;
  auto& seen = report.synthetic;
  // Rates and verbs of one measurement.
  auto line = [&](const Measured& measured, kj::String rest) {
    auto verbs = KJ_MAP(verb, VERBS) {
      return kj::str(verb.name, ' ', milliseconds(measured.verbs.*verb.time_s));
    };
    return kj::str("images/s median ", fixedPoint(report.rate(measured.median_s), 0), ", best ",
        fixedPoint(report.rate(measured.best_s), 0), "; ", rest, kj::strArray(verbs, ", "), "\n");
  };
  kj::String data;
  KJ_IF_MAYBE(measured, report.data) data = kj::str("data     ", line(*measured, nullptr));
  return kj::str(experiment.name, ": batch ", experiment.data.batchSize, ", ",
      runner::counted(experiment.cluster.threadsPerWorker, "thread"), ", ",
      kj::strArray(experiment.cluster.devices, " "), ", ", nn::instructionSet(), ", ",
      runner::wordOf(precisionUsed(experiment.train.precision)), ", ",
      runner::counted(seen.steps, "step"), "; ", report.checked, "\n", "step     median ",
      milliseconds(seen.median_s), ", best ", milliseconds(seen.best_s), ", cpu ",
      milliseconds(seen.cpu_s), "\n",
      line(seen, kj::str(fixedPoint(report.flops / seen.median_s / 1e9, 0), " GFLOP/s\nverbs    ")),
      data, "memory   program ", megabytes(report.program_bytes), ", process ",
      megabytes(report.peak_bytes), " at most\n");
}

// The steps of this table are timed separately, because their program reads the clock between its
// tasks.
kj::String opsText(
    const runner::Experiment& experiment, AssumedImages assumed, bool byOp, double step_s) {
  nn::Profile profile;
  Training training(experiment, profile, assumed);
  SyntheticBatch batch(training.program(), training.graph(), experiment.data.batchSize);
  SetBatch set = [&]() { batch.set(); };
  warmUp(training, set);
  profile.clear();
  uint steps = kj::max(STEPS_MIN, uint(kj::min(TABLE_S / step_s, 200.0)));
  runner::VerbTimes verbs;
  runner::Stopwatch watch;
  for (uint i = 0; i < steps; i++) {
    set();
    training.step(verbs);
  }
  double mean_s = watch.elapsed_s() / steps;

  uint threads = experiment.cluster.threadsPerWorker * experiment.cluster.devices.size();
  auto peaks = measurePeaks(threads, nn::instructionSet());
  bool isBf16 = precisionUsed(experiment.train.precision) == nn::Precision::BF16;
  auto costs = opCosts(training.graph(), profile, experiment.data.batchSize, steps, isBf16 ? 2 : 4);
  if (!byOp) costs = byKind(costs);
  auto number = [](double value) { return fixedPoint(value / 1e9, 0); };
  auto bf16 = peaks.bf16_flops > 0 ? kj::str(number(peaks.bf16_flops), " in bf16, ") : kj::str();
  auto amx = peaks.amx_flops > 0 ? kj::str(number(peaks.amx_flops), " with AMX, ") : kj::str();
  double fma_flops = isBf16 ? kj::max(peaks.bf16_flops, peaks.amx_flops) : peaks.fp32_flops;
  return kj::str("peaks    fma ", number(peaks.fp32_flops), " GFLOP/s, ", bf16, amx, "copy ",
      number(peaks.copy_bytes), " GB/s (", runner::counted(threads, "thread"), ")\n\n",
      inColumns(opTable(costs, mean_s, fma_flops, peaks.copy_bytes), 3));
}

class BenchTrain: private TrainingCommand {
public:
  using TrainingCommand::TrainingCommand;

  kj::MainFunc getMain();

private:
  Validity run();

  bool byOp = false;  // one row per op instead of per kind of ops
  bool hasTable = true;
  uint seconds = 0;  // the length of the measurement; 0: it is given by steps
  bool json = false;
  bool checks = true;
};

kj::MainFunc BenchTrain::getMain() {
  kj::MainBuilder builder(commandLine, "bench",
      "Times training steps of CONFIG's network in one worker without servers, on a synthetic "
      "batch that is in memory already. The worker calls the store directly. First, the logits and "
      "gradients of one or two images are compared with the reference implementation. Below the "
      "figures, a table shows what the ops took, measured in separate steps: the mean time over "
      "threads, the operations and bytes per second (each value touched once), and their share of "
      "this machine's peak, measured in the same call. Figures above 100 % are possible, because "
      "caches are faster than memory, and some algorithms need fewer operations than the formula.\n"
      "\n"
      "  bench train configs/cifar10_local.toml --set cluster.threads_per_worker=1\n"
      "  bench train configs/cifar10_local.toml --ops --data\n"
      "  bench train configs/fashion_mnist_dist_sync.toml --steps 100 --json");
  addArguments(builder, "steps to time, after three that are not timed (default: 20)",
      "also times steps on the experiment's own records, read as a worker reads them");
  return builder
      .addOptionWithArg({"seconds"}, numberSetter(seconds), "S",
          "times steps for this many seconds instead of a number of steps")
      .addOption({"ops"}, flagSetter(byOp), "prints a table of every op instead of kinds of ops")
      .addOption({"no-ops"}, flagSetter(hasTable, false), "prints no table of ops")
      .addOption({"no-check"}, flagSetter(checks, false),
          "skips the comparison with the reference implementation, which takes memory")
      .addOption({"json"}, flagSetter(json), "prints one line of JSON instead of tables")
      .callAfterParsing(KJ_BIND_METHOD(*this, run))
      .build();
}

Validity BenchTrain::run() {
  if (byOp && !hasTable) return kj::str("--ops and --no-ops cannot both be given");
  if (json && (byOp || !hasTable))
    return kj::str("--json prints no table. Leave out --ops and --no-ops");
  auto loaded = load();
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  double step_s;
  {
    Training training(experiment, nullptr, assumed);
    SyntheticBatch batch(training.program(), training.graph(), experiment.data.batchSize);
    Report report{.experiment = experiment,
        .checked = checks ? training.check(batch) : kj::str("not checked"),
        .synthetic = measure(
            training, [&]() { batch.set(); }, steps, seconds)};
    if (data) {
      // Another program, because one takes only one form of batches.
      Training onRecords(experiment, nullptr, assumed);
      RecordBatches records(onRecords.program(), experiment);
      report.data = measure(
          onRecords, [&]() { records.set(); }, steps, seconds);
    }
    for (auto& node: flopsOf(training.graph())) {
      report.flops += (node.forward + node.backward) * experiment.data.batchSize;
    }
    report.program_bytes = training.program().memory_bytes();
    report.peak_bytes = peakBytes();
    runner::print(json ? jsonOf(report) : textOf(report));
    step_s = report.synthetic.mean_s;
  }
  if (!json && hasTable) runner::print(opsText(experiment, assumed, byOp, step_s));
  return true;
}

}  // namespace

kj::MainFunc benchTrain(runner::CommandLine& commandLine) {
  return mainOf<BenchTrain>(commandLine);
}

}  // namespace tools
