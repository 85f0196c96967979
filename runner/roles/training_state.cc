#include "runner/roles/training_state.h"

#include <math.h>

#include "configs/language/failure.h"

namespace runner {

namespace {

void requireFinite(const TrainingState& state, const nn::BatchResult& result, bool isFirst) {
  if (isfinite(result.lossSum)) return;
  configs::fail("the loss is ", result.lossSum, " at step ", state.step, " (epoch ", state.epoch,
      ")",
      isFirst ? ", before the first update of this worker: check the scale of the images "
                "(data.augment.scale, mean and deviation) and model.init"
              : ": training diverged; lower train.optimizer.learning_rate");
}

template <typename Named>
void requireFinite(const kj::Array<Named>& arrays, kj::ArrayPtr<const float> values) {
  for (auto& array: arrays) {
    for (float x: values.slice(array.offset, array.offset + array.size)) {
      if (isfinite(x)) continue;
      configs::fail("`", array.name, "` holds ", x,
          " at the end of the run: training diverged; lower train.optimizer.learning_rate");
    }
  }
}

}  // namespace

void TrainingState::add(const nn::BatchResult& result, bool isFirst) {
  requireFinite(*this, result, isFirst);
  sums.add(result);
}

void TrainingState::replaceSums(const nn::BatchResult& newSums, bool isFirst) {
  requireFinite(*this, newSums, isFirst);
  sums = newSums;
}

void TrainingState::visitState(configs::StateVisitor& visitor) {
  visitor.count("worker.epoch", epoch);
  visitor.count("worker.step", step);
  visitor.number("worker.loss_sum", sums.lossSum);
  visitor.count("worker.correct", sums.correct);
  visitor.count("worker.images", sums.images);
  visitor.number("worker.read_s", times.read_s);
  visitor.number("worker.forward_s", times.forward_s);
  visitor.number("worker.backward_s", times.backward_s);
  visitor.number("worker.push_s", times.push_s);
  visitor.number("worker.pull_s", times.pull_s);
}

void TrainingState::show(LiveProgress& progress) const {
  progress.epoch = epoch;
  progress.step = step;
  progress.lossSum = sums.lossSum;
  progress.correct = sums.correct;
  progress.images = sums.images;
  progress.read_s = times.read_s;
  progress.steps_s = times.all_s();
}

void requireFinite(const nn::Graph& graph, kj::ArrayPtr<const float> parameters,
    kj::ArrayPtr<const float> statistics) {
  requireFinite(graph.keys, parameters);
  requireFinite(graph.statistics, statistics);
}

}  // namespace runner
