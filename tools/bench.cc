// tools/bench.cc: measures; each bench is a sub-command that first checks its result.
#include <kj/debug.h>
#include <kj/main.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>

#include "configs/language/failure.h"
#include "configs/language/random.h"
#include "nn/cpu/cpu.h"
#include "nn/reference/reference.h"
#include "rpc/kv_store.h"
#include "runner/command_line.h"
#include "runner/experiment.h"
#include "runner/log_lines.h"
#include "runner/model_facts.h"
#include "runner/store_updater.h"
#include "runner/verb_times.h"

namespace tools {
namespace {

using kj::uint;

// Rows of the batch that the oracle computes too: its loops are naive.
constexpr uint CHECKED_IMAGES = 2;
// Largest difference of a logit, relative to the largest logit. float32 through a deep network.
constexpr double TOLERANCE = 1e-3;
constexpr uint WARM_UP_STEPS = 3;

double cpuSeconds() {
  timespec now;
  KJ_SYSCALL(::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now));
  return now.tv_sec + now.tv_nsec * 1e-9;
}

// Images and labels that no data set has, already in memory.
struct SyntheticBatch {
  kj::Array<float> pixels;
  kj::Array<int32_t> labels;
  kj::Array<uint64_t> draws;

  SyntheticBatch(const nn::Graph& graph, uint images)
      : pixels(kj::heapArray<float>(images * graph.inputShape().size())),
        labels(kj::heapArray<int32_t>(images)),
        draws(kj::heapArray<uint64_t>(images)) {
    configs::Random random(1, configs::Purpose::INITIAL_VALUES);
    for (auto& pixel: pixels) pixel = random.normal();
    for (auto& label: labels) label = random.below(graph.classes);
    for (auto& number: draws) number = random.next();
  }
};

// What was seen of some steps.
struct Measured {
  double best_s;
  double median_s;
  double cpu_s;             // of all threads, mean
  runner::VerbTimes verbs;  // sums
  uint steps;
};

// One worker without servers: the program, and the shard called directly.
class Training {
public:
  explicit Training(const runner::Experiment& experiment)
      : experiment(experiment),
        facts(experiment),
        placement(rpc::place(runner::storeKeys(facts.graph), experiment.kvstore.slice_bytes, 1,
            *experiment.kvstore.placement)),
        updater(experiment, facts.graph, facts.trainingRecords),
        batch(facts.graph, experiment.data.batchSize),
        program(runner::programOf(experiment, facts.graph)),
        store(rpc::newLocalStore(placement, modeWithoutServers(), updater, program->parameters(),
            program->gradients())) {
    nn::initialize(facts.graph, experiment.model.initializer, experiment.train.seed,
        program->parameters(), program->statistics());
    store->initialize();
  }

  const nn::Graph& graph() const { return facts.graph; }
  uint64_t memory_bytes() const { return program->memory_bytes(); }

  // Compares the first rows' logits with those of the oracle; validation rows do not see each
  // other.
  void check() {
    auto images = kj::min(CHECKED_IMAGES, experiment.data.batchSize);
    auto oracle = lower(nn::REFERENCE, images);
    copy(program->parameters(), oracle->parameters());
    copy(program->statistics(), oracle->statistics());
    oracle->setBatch(batch.pixels.slice(0, images * graph().inputShape().size()),
        batch.labels.slice(0, images), nullptr);
    program->setBatch(batch.pixels, batch.labels, nullptr);
    for (uint s = 0; s < graph().segments.size(); s++) {
      oracle->forward(nn::Phase::VALIDATE, s);
      program->forward(nn::Phase::VALIDATE, s);
    }
    auto expected = oracle->logits();
    auto seen = program->logits();
    double largest = 0;
    double difference = 0;
    for (size_t i = 0; i < expected.size(); i++) {
      largest = kj::max(largest, fabs(expected[i]));
      difference = kj::max(difference, fabs(expected[i] - seen[i]));
    }
    if (!(difference <= TOLERANCE * largest)) {
      configs::fail("the cpu program's logits differ from the oracle's by ", difference,
          ", the largest being ", largest, ": nothing was measured");
    }
  }

  Measured measure(uint steps) {
    for (uint i = 0; i < WARM_UP_STEPS; i++) step();
    Measured measured{};
    verbs = {};
    double cpuBefore_s = cpuSeconds();
    kj::Vector<double> times;
    for (uint i = 0; i < steps; i++) {
      runner::Stopwatch watch;
      step();
      times.add(watch.elapsed_s());
    }
    std::sort(times.begin(), times.end());
    measured.best_s = times[0];
    measured.median_s = times[steps / 2];
    measured.cpu_s = (cpuSeconds() - cpuBefore_s) / steps;
    measured.verbs = verbs;
    measured.steps = steps;
    return measured;
  }

private:
  static const rpc::Mode& modeWithoutServers() {
    for (auto& mode: rpc::MODES) {
      if (!mode.hasServers) return mode;
    }
    KJ_UNREACHABLE;
  }

  kj::Own<nn::Program> lower(const nn::Backend& backend, uint images) {
    return backend.lower(
        facts.graph, {.batchSize = images, .threads = experiment.cluster.threadsPerWorker});
  }

  static void copy(kj::ArrayPtr<const float> from, kj::ArrayPtr<float> to) {
    std::copy(from.begin(), from.end(), to.begin());
  }

  void step() {
    auto& segments = graph().segments;
    verb.restart_s();
    program->setBatch(batch.pixels, batch.labels, batch.draws);
    verb.chargeTo(verbs.read_s);
    for (uint s = 0; s < segments.size(); s++) {
      store->await(done, segments[s].parameters.begin, segments[s].parameters.end);
      verb.chargeTo(verbs.pull_s);
      program->forward(nn::Phase::TRAIN, s);
      verb.chargeTo(verbs.forward_s);
    }
    for (uint s = segments.size(); s-- > 0;) {
      program->backward(s);
      verb.chargeTo(verbs.backward_s);
      store->push(done, segments[s].parameters.begin, segments[s].parameters.end);
      verb.chargeTo(verbs.push_s);
    }
    done++;
  }

  const runner::Experiment& experiment;
  const runner::ModelFacts facts;
  const rpc::Placement placement;
  runner::StoreUpdater updater;
  SyntheticBatch batch;
  kj::Own<nn::Program> program;
  kj::Own<rpc::KvStore> store;
  uint64_t done = 0;
  runner::VerbTimes verbs;
  runner::Stopwatch verb;
};

kj::String milliseconds(double seconds) {
  return kj::str(runner::fixedPoint(seconds * 1e3, 2), " ms");
}

class Bench {
public:
  explicit Bench(runner::CommandLine& commandLine): commandLine(commandLine) {}

  kj::MainFunc getMain() {
    return kj::MainBuilder(commandLine, "bench",
        "Measures parts of the program. Compare figures only within one run: machines are shared.")
        .addSubCommand("train", KJ_BIND_METHOD(*this, trainMain), "steps of one worker")
        .build();
  }

private:
  kj::MainFunc trainMain() {
    return kj::MainBuilder(commandLine, "bench",
        "Times training steps of CONFIG's network in one worker without servers, on a synthetic "
        "batch of its shape that is in memory already; the store is called directly. First it "
        "compares logits with the naive oracle's.\n"
        "\n"
        "  bench train configs/cifar10_local.toml --set cluster.threads_per_worker=1\n"
        "  bench train configs/fashion_mnist_dist_sync.toml --steps 100 --json")
        .addOptionWithArg({"set"}, KJ_BIND_METHOD(*this, addOverride), "KEY=VALUE",
            "lay a value over the file's; may be repeated")
        .addOptionWithArg({"steps"}, KJ_BIND_METHOD(*this, setSteps), "N",
            "steps to time, after three that are not (default: 20)")
        .addOption({"json"}, KJ_BIND_METHOD(*this, setJson), "print one line of JSON")
        .expectArg("CONFIG", KJ_BIND_METHOD(*this, setFile))
        .callAfterParsing(KJ_BIND_METHOD(*this, train))
        .build();
  }

  kj::MainBuilder::Validity train() {
    auto loaded = runner::loadExperiment(file, overrides);
    if (loaded.experiment == nullptr) commandLine.exitError(loaded.errors);
    auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
    Training training(experiment);
    training.check();
    auto seen = training.measure(steps);

    double images = experiment.data.batchSize;
    double flops = 0;
    for (auto& node: training.graph().nodes) {
      auto inputs = KJ_MAP(input, node.inputs) {
        return training.graph().nodes[input].shape;
      };
      flops += 3.0 * nn::forwardFlops(node.op, inputs) * images;
    }
    rusage usage;
    KJ_SYSCALL(::getrusage(RUSAGE_SELF, &usage));
    auto number = [](double value) { return runner::fixedPoint(value, 6); };
    auto& verbs = seen.verbs;
    if (json) {
      runner::print(kj::str("{\"images_per_s\":", number(images / seen.median_s),
          ",\"step_s_median\":", number(seen.median_s), ",\"step_s_best\":", number(seen.best_s),
          ",\"step_cpu_s\":", number(seen.cpu_s),
          ",\"forward_s\":", number(verbs.forward_s / seen.steps), ",\"backward_s\":",
          number(verbs.backward_s / seen.steps), ",\"push_s\":", number(verbs.push_s / seen.steps),
          ",\"pull_s\":", number(verbs.pull_s / seen.steps), ",\"gflop_per_s\":",
          number(flops / seen.median_s / 1e9), ",\"program_bytes\":", training.memory_bytes(),
          ",\"peak_bytes\":", uint64_t(usage.ru_maxrss) * 1024, "}\n"));
      return true;
    }
    runner::print(kj::str(experiment.name, ": batch ", experiment.data.batchSize, ", ",
        runner::counted(experiment.cluster.threadsPerWorker, "thread"), ", ", nn::instructionSet(),
        ", ", runner::counted(seen.steps, "step"), "; logits agree with the oracle\n",
        "step     median ", milliseconds(seen.median_s), ", best ", milliseconds(seen.best_s),
        ", cpu ", milliseconds(seen.cpu_s), "\n", "images/s median ",
        runner::fixedPoint(images / seen.median_s, 0), ", best ",
        runner::fixedPoint(images / seen.best_s, 0), "; ",
        runner::fixedPoint(flops / seen.median_s / 1e9, 0), " GFLOP/s\n", "verbs    read ",
        milliseconds(verbs.read_s / seen.steps), ", forward ",
        milliseconds(verbs.forward_s / seen.steps), ", backward ",
        milliseconds(verbs.backward_s / seen.steps), ", push ",
        milliseconds(verbs.push_s / seen.steps), ", pull ", milliseconds(verbs.pull_s / seen.steps),
        "\n", "memory   program ", runner::fixedPoint(training.memory_bytes() / 1e6, 0),
        " MB, process ", runner::fixedPoint(usage.ru_maxrss * 1024 / 1e6, 0), " MB at most\n"));
    return true;
  }

  kj::MainBuilder::Validity addOverride(kj::StringPtr word) {
    overrides.add(word);
    return true;
  }
  kj::MainBuilder::Validity setSteps(kj::StringPtr word) {
    char* end;
    unsigned long n = ::strtoul(word.cStr(), &end, 10);
    if (*end != '\0' || n < 1 || n > 1000000) return kj::str("not a number from 1");
    steps = n;
    return true;
  }
  kj::MainBuilder::Validity setJson() {
    json = true;
    return true;
  }
  kj::MainBuilder::Validity setFile(kj::StringPtr word) {
    file = kj::str(word);
    return true;
  }

  runner::CommandLine& commandLine;
  kj::String file;
  kj::Vector<kj::StringPtr> overrides;
  uint steps = 20;
  bool json = false;
};

}  // namespace
}  // namespace tools

int main(int argc, char* argv[]) {
  runner::setThreadEnvironment(argv);
  runner::CommandLine commandLine("bench");
  tools::Bench bench(commandLine);
  commandLine.run(bench.getMain(), argc, argv);
}
