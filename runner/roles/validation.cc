#include "runner/roles/validation.h"

#include "nn/loops/floats.h"
#include "nn/softmax.h"

namespace runner {

Validation::Validation(
    WorkerParts& parts, TrainingState& state, WorkerReports& reports, LiveProgress& progress)
    : worker(parts),
      state(state),
      reports(reports),
      progress(progress),
      part(parts.rank),
      parts(kj::max(parts.experiment.cluster.workers, parts.rank + 1)),
      meanLogits(nn::zeros(parts.experiment.data.batchSize * size_t(parts.facts.graph.classes))) {}

void Validation::run(
    uint newPart, uint newParts, kj::ArrayPtr<const io::View> views, bool mayBeLast) {
  state.sums = {};
  inTopK = 0;
  confusion.clear();
  bool isWhole = worker.experiment.data.eachValidatesAll();
  countsConfusion = mayBeLast && (!isWhole || newPart == 0);
  begin(newPart, newParts, views);
  while (addNext()) {
  }
  KJ_IF_MAYBE(own, worker.trainer) {
    OwnWork work(progress);
    if (views.size() == 1) state.replaceSums(own->runningSums());
  }
  state.sums.inTopK = inTopK;
  reports.badRecords(worker.batches->ofValidation());
}

void Validation::begin(uint newPart, uint newParts, kj::ArrayPtr<const io::View> views) {
  OwnWork work(progress);
  KJ_IF_MAYBE(own, worker.trainer) own->restartSums();
  auto& batcher = worker.batches->ofValidation();
  // These wait for readers that are still busy.
  if (newPart != part || newParts != parts) {
    batcher.take(newPart, newParts);
    part = newPart;
    parts = newParts;
  }
  batcher.restart(views);
}

bool Validation::addNext() {
  OwnWork work(progress);
  KJ_IF_MAYBE(batch, worker.batches->readValidation()) {
    add(*batch);
    return true;
  }
  return false;
}

void Validation::add(const io::Batch& batch) {
  auto& program = *worker.program;
  worker.batches->set();
  for (uint s = 0; s < worker.facts.graph.segments.size(); s++) {
    program.forward(nn::Phase::VALIDATE, s);
  }
  if (batch.views == 1) {
    // A trainer adds the results up itself, and run() fetches the sums once.
    if (worker.trainer == nullptr) state.add(program.result());
    // On GPUs, logits() waits for the batch.
    if (worker.experiment.log.topK > 0 || countsConfusion) count(program.logits(), batch.labels);
    return;
  }
  // The logits of several views are averaged. They give a result after the last view.
  auto logits = program.logits();
  for (auto i: kj::indices(meanLogits)) meanLogits[i] += batch.weight * logits[i];
  if (!batch.isLastView) return;
  state.add(nn::judge(meanLogits, batch.labels));
  count(meanLogits, batch.labels);
  for (auto& x: meanLogits) x = 0;
}

void Validation::count(kj::ArrayPtr<const float> logits, kj::ArrayPtr<const int32_t> labels) {
  uint topK = worker.experiment.log.topK;
  if (topK > 0) inTopK += nn::countInTopK(logits, labels, topK);
  if (countsConfusion) confusion.add(logits, labels);
}

}  // namespace runner
