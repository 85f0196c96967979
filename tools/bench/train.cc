#include "tools/bench/train.h"

#include <kj/debug.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>

#include "nn/cpu/cpu.h"
#include "runner/text/numbers.h"
#include "tools/bench/columns.h"
#include "tools/bench/ops.h"

namespace tools {
namespace {

constexpr uint WARM_UP_STEPS = 3;
// The least number of steps for a median.
constexpr uint STEPS_MIN = 3;
// The longest time for the table of ops, apart from a few steps.
constexpr double TABLE_S = 5;

using NextBatch = kj::Function<const io::Batch&()>;

// When a measurement ends.
struct Amount {
  uint steps;
  uint seconds;  // 0: after `steps` steps

  bool isEnough(uint done, double passed_s) const {
    return seconds > 0 ? done >= STEPS_MIN && passed_s >= seconds : done >= steps;
  }
};

// The measurements of some steps.
struct Measured {
  uint steps;
  double best_s;
  double median_s;
  double mean_s;
  double cpu_s;             // of all threads, mean
  runner::VerbTimes verbs;  // the median of each verb
};

double cpuSeconds() {
  timespec now;
  KJ_SYSCALL(::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now));
  return now.tv_sec + now.tv_nsec * 1e-9;
}

uint64_t peakBytes() {
  rusage usage;
  KJ_SYSCALL(::getrusage(RUSAGE_SELF, &usage));
  return uint64_t(usage.ru_maxrss) * 1024;
}

void warmUp(Training& training, NextBatch& next) {
  runner::VerbTimes verbs;
  for (uint i = 0; i < WARM_UP_STEPS; i++) training.step(next(), verbs);
}

constexpr double runner::VerbTimes::*VERBS[] = {&runner::VerbTimes::read_s,
    &runner::VerbTimes::forward_s, &runner::VerbTimes::backward_s, &runner::VerbTimes::push_s,
    &runner::VerbTimes::pull_s};

runner::VerbTimes medianOf(kj::ArrayPtr<const runner::VerbTimes> steps) {
  runner::VerbTimes medians;
  auto times = kj::heapArray<double>(steps.size());
  for (auto verb: VERBS) {
    for (size_t i: kj::indices(steps)) times[i] = steps[i].*verb;
    std::sort(times.begin(), times.end());
    medians.*verb = times[times.size() / 2];
  }
  return medians;
}

Measured measure(Training& training, NextBatch& next, Amount amount) {
  warmUp(training, next);
  Measured measured{};
  kj::Vector<runner::VerbTimes> verbs;
  kj::Vector<double> times;
  double cpuBefore_s = cpuSeconds();
  runner::Stopwatch whole;
  while (!amount.isEnough(times.size(), whole.elapsed_s())) {
    runner::Stopwatch step, read;
    auto& batch = next();
    auto& taken = verbs.add(runner::VerbTimes{});
    read.chargeTo(taken.read_s);
    training.step(batch, taken);
    times.add(step.elapsed_s());
  }
  uint steps = times.size();
  measured.cpu_s = (cpuSeconds() - cpuBefore_s) / steps;
  for (double time: times) measured.mean_s += time / steps;
  measured.verbs = medianOf(verbs);
  std::sort(times.begin(), times.end());
  measured.steps = steps;
  measured.best_s = times[0];
  measured.median_s = times[steps / 2];
  return measured;
}

// Returns the FLOPs of a step. A backward pass counts as two forward passes, or as one for a layer
// without trained layers below it.
double flopsOf(const nn::Graph& graph, uint images) {
  double flops = 0;
  auto inputTrains = inputsThatTrain(graph);
  for (nn::NodeId n: kj::indices(graph.nodes)) {
    auto& node = graph.nodes[n];
    auto inputs = KJ_MAP(input, node.inputs) {
      return graph.nodes[input].shape;
    };
    flops += (inputTrains[n] ? 3.0 : 2.0) * nn::forwardFlops(node.op, inputs) * images;
  }
  return flops;
}

kj::String milliseconds(double seconds) {
  return kj::str(runner::fixedPoint(seconds * 1e3, 2), " ms");
}

kj::String megabytes(double bytes) {
  return kj::str(runner::fixedPoint(bytes / 1e6, 0), " MB");
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
  auto number = [](double value) { return runner::fixedPoint(value, 6); };
  auto& experiment = report.experiment;
  auto& seen = report.synthetic;
  kj::String data;
  KJ_IF_MAYBE(measured, report.data) {
    data = kj::str(",\"data_images_per_s\":", number(report.rate(measured->median_s)),
        ",\"data_read_s\":", number(measured->verbs.read_s));
  }
  return kj::str("{\"images_per_s\":", number(report.rate(seen.median_s)), data,
      ",\"step_s_median\":", number(seen.median_s), ",\"step_s_best\":", number(seen.best_s),
      ",\"step_cpu_s\":", number(seen.cpu_s), ",\"steps\":", seen.steps,
      ",\"batch\":", experiment.data.batchSize,
      ",\"threads\":", experiment.cluster.threadsPerWorker, ",\"precision\":\"",
      runner::wordOf(experiment.train.precision), "\",\"instruction_set\":\"", nn::instructionSet(),
      "\",\"devices\":\"", kj::strArray(experiment.cluster.devices, " "), "\",\"checked\":\"",
      report.checked, "\",\"read_s\":", number(seen.verbs.read_s),
      ",\"forward_s\":", number(seen.verbs.forward_s),
      ",\"backward_s\":", number(seen.verbs.backward_s), ",\"push_s\":", number(seen.verbs.push_s),
      ",\"pull_s\":", number(seen.verbs.pull_s),
      ",\"gflop_per_s\":", number(report.flops / seen.median_s / 1e9),
      ",\"program_bytes\":", report.program_bytes, ",\"peak_bytes\":", report.peak_bytes, "}\n");
}

kj::String textOf(const Report& report) {
  auto& experiment = report.experiment;
  auto& seen = report.synthetic;
  auto rate = [&](double step_s) { return runner::fixedPoint(report.rate(step_s), 0); };
  auto verbs = [](const runner::VerbTimes& verbs) {
    return kj::str("read ", milliseconds(verbs.read_s), ", forward ", milliseconds(verbs.forward_s),
        ", backward ", milliseconds(verbs.backward_s), ", push ", milliseconds(verbs.push_s),
        ", pull ", milliseconds(verbs.pull_s), "\n");
  };
  kj::String data;
  KJ_IF_MAYBE(measured, report.data) {
    data = kj::str("data     images/s median ", rate(measured->median_s), ", best ",
        rate(measured->best_s), "; ", verbs(measured->verbs));
  }
  return kj::str(experiment.name, ": batch ", experiment.data.batchSize, ", ",
      runner::counted(experiment.cluster.threadsPerWorker, "thread"), ", ",
      kj::strArray(experiment.cluster.devices, " "), ", ", nn::instructionSet(), ", ",
      runner::wordOf(experiment.train.precision), ", ", runner::counted(seen.steps, "step"), "; ",
      report.checked, "\n", "step     median ", milliseconds(seen.median_s), ", best ",
      milliseconds(seen.best_s), ", cpu ", milliseconds(seen.cpu_s), "\n", "images/s median ",
      rate(seen.median_s), ", best ", rate(seen.best_s), "; ",
      runner::fixedPoint(report.flops / seen.median_s / 1e9, 0), " GFLOP/s\n", "verbs    ",
      verbs(seen.verbs), data, "memory   program ", megabytes(report.program_bytes), ", process ",
      megabytes(report.peak_bytes), " at most\n");
}

// The steps of this table are timed separately, because their program reads the clock between its
// tasks.
kj::String opsText(
    const runner::Experiment& experiment, AssumedImages assumed, bool byOp, double step_s) {
  nn::Profile profile;
  Training training(experiment, profile, assumed);
  SyntheticBatch batch(training.graph(), experiment.data.batchSize);
  NextBatch next = [&]() -> const io::Batch& { return batch.get(); };
  warmUp(training, next);
  profile.clear();
  uint steps = kj::max(STEPS_MIN, uint(kj::min(TABLE_S / step_s, 200.0)));
  runner::VerbTimes verbs;
  runner::Stopwatch watch;
  for (uint i = 0; i < steps; i++) training.step(next(), verbs);
  double mean_s = watch.elapsed_s() / steps;

  uint threads = experiment.cluster.threadsPerWorker * experiment.cluster.devices.size();
  auto peaks = measurePeaks(threads, nn::instructionSet());
  bool isBf16 = experiment.train.precision == nn::Precision::BF16;
  auto costs = opCosts(training.graph(), profile, experiment.data.batchSize, steps, isBf16 ? 2 : 4);
  auto number = [](double value) { return runner::fixedPoint(value / 1e9, 0); };
  auto rows = byOp ? costs.asPtr() : nullptr;
  auto kinds = byKind(costs);
  if (!byOp) rows = kinds;
  auto bf16 = peaks.bf16_flops > 0 ? kj::str(number(peaks.bf16_flops), " in bf16, ") : kj::str("");
  return kj::str("peaks    fma ", number(peaks.fp32_flops), " GFLOP/s, ", bf16, "copy ",
      number(peaks.copy_bytes), " GB/s (", runner::counted(threads, "thread"), ")\n\n",
      inColumns(
          opTable(rows, mean_s, isBf16 ? peaks.bf16_flops : peaks.fp32_flops, peaks.copy_bytes),
          3));
}

}  // namespace

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
  addArguments(builder, "steps to time, after three that are not timed (default: 20)");
  auto setTable = [this](Table value) {
    return [this, value]() -> kj::MainBuilder::Validity {
      if (table.orDefault(value) != value)
        return kj::str("--ops and --no-ops cannot both be given");
      table = value;
      return true;
    };
  };
  auto set = [](bool& flag, bool value) {
    return [&flag, value]() {
      flag = value;
      return true;
    };
  };
  return builder
      .addOptionWithArg({"seconds"}, numberSetter(seconds), "S",
          "times steps for this many seconds instead of a number of steps")
      .addOptionWithArg({"classes"}, numberSetter(assumed.classes), "N",
          "works without the data set: images are as large as the crop, in N classes")
      .addOptionWithArg(
          {"colours"}, numberSetter(assumed.colours), "N", "channels of these images (default: 3)")
      .addOption({"data"}, set(data, true),
          "also times steps on the experiment's own records, read as a worker reads them")
      .addOption(
          {"ops"}, setTable(Table::BY_OP), "prints a table of every op instead of kinds of ops")
      .addOption({"no-ops"}, setTable(Table::NONE), "prints no table of ops")
      .addOption({"no-check"}, set(checks, false),
          "skips the comparison with the reference implementation, which takes memory")
      .addOption({"json"}, set(json, true), "prints one line of JSON instead of tables")
      .callAfterParsing(KJ_BIND_METHOD(*this, run))
      .build();
}

kj::MainBuilder::Validity BenchTrain::run() {
  auto loaded = load();
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  if (json && table != nullptr)
    return kj::str("--json prints no table. Leave out --ops and --no-ops");
  if (data && assumed.classes > 0)
    return kj::str("--data reads the data set, but --classes works without it");
  kj::Maybe<Report> made;
  {
    Training training(experiment, nullptr, assumed);
    SyntheticBatch synthetic(training.graph(), experiment.data.batchSize);
    auto checked = checks ? training.check(synthetic.get()) : kj::str("not checked");
    NextBatch next = [&]() -> const io::Batch& { return synthetic.get(); };
    auto measured = measure(training, next, {steps, seconds});
    kj::Maybe<Measured> withData;
    if (data) {
      auto dataset = io::openDataset(experiment.data, [](kj::StringPtr, uint64_t, uint64_t) {});
      auto batcher =
          io::Batcher::training(*dataset, experiment.data, experiment.train.seed, 1, 0, 0);
      NextBatch read = [&]() -> const io::Batch& {
        return KJ_ASSERT_NONNULL(batcher->next(), "the training stream has no end");
      };
      withData = measure(training, read, {steps, seconds});
    }
    made = Report{.experiment = experiment,
        .checked = kj::mv(checked),
        .synthetic = measured,
        .data = withData,
        .flops = flopsOf(training.graph(), experiment.data.batchSize),
        .program_bytes = training.memory_bytes(),
        .peak_bytes = peakBytes()};
  }
  auto& report = KJ_ASSERT_NONNULL(made);
  if (json) {
    runner::print(jsonOf(report));
    return true;
  }
  runner::print(textOf(report));
  auto wanted = table.orDefault(Table::BY_KIND);
  if (wanted != Table::NONE) {
    runner::print(opsText(experiment, assumed, wanted == Table::BY_OP, report.synthetic.mean_s));
  }
  return true;
}

}  // namespace tools
