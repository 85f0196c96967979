#include "runner/experiment/experiment.h"

#include <kj/debug.h>

#include "configs/language/word.h"
#include "io/batches/stream.h"
#include "io/checksum.h"
#include "io/images/augment.h"
#include "runner/experiment/devices.h"
#include "runner/experiment/run_length.h"
#include "runner/experiment/sweep.h"
#include "runner/system/files.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

constexpr uint64_t TEXT_BYTES_MAX = 1 << 24;

// Reports the first max pool whose windows are too large for a GPU of the experiment.
void checkPools(
    const Experiment& experiment, const nn::Graph& graph, configs::Diagnostics& diagnostics) {
  for (auto& device: experiment.cluster.devices) {
    if (!isGpu(device)) continue;
    for (auto& node: graph.nodes) {
      if (!node.op.is<nn::Pool>()) continue;
      auto& pool = node.op.get<nn::Pool>();
      constexpr auto MOST = nn::Pool::GPU_KERNEL_MAX;
      if (pool.function != nn::Pool::MAX || pool.kernel <= MOST) continue;
      diagnostics.error(node.span,
          kj::str("layer `", node.name, "` takes the maximum over windows of ", pool.kernel, "×",
              pool.kernel, ", but device `", device, "` computes at most ", MOST, "×", MOST),
          "make the windows smaller, or choose cluster.devices = [\"cpu\"]");
      return;
    }
  }
}

nn::Graph build(const Experiment& experiment, const io::DatasetFacts& facts,
    configs::Diagnostics& diagnostics) {
  auto shape = io::batchShapeOf(experiment.data.augment, facts.shape);
  size_t errorsBefore = diagnostics.count();
  auto graph =
      nn::buildGraph(experiment.model, nn::Shape{shape.channels, shape.height, shape.width},
          facts.classes, diagnostics, {.smoothing = float(experiment.train.labelSmoothing)});
  // A network that does not fit may have other keys.
  if (diagnostics.count() == errorsBefore) {
    experiment.train.rules.check(graph.keys, diagnostics);
    checkPools(experiment, graph, diagnostics);
  }
  return graph;
}

// Checks groups of keys before the shape of the images is known. The name and the role of a key do
// not depend on that shape.
void checkRules(const Experiment& experiment, configs::Diagnostics& diagnostics) {
  constexpr uint CHANNELS = 3, SIDE = 224, CLASSES = 1000;
  auto shape = io::batchShapeOf(experiment.data.augment, {CHANNELS, SIDE, SIDE});
  configs::Diagnostics unheard;  // errors of shapes, which are dropped
  auto graph = nn::buildGraph(
      experiment.model, nn::Shape{shape.channels, shape.height, shape.width}, CLASSES, unheard);
  experiment.train.rules.check(graph.keys, diagnostics);
}

// Sections that do not affect how a run goes.
constexpr kj::StringPtr BESIDE_THE_RUN[] = {
    "checkpoint"_kj, "expect"_kj, "log"_kj, "published"_kj, "sweep"_kj};

// Returns the entries of `table` without those of `keys`.
configs::Table without(kj::ArrayPtr<const kj::StringPtr> keys, const configs::Table& table) {
  configs::Table rest;
  for (auto& entry: table.entries) {
    bool kept = true;
    for (auto key: keys) kept = kept && entry.key != key;
    if (kept) rest.entries.add(configs::Entry{kj::str(entry.key), {}, clone(*entry.value)});
  }
  return rest;
}

// Leaves keys out of a section.
void leaveOut(
    configs::Table& experiment, kj::StringPtr section, kj::ArrayPtr<const kj::StringPtr> keys) {
  auto& entry = KJ_ASSERT_NONNULL(experiment.find(section));
  auto& table = entry.value->content.get<configs::Table>();
  table = without(keys, table);
}

// Two experiments with the same settings and the same records train the same.
configs::Table settingsOf(const configs::Table& resolved) {
  auto trained = without(BESIDE_THE_RUN, resolved);
  // Where data, weights and roles are, and how roles reach each other.
  constexpr kj::StringPtr OF_DATA[] = {
      "source"_kj, "validation_source"_kj, "labels"_kj, "validation_labels"_kj, "class_names"_kj};
  constexpr kj::StringPtr OF_MODEL[] = {"weights"_kj};
  constexpr kj::StringPtr OF_CLUSTER[] = {"launcher"_kj, "image"_kj, "kubernetes"_kj, "port"_kj,
      "hosts"_kj, "interface"_kj, "ssh"_kj, "tls"_kj, "mpirun"_kj, "instruction_set"_kj,
      "on_loss"_kj, "elastic"_kj};
  leaveOut(trained, "data", OF_DATA);
  leaveOut(trained, "model", OF_MODEL);
  leaveOut(trained, "cluster", OF_CLUSTER);
  // How long roles wait for each other changes no result. The digests of many runs have the
  // defaults.
  auto& cluster = KJ_ASSERT_NONNULL(trained.find("cluster")).value->content.get<configs::Table>();
  KJ_ASSERT_NONNULL(cluster.find("start_timeout_s")).value =
      configs::newValue<int64_t>(ClusterConfig::START_TIMEOUT_S);
  KJ_ASSERT_NONNULL(cluster.find("silence_timeout_s")).value =
      configs::newValue<int64_t>(ClusterConfig::SILENCE_TIMEOUT_S);
  return trained;
}

// Returns settings without what may change between two epochs of a run.
kj::String settingsWithoutRolesOf(const configs::Table& settings) {
  constexpr kj::StringPtr SECTIONS[] = {"continued"_kj};
  constexpr kj::StringPtr OF_CLUSTER[] = {"workers"_kj, "servers"_kj};
  auto kept = without(SECTIONS, settings);
  leaveOut(kept, "cluster", OF_CLUSTER);
  return configs::print(kept);
}

}  // namespace

LogConfig LogConfig::read(configs::Reader& reader) {
  LogConfig config;
  config.style = &reader.choose(
      "style", "The format of the lines in log.txt.", LOG_STYLES, kj::StringPtr("mxnet"));
  config.every = reader.integer("every",
      "Number of steps between two speed lines of a worker. Absent: as in the system whose style "
      "it is.",
      {.atLeast = 1, .atMost = 1000000000}, config.style->every);
  config.tensorboard = reader.flag("tensorboard",
      "Writes loss, accuracy, images/s and learning rate for TensorBoard into the run's folder.",
      true);
  config.topK = 0;
  config.topKSpan = reader.span("top_k");
  // The resolved experiment leaves the key out if the file does not have it.
  if (reader.isManual() || reader.has("top_k")) {
    config.topK = reader.integer("top_k",
        "Each validation also counts the images whose label is among the `top_k` largest logits. "
        "Must be below the number of classes. 0 = does not count them.",
        {.atLeast = 0, .atMost = 100}, 0);
  }
  return config;
}

namespace {

// Why the workers that are left cannot go on in this mode, and the way out.
struct Dependence {
  kj::StringPtr why;
  kj::StringPtr wayOut;
};

// Returns what the workers of a job depend on each other for. Null if each can be lost.
kj::Maybe<Dependence> dependenceOfWorkers(const Experiment& experiment) {
  constexpr kj::StringPtr OTHER_MODE =
      "write on_loss = \"restart\", or choose kvstore.mode = \"dist_sync\" or \"dist_async\""_kj;
  auto& mode = *experiment.kvstore.mode;
  uint workers = experiment.cluster.workers;
  auto counted = experiment.rounds().counted;
  if (!experiment.kvstore.exchanges()) return Dependence{"it has one worker only"_kj, OTHER_MODE};
  if (!experiment.kvstore.hasServers()) {
    return Dependence{"every worker holds a share of the parameters"_kj, OTHER_MODE};
  }
  if (mode.stepsAlone() != nullptr) {
    return Dependence{
        "every worker trains weights of its own, which are lost with it"_kj, OTHER_MODE};
  }
  if (mode.ownUpdates() != nullptr) {
    return Dependence{"with update = \"worker\", the workers keep the state of the optimizer"_kj,
        "write on_loss = \"restart\", or update = \"server\""_kj};
  }
  bool takesAll = counted == rpc::Rounds::ALL && mode.rounds(workers).aggregate == workers;
  if (!takesAll && counted != rpc::Rounds::EACH) {
    return Dependence{"with `aggregate`, an update takes a fixed number of pushes"_kj,
        "write on_loss = \"restart\", or leave `aggregate` out"_kj};
  }
  return nullptr;
}

// Reports a job that cannot go on without a worker but shall.
void checkContinues(const Experiment& experiment, configs::Reader& reader) {
  auto& cluster = experiment.cluster;
  if (!cluster.onLoss->continues) return;
  auto refuse = [&](kj::String why, kj::StringPtr wayOut, kj::StringPtr other) {
    reader.error("cluster.on_loss", why, wayOut, kj::arrayPtr(&other, 1));
  };
  auto launcher = cluster.launcher->word;
  if (launcher != LauncherKind::LOCAL && launcher != LauncherKind::SSH) {
    refuse(kj::str("launcher `", cluster.launcher->name,
               "` cannot start a worker while the others go on"),
        "choose launcher = \"local\" or \"ssh\", or another on_loss", "cluster.launcher");
  }
  KJ_IF_MAYBE(needs, dependenceOfWorkers(experiment)) {
    refuse(kj::str("mode `", experiment.kvstore.modeName(),
               "` cannot go on without a worker: ", needs->why),
        needs->wayOut, "kvstore.mode");
  }
  if (experiment.checkpoint.keepBest) {
    refuse(kj::str("the worker that keeps the weights of the best epoch may be lost"),
        "write on_loss = \"restart\", or leave keep_best out", "checkpoint.keep_best");
  }
  if (experiment.data.part != io::TrainingPart::SPLIT) {
    refuse(kj::str("if every worker reads all records, none can take over those of another"),
        "write on_loss = \"restart\", or data.part = \"split\"", "data.part");
  }
  if (experiment.data.lastBatch != io::LastBatch::ROLL_OVER) {
    refuse(kj::str(
               "with data.last_batch, the length of a pass depends on the number of workers, which "
               "changes when one is lost"),
        "write on_loss = \"restart\", or data.last_batch = \"roll_over\"", "data.last_batch");
  }
}

// Reports a job that cannot be restarted but shall be.
void checkRestarts(const Experiment& experiment, configs::Reader& reader) {
  auto& cluster = experiment.cluster;
  if (!cluster.onLoss->restarts) return;
  constexpr kj::StringPtr LAUNCHER[] = {"cluster.launcher"_kj};
  auto word = cluster.launcher->word;
  if (word == LauncherKind::INLINE || word == LauncherKind::MANUAL ||
      word == LauncherKind::KUBERNETES) {
    if (cluster.onLoss->continues) return;  // checkContinues() reports it
    reader.error("cluster.on_loss",
        kj::str("launcher `", cluster.launcher->name, "` cannot start roles again"),
        "write on_loss = \"fail\", or choose another launcher", LAUNCHER);
  }
  if (!experiment.checkpoint.isOn()) {
    reader.error("cluster.on_loss",
        kj::str("on_loss = \"", cluster.onLoss->name, "\" needs checkpoints"),
        "raise checkpoint.every_s, or write checkpoint.every_steps", {"checkpoint.every_s"_kj});
  }
}

// Checks how many roles there are of each kind.
void checkRoles(const Experiment& experiment, configs::Reader& reader) {
  auto& cluster = experiment.cluster;
  auto& kvstore = experiment.kvstore;
  constexpr kj::StringPtr MODE[] = {"kvstore.mode"_kj};
  if (kvstore.hasServers() && cluster.servers == 0) {
    reader.error("cluster.servers",
        kj::str("mode `", kvstore.modeName(), "` needs at least one server"), "write servers = 1",
        MODE);
  }
  if (!kvstore.hasServers() && cluster.servers > 0) {
    reader.error("cluster.servers", kj::str("mode `", kvstore.modeName(), "` has no servers"),
        "leave the key out, or choose kvstore.mode = \"dist_sync\"", MODE);
  }
  if (!kvstore.exchanges() && cluster.workers > 1) {
    reader.error("cluster.workers",
        kj::str("mode `", kvstore.modeName(), "` allows only one worker"),
        "choose kvstore.mode = \"dist_sync\" or \"dist_async\" for several", MODE);
  }
}

// Reports settings that only GPUs, or only processors can do, if a worker has other devices too.
void checkKindsOfDevices(const Experiment& experiment, configs::Reader& reader) {
  // Only a program that augments by itself can keep images.
  bool keepsImages = experiment.data.cache == io::DataCache::DEVICE;
  auto precision = experiment.train.precision;
  bool isOfGpus = precision == nn::Precision::TF32 || precision == nn::Precision::FP16;
  constexpr kj::StringPtr DEVICES[] = {"cluster.devices"_kj};
  for (auto& device: experiment.cluster.devices) {
    if (isGpu(device)) {
      if (precision != nn::Precision::AUTO) continue;
      reader.error("train.precision",
          kj::str("precision `auto` is for processors, but device `", device, "` is a GPU"),
          "choose precision = \"fp32\" or \"bf16\"", DEVICES);
      continue;
    }
    if (keepsImages) {
      reader.error("data.cache",
          kj::str("images are kept on GPUs, but device `", device, "` is not a GPU"),
          "leave data.cache out, or choose cluster.devices = [\"cuda\"]", DEVICES);
    }
    if (isOfGpus) {
      reader.error("train.precision",
          kj::str("precision `", wordOf(precision), "` is for GPUs, but device `", device,
              "` is not a GPU"),
          "choose precision = \"fp32\", or cluster.devices = [\"cuda\"]", DEVICES);
    }
  }
}

// Reports settings that contradict an end before the last epoch, or a moving average of the
// weights.
void checkEnd(const Experiment& experiment, configs::Reader& reader) {
  auto& train = experiment.train;
  bool isLate =
      experiment.data.viewsAt == io::ViewsAt::LAST && experiment.data.validationViews.size() > 1;
  if (train.earlyStop != nullptr && isLate) {
    reader.error("train.early_stop",
        "with `early_stop`, a validation does not know whether it is the last one, and "
        "`validation_views_at = \"last\"` needs to know",
        "write validation_views_at = \"every\", or leave one of them out",
        {"data.validation_views_at"_kj});
  }
  if (experiment.checkpoint.keepBest && isLate) {
    reader.error("checkpoint.keep_best",
        "`keep_best` compares epochs, but with `validation_views_at = \"last\"` the last epoch is "
        "judged by more views than the others",
        "write validation_views_at = \"every\", or leave one of them out",
        {"data.validation_views_at"_kj});
  }
  if (train.average == nullptr) return;
  if (experiment.cluster.onLoss->continues) {
    reader.error("train.ema", "the worker that keeps the moving average may be lost",
        "write on_loss = \"restart\", or leave `ema` out", {"cluster.on_loss"_kj});
  }
  if (experiment.kvstore.mode->stepsAlone() != nullptr) {
    reader.error("train.ema",
        kj::str("in mode `", experiment.kvstore.modeName(),
            "` every worker trains weights of its own, and one worker keeps the moving average"),
        "leave `ema` out, or choose kvstore.mode = \"dist_sync\"", {"kvstore.mode"_kj});
  }
  if (experiment.cluster.devices.size() > 1) {
    reader.error("train.ema",
        "the devices of a worker have moving statistics of their own, and `ema` would need the "
        "mean of them after each step",
        "leave `ema` out, or use one device per worker", {"cluster.devices"_kj});
  }
  if (experiment.kvstore.exchanges()) return;
  for (auto& device: experiment.cluster.devices) {
    if (!isGpu(device)) continue;
    reader.error("train.ema",
        kj::str("device `", device,
            "` updates the weights by itself, and `ema` needs those of each "
            "step"),
        "leave `ema` out, or choose kvstore.mode = \"dist_sync\"", {"cluster.devices"_kj});
    return;
  }
}

// Reports an expectation of a figure that the experiment does not count.
void checkExpectations(const Experiment& experiment, configs::Reader& reader) {
  for (auto& expectation: experiment.expectations) {
    bool needsTopK = expectation.figure->kind == ExpectedFigure::VALIDATION_TOP_K_ACCURACY;
    if (!needsTopK || experiment.log.topK > 0) continue;
    reader.error(kj::str("expect.", expectation.figure->name),
        "a run without `log.top_k` does not have this figure", "set log.top_k, such as top_k = 5",
        {"log.top_k"_kj});
  }
}

void checkInstructionSet(const Experiment& experiment, configs::Reader& reader) {
  if (experiment.cluster.instructionSet != "avx2"_kj) return;
  if (experiment.train.precision != nn::Precision::BF16) return;
  // GPUs compute in it whatever their host has.
  bool isOnGpus = true;
  for (auto& device: experiment.cluster.devices) isOnGpus = isOnGpus && isGpu(device);
  if (isOnGpus) return;
  reader.error("cluster.instruction_set", "AVX2 cannot compute in `bf16`",
      "leave cluster.instruction_set out, or choose train.precision = \"fp32\"",
      {"train.precision"_kj});
}

}  // namespace

Experiment Experiment::read(configs::Reader& reader) {
  Experiment experiment;
  experiment.name = reader.text("name",
      "Names the folder of the runs. At most 100 letters, digits, `_`, `-` and `.`, starting with "
      "a "
      "letter or digit.");
  experiment.data = reader.section("data",
      "Which records are read, how many per step, and how images are augmented.",
      io::DataConfig::read);
  experiment.model = reader.section("model",
      "The network, by name or layer by layer, and how its parameters start.",
      [&](configs::Reader& section) {
        auto model = nn::ModelConfig::read(section);
        experiment.start = StartWeights::read(section);
        return model;
      });
  experiment.train = reader.section(
      "train", "How long to train, and how parameters are updated.", [&](configs::Reader& section) {
        return TrainConfig::read(section, *experiment.model.conventions);
      });
  experiment.kvstore = reader.section("kvstore",
      "The parameter server: when the gradients of several workers become one update.",
      rpc::KvStoreConfig::read);
  experiment.cluster = reader.section("cluster", "The roles of a run, and who starts them.",
      [&](configs::Reader& section) { return ClusterConfig::read(section, experiment.kvstore); });
  checkRoles(experiment, reader);
  checkDevices(
      reader, experiment.cluster.devices, experiment.kvstore.mode->row, experiment.data.batchSize);
  checkKindsOfDevices(experiment, reader);
  checkInstructionSet(experiment, reader);
  experiment.kvstore.mode->check(reader, experiment.cluster.workers);
  experiment.log = reader.section("log", "What is logged, and how often.", LogConfig::read);
  experiment.checkpoint = reader.section("checkpoint",
      "When a run is saved, so that `runner run --resume` can continue it after a break. Does not "
      "change results.",
      CheckpointConfig::read);
  checkRestarts(experiment, reader);
  checkContinues(experiment, reader);
  checkEnd(experiment, reader);
  KJ_IF_MAYBE(expectations, reader.maybeSection("expect",
                                "What a run must reach. A missed expectation is reported and makes "
                                "the exit code 3. It does not change the run.",
                                readExpectations)) {
    experiment.expectations = kj::mv(*expectations);
  }
  checkExpectations(experiment, reader);
  experiment.published = reader.maybeSection("published",
      "Results that others published for this experiment. Tables and reports show them beside the "
      "results of a run. They do not change the run.",
      Published::read);

  experiment.continued = reader.maybeSection("continued",
      "Where a run stood when `runner run --resume` went on with another number of workers, at the "
      "end of an epoch. `--resume` writes this section into the experiment.toml of the run. Leave "
      "it out of other files.",
      Continued::read);

  // loadRuns() reads [sweep], and lays its values over the rest. Here it is read for the reference.
  reader.maybeSection("sweep",
      "Makes the file stand for many runs: `grid` × `zip` × draws. Each run has its own folder, "
      "runs/<name>/<settings>-<digest>. Finished runs are not run again.",
      SweepConfig::read);

  auto letter = [](char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9');
  };
  bool good =
      experiment.name.size() > 0 && experiment.name.size() <= 100 && letter(experiment.name[0]);
  for (char c: experiment.name) good = good && (letter(c) || c == '_' || c == '-' || c == '.');
  if (!good && reader.has("name")) {
    reader.error("name", kj::str("`", experiment.name, "` cannot name a folder"),
        "use up to 100 letters, digits, `_`, `-` and `.`, beginning with a letter or digit");
  }
  // If numbers are wrong, anything computed from them would only report the same error again.
  if (!reader.isManual() && reader.diagnostics().count() == 0) {
    KJ_IF_MAYBE(facts, io::factsOf(experiment.data)) {
      checkAgainst(experiment, *facts, reader.diagnostics());
    } else {
      checkRules(experiment, reader.diagnostics());
    }
  }
  return experiment;
}

kj::Own<configs::Document> loadDocument(kj::StringPtr path,
    kj::ArrayPtr<const kj::StringPtr> overrides, configs::Diagnostics& diagnostics) {
  auto filesystem = kj::newDiskFilesystem();
  return configs::load(
      filesystem->getRoot(), path, overrides, diagnostics, filesystem->getCurrentPath());
}

LoadedExperiment readExperiment(
    kj::Own<configs::Document> document, configs::Diagnostics& diagnostics) {
  LoadedExperiment loaded;
  loaded.document = kj::mv(document);
  size_t before = diagnostics.count();
  configs::Reading reading{diagnostics, {}};
  auto experiment = configs::readDocument(*loaded.document, reading, Experiment::read);
  if (diagnostics.count() > before) return loaded;
  // Which rows are about this run depends on all of its values.
  KJ_IF_MAYBE(published, experiment.published) {
    published->keepRowsOf(reading.resolved, diagnostics);
    if (diagnostics.count() > before) return loaded;
  }
  loaded.experiment = kj::mv(experiment);
  loaded.resolved = configs::print(reading.resolved);
  auto settings = settingsOf(reading.resolved);
  loaded.settings = configs::print(settings);
  loaded.digest = io::sha256Hex(loaded.settings.asBytes());
  loaded.settingsWithoutRoles = settingsWithoutRolesOf(settings);
  return loaded;
}

LoadedExperiment loadExperiment(
    kj::StringPtr path, kj::ArrayPtr<const kj::StringPtr> overrides, kj::Maybe<uint> columns) {
  configs::Diagnostics diagnostics;
  auto document = loadDocument(path, overrides, diagnostics);
  KJ_IF_MAYBE(sweep, document->root.find("sweep")) {
    diagnostics.error(sweep->keySpan, "this file is a sweep, but a single run is needed here",
        "use the experiment.toml in the folder of one of its runs");
  }
  auto loaded = readExperiment(kj::mv(document), diagnostics);
  if (diagnostics.count() > 0) {
    loaded.experiment = nullptr;
    loaded.errors = diagnostics.format(path, columns);
  }
  return loaded;
}

bool isResolved(kj::StringPtr path) {
  auto loaded = loadExperiment(path, nullptr);
  return loaded.errors.size() == 0 && readRegular(path, TEXT_BYTES_MAX) == loaded.resolved;
}

void addRecords(LoadedExperiment& loaded) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  kj::Vector<kj::String> parts;
  if (!io::areRecordsKnown(experiment.data)) parts.add(io::recordsSha256(experiment.data));
  KJ_IF_MAYBE(start, experiment.start) parts.add(weightsSha256(*start));
  if (parts.empty()) return;
  auto all = kj::str(io::sha256Hex(loaded.settings.asBytes()), ' ', kj::strArray(parts, " "));
  loaded.digest = io::sha256Hex(all.asBytes());
}

bool differOnlyInRoles(const LoadedExperiment& a, const LoadedExperiment& b) {
  if (a.settingsWithoutRoles != b.settingsWithoutRoles) return false;
  auto& first = KJ_ASSERT_NONNULL(a.experiment);
  auto& second = KJ_ASSERT_NONNULL(b.experiment);
  KJ_IF_MAYBE(ours, first.start) {
    KJ_IF_MAYBE(theirs, second.start) {
      if (weightsSha256(*ours) != weightsSha256(*theirs)) return false;
    } else {
      return false;
    }
  } else if (second.start != nullptr) {
    return false;
  }
  return io::areRecordsKnown(first.data) ||
         io::recordsSha256(first.data) == io::recordsSha256(second.data);
}

kj::String languageReference() {
  return configs::printReference("The language of experiment files", Experiment::read);
}

void checkAgainst(const Experiment& experiment, const io::DatasetFacts& facts,
    configs::Diagnostics& diagnostics) {
  auto& data = experiment.data;
  if (data.heldOut >= facts.trainingRecords) {
    diagnostics.error(data.heldOutSpan,
        kj::str("`held_out` leaves nothing to train on: ", data.dataset->name, " has ",
            counted(facts.trainingRecords, "training record")),
        kj::str("hold out fewer than ", facts.trainingRecords));
  }
  uint64_t records = facts.trainingRecords - kj::min(data.heldOut, facts.trainingRecords);
  // Of as many workers as the job may have.
  uint most = experiment.cluster.seats();
  uint workers = most / data.readings(most);
  uint64_t images = uint64_t(workers) * data.batchSize;
  if (records > 0 && images > records) {
    bool together = data.part == io::TrainingPart::SPLIT;
    bool wouldFit = images <= facts.trainingRecords;  // if no records were held out
    diagnostics.error(wouldFit ? data.heldOutSpan : data.batchSizeSpan,
        kj::str("a step ", together ? "" : "of each worker ", "takes ", images, " images",
            together ? kj::str(" (", counted(workers, "worker"), " × ", data.batchSize, ")")
                     : kj::str(),
            ", but ", data.dataset->name, " has ", counted(records, "training record"),
            data.heldOut > 0 ? kj::str(" besides the ", data.heldOut, " held out") : kj::str()),
        wouldFit ? kj::str("hold out at most ", facts.trainingRecords - images,
                       ", or make data.batch_size smaller")
        : together
            ? kj::str("make data.batch_size or ",
                  most > experiment.cluster.workers ? "cluster.elastic.max" : "cluster.workers",
                  " smaller")
            : kj::str("make data.batch_size smaller"));
  }
  if (experiment.log.topK > 0 && experiment.log.topK >= facts.classes) {
    diagnostics.error(experiment.log.topKSpan,
        kj::str("`top_k` is ", experiment.log.topK, ", but ", data.dataset->name, " has ",
            facts.classes, " classes: every image would count"),
        "make it smaller, or leave it out");
  }
  KJ_IF_MAYBE(lookahead, experiment.train.rules.lookahead) {
    if (images > 0 && images <= records) {
      uint64_t length = io::Stream::passLength(data, records, experiment.cluster.workers);
      lookahead->check(runLengthOf(experiment, length), diagnostics);
    }
  }
  build(experiment, facts, diagnostics);
}

nn::Graph graphOf(const Experiment& experiment, const io::DatasetFacts& facts) {
  configs::Diagnostics diagnostics;
  auto graph = build(experiment, facts, diagnostics);
  KJ_REQUIRE(diagnostics.count() == 0, "not checked before", diagnostics.format(experiment.name));
  if (facts.classNames.size() == 0) return graph;
  // The user's list may name more classes than the labels have, or fewer.
  graph.classNames = kj::heapArray<kj::String>(graph.classes);
  for (size_t label = 0; label < kj::min(graph.classes, facts.classNames.size()); ++label) {
    graph.classNames[label] = kj::str(facts.classNames[label]);
  }
  return graph;
}

kj::Array<rpc::Key> storeKeys(const Experiment& experiment, const nn::Graph& graph) {
  return KJ_MAP(key, graph.keys) {
    auto rule = experiment.train.rules.of(key);
    bool splittable = rule.isFrozen() || !rule.optimizer->needsWholeKeys();
    return rpc::Key{kj::str(key.name), key.offset, key.size, splittable};
  };
}

rpc::Placement placementOf(const Experiment& experiment, const nn::Graph& graph) {
  return rpc::place(storeKeys(experiment, graph), experiment.kvstore.slice_bytes,
      experiment.shards(), *experiment.kvstore.placement);
}

}  // namespace runner
