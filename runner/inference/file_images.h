// runner/inference/file_images.h: computes the predictions of a trained network for image files.
#pragma once

#include <kj/exception.h>
#include <kj/function.h>
#include <kj/string.h>

#include "runner/inference/trained_model.h"

namespace runner {

// An image file of the user.
struct ImageFileName {
  kj::String path;     // "-": standard input
  int32_t label = -1;  // its class, if that is known
};

// Returns the files that `path` names: itself, or all files below it if it is a folder, sorted by
// their paths. Throws if there is nothing at `path`, or if it cannot be read. Calls `leftOut` with
// entries that are not files, and folders that cannot be listed. Warns of hidden files and folders,
// which it leaves out, and of empty folders.
kj::Array<ImageFileName> imageFilesAt(
    kj::StringPtr path, kj::FunctionParam<void(kj::StringPtr)> leftOut);

// A network's prediction for one file.
struct FileAnswer {
  size_t index;                      // of the file in the list
  kj::Maybe<kj::String> problem;     // why there is no answer: "photo.jpg is not …"
  kj::ArrayPtr<const float> logits;  // one per class; the mean over all views. Or empty
};

// Computes on files in the order of their list, with the views of the last validation of a run.
// Logits differ from those of a validation by rounding, because the sizes of batches and the
// numbers of threads differ. For one thread.
class FileImages {
public:
  // Makes a program for batches of `batchSize` images, which uses all cores. Call
  // model.computeHere() first. The model must outlive it.
  FileImages(TrainedModel& model, uint batchSize);
  ~FileImages() noexcept(false);
  KJ_DISALLOW_COPY(FileImages);

  // Calls `take` once per file, in their order. The logits are valid until it returns.
  void run(
      kj::ArrayPtr<const ImageFileName> files, kj::FunctionParam<void(const FileAnswer&)> take);

private:
  struct Row;
  struct Batch;
  class Decoder;

  // Reads files into `batch`, and lets it show the first view.
  void read(Batch& batch, kj::ArrayPtr<const ImageFileName> files);
  void show(Batch& batch, const io::View& view);
  // Sets `means` to the logits of a batch that shows the first view.
  void compute(Batch& batch);
  // Calls work(decoder, row) once for each of the first `count` rows, on all threads.
  void onAllThreads(size_t count, kj::FunctionParam<void(Decoder&, size_t row)> work);

  TrainedModel& model;
  const io::Augmenter augmenter;
  const kj::ArrayPtr<const io::View> views;
  kj::Own<nn::Program> program;
  kj::Vector<kj::Own<Decoder>> decoders;  // one per thread
  kj::Own<Batch> batches[2];  // the present one, and the next one, which is read meanwhile
  kj::Array<float> means;     // of the logits of all views, N×classes
  kj::Array<int32_t> labels;
};

}  // namespace runner
