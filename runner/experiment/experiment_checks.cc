#include "runner/experiment/experiment_checks.h"

#include "io/datasets/fetch.h"
#include "runner/experiment/devices.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

// Why the remaining workers cannot continue in this mode, and what to do.
struct Dependence {
  kj::StringPtr why;
  kj::StringPtr wayOut;
};

// Returns why the workers of a job depend on each other. Null if the job can lose any of them.
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
    return Dependence{"every worker trains its own weights, which are lost with it"_kj, OTHER_MODE};
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

// Reports an error if the job is told to continue without a lost worker but cannot.
void checkContinues(const Experiment& experiment, configs::Reader& reader) {
  auto& cluster = experiment.cluster;
  if (!cluster.onLoss->continues) return;
  auto refuse = [&](kj::String why, kj::StringPtr wayOut, kj::StringPtr other) {
    reader.error("cluster.on_loss", why, wayOut, kj::arrayPtr(&other, 1));
  };
  auto launcher = cluster.launcher->word;
  if (launcher != LauncherKind::LOCAL && launcher != LauncherKind::SSH) {
    refuse(kj::str("launcher `", cluster.launcher->name,
               "` cannot start a worker while the others continue"),
        "choose launcher = \"local\" or \"ssh\", or another on_loss", "cluster.launcher");
  }
  if (launcher == LauncherKind::SSH && cluster.elastic.max > cluster.workers) {
    reader.error("cluster.elastic.max",
        kj::str("launcher `ssh` starts no more workers than cluster.workers, which is ",
            cluster.workers),
        "raise cluster.workers, or leave `max` out", {"cluster.workers"_kj, "cluster.launcher"_kj});
  }
  KJ_IF_MAYBE(needs, dependenceOfWorkers(experiment)) {
    refuse(kj::str("mode `", experiment.kvstore.modeName(),
               "` cannot continue without a worker: ", needs->why),
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

// Reports an error if the job is told to restart after a loss but cannot.
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

// Checks the number of roles of each kind.
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

// Reports settings that only GPUs or only CPUs support, if a worker also has other devices.
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
        "with `early_stop`, it is not known in advance which validation is the last one, but "
        "`validation_views_at = \"last\"` depends on it",
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
    reader.error("train.ema",
        "one worker keeps the moving average, and with on_loss = \"continue\" the job may continue "
        "without it",
        "write on_loss = \"restart\", or leave `ema` out", {"cluster.on_loss"_kj});
  }
  if (experiment.kvstore.mode->stepsAlone() != nullptr) {
    reader.error("train.ema",
        kj::str("`ema` averages the weights of one worker, but in mode `",
            experiment.kvstore.modeName(), "` every worker trains its own weights"),
        "leave `ema` out, or choose kvstore.mode = \"dist_sync\"", {"kvstore.mode"_kj});
  }
  if (experiment.cluster.devices.size() > 1) {
    reader.error("train.ema",
        "the devices of a worker have their own moving statistics, and `ema` would need the "
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
  // GPUs support it regardless of their host's processor.
  bool isOnGpus = true;
  for (auto& device: experiment.cluster.devices) isOnGpus = isOnGpus && isGpu(device);
  if (isOnGpus) return;
  reader.error("cluster.instruction_set", "AVX2 cannot compute in `bf16`",
      "leave cluster.instruction_set out, or choose train.precision = \"fp32\"",
      {"train.precision"_kj});
}

// Reports a claim with data sets that no pod would read.
void checkClaim(const Experiment& experiment, configs::Reader& reader) {
  if (experiment.cluster.launcher->word != LauncherKind::KUBERNETES) return;
  KJ_IF_MAYBE(config, experiment.cluster.kubernetes) {
    KJ_IF_MAYBE(source, experiment.data.source) {
      if (config->data == nullptr || !io::isAddress(*source)) return;
      reader.error("cluster.kubernetes.data",
          "the claim has no effect, because `data.source` is an address, which each pod downloads",
          "leave the key out, or write the path in the pods as data.source",
          {"data.source"_kj, "cluster.launcher"_kj});
    }
  }
}

}  // namespace

void checkTogether(const Experiment& experiment, configs::Reader& reader) {
  checkRoles(experiment, reader);
  checkDevices(
      reader, experiment.cluster.devices, experiment.kvstore.mode->row, experiment.data.batchSize);
  checkKindsOfDevices(experiment, reader);
  checkInstructionSet(experiment, reader);
  experiment.kvstore.mode->check(reader, experiment.cluster.workers);
  checkRestarts(experiment, reader);
  checkContinues(experiment, reader);
  checkEnd(experiment, reader);
  checkExpectations(experiment, reader);
  checkClaim(experiment, reader);
}

}  // namespace runner
