#include "runner/inference/judgement.h"

#include <kj/mutex.h>
#include <kj/thread.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "configs/language/failure.h"
#include "io/batches/batcher.h"
#include "nn/loops/floats.h"
#include "nn/softmax.h"
#include "runner/experiment/devices.h"

namespace runner {

namespace {

bool isWorse(const WrongImage& a, const WrongImage& b) {
  return a.loss > b.loss || (a.loss == b.loss && a.number < b.number);
}

}  // namespace

void requireFinite(double lossSum, kj::StringPtr weights, kj::StringPtr images) {
  if (std::isfinite(lossSum)) return;
  configs::fail("the loss of ", images, " with the weights ", weights, " is ", lossSum,
      ". Check the scale of the images (data.augment), or use the weights of an earlier epoch");
}

void Judgement::add(const nn::BatchResult& result, kj::ArrayPtr<const float> logits,
    kj::ArrayPtr<const int32_t> labels, kj::ArrayPtr<const uint64_t> numbers) {
  sums.add(result);
  if (topK > 0) sums.inTopK += nn::countInTopK(logits, labels, topK);
  confusion.add(logits, labels);
  if (wrongMax == 0) return;
  size_t classes = logits.size() / labels.size();
  for (auto n: kj::indices(labels)) {
    if (labels[n] < 0) continue;
    auto row = logits.slice(n * classes, (n + 1) * classes);
    auto [best, sum] = nn::softmaxOf(row);
    uint label = labels[n];
    if (best == label) continue;
    keepWrong({numbers[n], label, best, float(1 / sum), std::log(sum) + row[best] - row[label]});
  }
}

void Judgement::keepWrong(const WrongImage& image) {
  bool isFull = kept.size() == wrongMax;
  if (isFull && !isWorse(image, kept.back())) return;
  if (isFull) kept.removeLast();
  kept.add(image);
  std::inplace_merge(kept.begin(), kept.end() - 1, kept.end(), &isWorse);
}

void Judgement::add(const Judgement& other) {
  sums.add(other.sums);
  for (auto& cell: other.confusion.cells()) confusion.add(cell);
  for (auto& image: other.kept) keepWrong(image);
}

namespace {

// Judges parts of the validation images on one thread.
class PartJudge {
public:
  // `judged` is called with the number of images of each batch. All arguments must outlive it.
  PartJudge(
      const TrainedModel& model, const io::Dataset& dataset, kj::Function<void(uint images)> judged)
      : path(model.path),
        data(model.experiment().data),
        segments(model.graph.segments.size()),
        program(model.newProgram()),
        batcher(io::Batcher::validation(dataset, data, 1, 0)),
        means(nn::zeros(data.batchSize * size_t(model.graph.classes))),
        judged(kj::mv(judged)) {}

  void judge(uint part, uint parts, Judgement& judgement) {
    batcher->take(part, parts);
    batcher->restart(data.views(true));
    for (;;) {
      KJ_IF_MAYBE(batch, batcher->next()) {
        add(*batch, judgement);
      } else {
        return;
      }
    }
  }

  kj::Array<kj::String> takeReports() { return batcher->takeReports(); }

private:
  void add(const io::Batch& batch, Judgement& judgement) {
    program->setBatch(batch.pixels, batch.labels, batch.draws);
    for (uint s = 0; s < segments; s++) program->forward(nn::Phase::VALIDATE, s);
    auto logits = program->logits();
    if (batch.views == 1) {
      addFinite(program->result(), logits, batch, judgement);
    } else {
      // With several views, the result is complete after the last one.
      for (auto i: kj::indices(means)) means[i] += batch.weight * logits[i];
      if (!batch.isLastView) return;
      addFinite(nn::judge(means, batch.labels), means, batch, judgement);
      for (auto& x: means) x = 0;
    }
    judged(batch.images);
  }

  void addFinite(const nn::BatchResult& result, kj::ArrayPtr<const float> logits,
      const io::Batch& batch, Judgement& judgement) {
    requireFinite(result.lossSum, path, "a batch of validation images");
    judgement.add(result, logits, batch.labels, batch.records);
  }

  const kj::StringPtr path;  // of the weights
  const io::DataConfig& data;
  const size_t segments;
  kj::Own<nn::Program> program;
  kj::Own<io::Batcher> batcher;
  kj::Array<float> means;  // of the logits of all views, N×classes
  kj::Function<void(uint images)> judged;
};

}  // namespace

kj::Array<kj::String> judgeValidation(const TrainedModel& model, const io::Dataset& dataset,
    Judgement& judgement, io::Progress& progress) {
  auto& experiment = model.experiment();
  auto& data = experiment.data;
  uint parts = data.eachValidatesAll() ? 1 : experiment.cluster.workers;
  uint64_t all = data.validatesOnHeldOut() ? data.heldOut : dataset.validation().count();

  // What the threads share.
  struct Common {
    uint next = 0;  // part
    uint64_t done = 0;
    kj::Vector<kj::String> reports;
    kj::Maybe<kj::Exception> problem;
  };
  kj::MutexGuarded<Common> common;
  auto judged = kj::heapArray<kj::Own<Judgement>>(parts);
  for (auto& each: judged) each = kj::heap<Judgement>(judgement.likeThis());
  auto work = [&]() {
    PartJudge judge(model, dataset, [&](uint images) {
      auto locked = common.lockExclusive();
      locked->done += images;
      progress("evaluating, images", locked->done, all);
    });
    auto take = [&]() {
      auto locked = common.lockExclusive();
      return locked->problem == nullptr ? locked->next++ : parts;
    };
    for (uint part = take(); part < parts; part = take()) judge.judge(part, parts, *judged[part]);
    for (auto& report: judge.takeReports()) common.lockExclusive()->reports.add(kj::mv(report));
  };
  auto workOrNote = [&]() {
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(work)) common.lockExclusive()->problem = kj::mv(*e);
  };
  uint cores = kj::max(1u, std::thread::hardware_concurrency());
  uint together = kj::max(1u, cores / experiment.cluster.threadsPerWorker);
  // Several programs on one GPU would only compete for its memory.
  if (haveGpu(experiment.cluster.devices)) together = 1;
  {
    kj::Vector<kj::Own<kj::Thread>> threads;
    for (uint i = 1; i < kj::min(together, parts); i++) {
      threads.add(kj::heap<kj::Thread>([&]() { workOrNote(); }));
    }
    workOrNote();
  }
  auto& result = common.getWithoutLock();
  KJ_IF_MAYBE(e, result.problem) kj::throwFatalException(kj::mv(*e));
  // The sums have the same bits as in the run, because the run also adds its workers in this order.
  for (auto& each: judged) judgement.add(*each);
  return result.reports.releaseAsArray();
}

}  // namespace runner
