// runner/inference/judgement.h: judges a trained network by images whose classes are known.
#pragma once

#include <kj/function.h>

#include "io/progress.h"
#include "nn/confusion.h"
#include "runner/inference/trained_model.h"

namespace runner {

// An image that the network assigned to a wrong class.
struct WrongImage {
  uint64_t number;  // of its record in the data set, or of its file in the list
  uint label;
  uint predicted;
  float probability;  // of `predicted`
  double loss;
};

// Throws if a sum of losses is not finite. The message names the path of the weights and the
// `images`: "a batch of validation images".
void requireFinite(double lossSum, kj::StringPtr weights, kj::StringPtr images);

// Sums the results of a network over images: its loss, its hits, its confusion matrix, and its
// worst mistakes. For one thread.
class Judgement {
public:
  // Counts the images whose label is among the `topK` largest logits, unless `topK` is 0. Keeps the
  // `wrongMax` wrong images whose labels the network found least likely.
  Judgement(uint topK, size_t wrongMax): topK(topK), wrongMax(wrongMax) {}

  // Returns an empty judgement with the same settings.
  Judgement likeThis() const { return Judgement(topK, wrongMax); }

  // Adds a batch. `logits` is N×classes. `numbers` are those of the N images. `result` is that of
  // the batch: see nn::Program::result(), nn::judge().
  void add(const nn::BatchResult& result, kj::ArrayPtr<const float> logits,
      kj::ArrayPtr<const int32_t> labels, kj::ArrayPtr<const uint64_t> numbers);

  // Adds all that `other` has counted.
  void add(const Judgement& other);

  nn::BatchResult sums;
  nn::Confusion confusion;
  // Returns the wrong images, the least likely label first. Of equal ones, the first image first.
  kj::ArrayPtr<const WrongImage> wrong() const { return kept; }

  // As in nn::BatchResult. NaN if there are no images.
  double loss() const { return sums.meanLoss(); }
  double accuracy() const { return sums.accuracy(); }
  double topKAccuracy() const { return sums.topKAccuracy(); }

private:
  void keepWrong(const WrongImage& image);

  const uint topK;
  const size_t wrongMax;
  kj::Vector<WrongImage> kept;
};

// Adds the validation images of the model's experiment to `judgement`. Computes the same bits as
// the last validation of its run: it uses the same records, batches and views, and one part per
// worker, with as many threads as a worker. Computes several parts at a time if there are enough
// cores. Call model.computeHere() first. Returns one sentence per record that cannot be read and is
// left out. `progress` is called by other threads, one at a time.
kj::Array<kj::String> judgeValidation(const TrainedModel& model, const io::Dataset& dataset,
    Judgement& judgement, io::Progress& progress);

}  // namespace runner
