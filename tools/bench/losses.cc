// `bench losses`: prints the losses of the first steps, and writes the data behind them.
#include <kj/debug.h>
#include <kj/filesystem.h>
#include <math.h>

#include "configs/language/failure.h"
#include "runner/text/numbers.h"
#include "tools/bench/benches.h"
#include "tools/bench/training.h"

namespace tools {
namespace {

constexpr uint DIGITS = 9;

// A folder with everything that the losses depend on. Replaces files of earlier calls.
class Dump {
public:
  explicit Dump(kj::StringPtr path): folder(open(path)) {}

  void write(kj::StringPtr name, kj::StringPtr text) { create(name)->writeAll(text); }
  void write(kj::StringPtr name, kj::ArrayPtr<const kj::byte> bytes) {
    create(name)->writeAll(bytes);
  }
  void append(kj::StringPtr name, kj::ArrayPtr<const kj::byte> bytes) {
    auto file = folder->openFile(kj::Path(name), kj::WriteMode::CREATE | kj::WriteMode::MODIFY);
    file->write(file->stat().size, bytes);
  }

private:
  kj::Own<const kj::Directory> folder;

  static kj::Own<const kj::Directory> open(kj::StringPtr path) {
    auto files = kj::newDiskFilesystem();
    auto mode = kj::WriteMode::CREATE | kj::WriteMode::MODIFY | kj::WriteMode::CREATE_PARENT;
    kj::Maybe<kj::Own<const kj::Directory>> folder;
    kj::Maybe<kj::Exception> failure = kj::runCatchingExceptions([&]() {
      folder = files->getRoot().tryOpenSubdir(files->getCurrentPath().evalNative(path), mode);
    });
    KJ_IF_MAYBE(opened, folder) return kj::mv(*opened);
    configs::fail(path, " cannot be created or opened as a folder. Name another one with --dump");
  }
  kj::Own<const kj::File> create(kj::StringPtr name) {
    auto file = folder->openFile(kj::Path(name), kj::WriteMode::CREATE | kj::WriteMode::MODIFY);
    file->truncate(0);
    return file;
  }
};

kj::StringPtr nameOf(nn::Key::Role role) {
  switch (role) {
    case nn::Key::WEIGHT:
      return "weight";
    case nn::Key::BIAS:
      return "bias";
    case nn::Key::GAMMA:
      return "gamma";
    case nn::Key::BETA:
      return "beta";
  }
  KJ_UNREACHABLE;
}

// Returns one line per array of the flat one, and how a step changes it. `epsilon` and `momentum`
// are those of a batch norm, beside its gamma.
kj::String keyTable(const nn::Graph& graph) {
  kj::Vector<kj::String> lines;
  lines.add(
      kj::str("name\trole\trows\tcols\toffset\tsize\tlearning_rate_factor\tdecay_factor\t"
              "epsilon\tmomentum\n"));
  for (auto& key: graph.keys) {
    auto& op = graph.nodes[key.node].op;
    bool isGamma = op.is<nn::BatchNorm>() && key.role == nn::Key::GAMMA;
    auto norm =
        isGamma ? kj::str(op.get<nn::BatchNorm>().epsilon, '\t', op.get<nn::BatchNorm>().momentum)
                : kj::str('\t');
    lines.add(
        kj::str(key.name, '\t', nameOf(key.role), '\t', key.rows, '\t', key.cols, '\t', key.offset,
            '\t', key.size, '\t', key.learningRateFactor, '\t', key.decayFactor, '\t', norm, '\n'));
  }
  return kj::strArray(lines, "");
}

kj::String statisticTable(const nn::Graph& graph) {
  auto lines = KJ_MAP(statistic, graph.statistics) {
    return kj::str(statistic.name, '\t', statistic.offset, '\t', statistic.size, '\n');
  };
  return kj::str("name\toffset\tsize\n", kj::strArray(lines, ""));
}

// The experiment's own records as pixels, in the order in which a worker without others reads them.
class RecordPixels {
public:
  explicit RecordPixels(const runner::Experiment& experiment)
      : dataset(io::openDataset(experiment.data, io::unheard())),
        batcher(io::Batcher::training(*dataset, experiment.data, experiment.train.seed, 1, 0, 0)) {}

  // Returns the next batch. It is valid until the next call.
  const io::Batch& next() {
    return KJ_ASSERT_NONNULL(batcher->next(), "the training stream has no end");
  }

private:
  kj::Own<io::Dataset> dataset;
  kj::Own<io::Batcher> batcher;
};

class BenchLosses: private TrainingCommand {
public:
  using TrainingCommand::TrainingCommand;

  kj::MainFunc getMain();

private:
  Validity run();

  kj::StringPtr folder;         // of --dump; empty: nothing is written
  uint batches = kj::maxValue;  // used in turn
};

kj::MainFunc BenchLosses::getMain() {
  kj::MainBuilder builder(commandLine, "bench",
      "Trains CONFIG's network for a few steps in one worker without servers, and prints the mean "
      "loss of each step as one line of JSON. The batches are synthetic, and each step has another "
      "one.\n"
      "\n"
      "With --dump it writes the inputs of the training: experiment.toml (every value used), "
      "keys.tsv and statistics.tsv (the arrays within the flat arrays), weights.f32 and "
      "statistics.f32 (the flat arrays before the first step), pixels.f32 and labels.i32 (the "
      "batches one after another, used in turn). It also writes the results: losses.txt, "
      "weights_after.f32 and statistics_after.f32. All numbers are little-endian. "
      "tests/peers/losses.py trains PyTorch on these inputs and compares.\n"
      "\n"
      "  bench losses configs/cifar10_local.toml --set data.batch_size=32 --data\n"
      "  bench losses configs/mnist_mlp_local.toml --dump /tmp/mlp\n"
      "  python3 tests/peers/losses.py /tmp/mlp --tolerance 1e-4");
  addArguments(builder, "number of steps (default: 20)",
      "trains on the experiment's own records, read as a worker reads them");
  return builder
      .addOptionWithArg({"dump"}, wordSetter(folder), "FOLDER",
          "writes inputs and results into this folder, which is created if needed")
      .addOptionWithArg({"batches"}, numberSetter(batches), "N",
          "uses N batches in turn (default: another one for each step)")
      .callAfterParsing(KJ_BIND_METHOD(*this, run))
      .build();
}

Validity BenchLosses::run() {
  auto loaded = load();
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  Training training(experiment, nullptr, assumed);
  uint kept = kj::min(batches, steps);
  kj::Vector<OwnBatch> all;
  kj::Maybe<RecordPixels> records;
  if (data) records.emplace(experiment);
  for (uint i = 0; i < kept; i++) {
    KJ_IF_MAYBE(reader, records) {
      auto& batch = reader->next();
      all.add(batch, batch.images, batch.images);
    } else {
      all.add(training.graph(), experiment.data.batchSize, i);
    }
  }
  kj::Maybe<Dump> dump;
  if (folder.size() > 0) {
    auto& files = dump.emplace(folder);
    files.write("experiment.toml", loaded.resolved);
    files.write("keys.tsv", keyTable(training.graph()));
    files.write("statistics.tsv", statisticTable(training.graph()));
    files.write("weights.f32", training.parameters().asBytes());
    files.write("statistics.f32", training.statistics().asBytes());
    for (auto name: {"pixels.f32", "labels.i32"}) files.write(name, ""_kj);
    for (auto& batch: all) {
      files.append("pixels.f32", batch.get().pixels.asBytes());
      files.append("labels.i32", batch.get().labels.asBytes());
    }
  }
  kj::Vector<kj::String> losses;
  for (uint i = 0; i < steps; i++) {
    auto& batch = all[i % kept].get();
    training.program().setBatch(batch.pixels, batch.labels, batch.draws);
    runner::VerbTimes verbs;
    training.step(verbs);
    auto result = training.result();
    if (!isfinite(result.lossSum)) {
      configs::fail("the loss is ", result.lossSum, " at step ", i + 1,
          ": training diverged; lower train.optimizer.learning_rate");
    }
    losses.add(runner::fixedPoint(result.meanLoss(), DIGITS));
  }
  KJ_IF_MAYBE(files, dump) {
    training.awaitUpdate();
    files->write("losses.txt", kj::str(kj::strArray(losses, "\n"), "\n"));
    files->write("weights_after.f32", training.parameters().asBytes());
    files->write("statistics_after.f32", training.statistics().asBytes());
  }
  runner::print(kj::str("{\"losses\":[", kj::strArray(losses, ","), "]}\n"));
  return true;
}

}  // namespace

kj::MainFunc benchLosses(runner::CommandLine& commandLine) {
  return mainOf<BenchLosses>(commandLine);
}

}  // namespace tools
