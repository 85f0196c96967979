#include "runner/experiment/train_config.h"

#include <kj/debug.h>

#include "configs/language/word.h"

namespace runner {

namespace {

constexpr LossReduction LOSS_REDUCTIONS[] = {
    {"mean", "The mean loss over the images of a round.", LossReduction::MEAN},
    {"sum",
        "The summed loss over the images of a worker's batch. A round takes the mean of its "
        "pushes, as TensorFlow's SyncReplicasOptimizer does: with W workers of `dist_sync`, the "
        "sum is divided by W. The sums of a worker's devices are added without a division.",
        LossReduction::SUM},
};

constexpr configs::Word<nn::Precision> PRECISIONS[] = {
    {"fp32", "float32 throughout.", nn::Precision::FP32},
    {"bf16",
        "Activations and their gradients are rounded to bfloat16, as PyTorch's autocast does. The "
        "sums of residual branches are rounded after each addition, and so are the sums of "
        "gradients where several layers use one value. Weights are rounded in convolutions that "
        "run on bfloat16 instructions, but not in those computed with Winograd's algorithm or as "
        "matrix products. Parameters, their gradients, sums within an op, batch statistics and the "
        "loss stay float32. So do dense layers on processors without AMX. CPUs need AVX512_BF16. "
        "With AMX, all convolutions and dense layers run on bfloat16 instructions.",
        nn::Precision::BF16},
    {"tf32",
        "For GPUs only: float32, but convolutions and dense layers round their operands to TF32 "
        "(11 significant bits).",
        nn::Precision::TF32},
    {"fp16", "For GPUs only: like bf16, but with IEEE half precision. See `loss_scale`.",
        nn::Precision::FP16},
    {"auto",
        "For processors only: bf16 if all workers compute with AMX (`cluster.instruction_set`), "
        "otherwise fp32. The run's experiment.toml names the one that was used.",
        nn::Precision::AUTO},
};

}  // namespace

kj::StringPtr wordOf(nn::Precision precision) {
  for (auto& row: PRECISIONS) {
    if (row.value == precision) return row.name;
  }
  KJ_UNREACHABLE;
}

namespace {

// Reads keys that have no meaning without a GPU. The resolved experiment leaves them out if the
// file does not have them.
void readOfGpus(configs::Reader& reader, TrainConfig& config) {
  constexpr double LOSS_SCALE = 1024;
  config.lossScale = LOSS_SCALE;
  if (reader.isManual() || reader.has("loss_scale")) {
    config.lossScale = reader.real("loss_scale",
        "For `fp16`: the mean loss of a batch is multiplied by this number, and the gradients of "
        "the parameters are divided by it. This keeps small gradients inside the network from "
        "becoming 0.",
        {.above = 0}, LOSS_SCALE);
    if (!reader.isManual() && config.precision != nn::Precision::FP16) {
      reader.error("loss_scale", "only precision `fp16` has a `loss_scale`",
          "leave it out, or choose precision = \"fp16\"", {"precision"_kj});
    }
  }
  config.deterministic = false;
  if (reader.isManual() || reader.has("deterministic")) {
    config.deterministic = reader.flag("deterministic",
        "For GPUs: uses only algorithms that give the same bits every time, chosen by a fixed rule "
        "instead of by speed. On CPUs all algorithms give the same bits every time.",
        false);
  }
}

}  // namespace

EarlyStop EarlyStop::read(configs::Reader& reader) {
  return {uint(reader.integer("patience",
      "The run ends after this many epochs in a row without a new best validation accuracy.",
      {.atLeast = 1, .atMost = 1000000}))};
}

WeightAverageConfig WeightAverageConfig::read(configs::Reader& reader) {
  return {reader.real("decay",
      "Share of the average that each step keeps. The first steps keep less: (1 + n) / (10 + n) "
      "after n steps, as TensorFlow's ExponentialMovingAverage does with `num_updates`.",
      {.above = 0, .below = 1})};
}

TrainConfig TrainConfig::read(configs::Reader& reader, const nn::Conventions& conventions) {
  TrainConfig config;
  auto steps = reader.maybeInteger("steps",
      "Number of updates after which the job ends, unless it completes `epochs` earlier. In "
      "`dist_async`, `dist_ssp` and `dc_asgd`, every push is an update. Each worker then makes an "
      "equal share of the updates, rounded up.",
      {.atLeast = 1, .atMost = 1 << 30});
  KJ_IF_MAYBE(s, steps) config.steps = uint64_t(*s);
  if (steps == nullptr || reader.has("epochs") || reader.isManual()) {
    config.epochs = uint(reader.integer("epochs",
        "Passes over the training records. If only `steps` is given, the number of epochs is not "
        "limited.",
        {.atLeast = 1, .atMost = 1000000}, 10));
  }
  config.seed = reader.integer("seed",
      "All random values depend only on this number: initial weights, the order of the records, "
      "crops, mirrors and so on.",
      {.atLeast = 0}, 1);
  config.rules = nn::UpdateRules::read(reader, conventions);
  config.loss = &reader.choose("loss", "The loss whose gradient workers push.",
      kj::arrayPtr(LOSS_REDUCTIONS, kj::size(LOSS_REDUCTIONS)), "mean");
  config.labelSmoothing = reader.real("label_smoothing",
      "Share of a label's weight that training spreads evenly over all classes (Szegedy et al. "
      "2016). Validation does not smooth labels.",
      {.atLeast = 0, .below = 1}, 0);
  config.precision = configs::chooseWord(
      reader, "precision", "The number format of calculations.", PRECISIONS, "fp32");
  config.precisionSpan = reader.span("precision");
  readOfGpus(reader, config);
  // The resolved experiment leaves these out if the file does not have them.
  config.earlyStop = reader.maybeSection("early_stop",
      "Ends the run before its last epoch if the validation accuracy no longer improves. With "
      "checkpoint.keep_best, best.safetensors then has the weights of the best epoch. With several "
      "`data.validation_views`, `data.validation_views_at` must be `every`.",
      EarlyStop::read);
  config.average = reader.maybeSection("ema",
      "Keeps a moving average of parameters and moving statistics, and validates it at the end of "
      "the run. Its weights are in ema.safetensors. Does not change the training. Cannot be "
      "combined with modes `local_sgd` and `easgd`, several devices per worker, `cluster.on_loss = "
      "\"continue\"`, or a GPU in modes `local` and `device`.",
      WeightAverageConfig::read);
  return config;
}

}  // namespace runner
