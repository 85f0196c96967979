// runner/inference/trained_model.h: a trained network, with everything that its use needs.
#pragma once

#include "io/images/augment.h"
#include "nn/program.h"
#include "runner/experiment/experiment.h"
#include "runner/weights/load_weights.h"

namespace runner {

// Opened by openTrained().
struct TrainedModel {
  kj::String path;          // of the file of weights
  LoadedExperiment loaded;  // has an experiment
  nn::Graph graph;          // its spans point into `loaded`
  kj::Array<float> parameters;
  kj::Array<float> statistics;
  LoadReport report;
  io::ImageShape imageShape;     // of the stored images; if they differ, of those in a batch
  kj::Array<float> meanImage;    // empty if the experiment subtracts none
  kj::Maybe<kj::String> digest;  // of the experiment that has trained it, if the file says so
  kj::Maybe<kj::String> epoch;   // of the weights, if their file says so: those of the best epoch

  const Experiment& experiment() const { return KJ_ASSERT_NONNULL(loaded.experiment); }
  // Returns the augmentation of its images. The model must outlive it.
  io::Augmenter augmenter() const;
  // Returns the name of a class, or its number if it has no name.
  kj::String className(uint label) const;

  // Computes on this machine from now on, on the devices that the experiment names. If the machine
  // lacks one of them, computes on its processor instead, and returns a sentence about that. Fixes
  // the instructions of the process to those of the run that has trained the model.
  kj::Maybe<kj::String> computeHere();
  // Returns how many images to compute at a time if there are `images` in all. On GPUs this number
  // is always the same, because the program measures for each new number which convolutions are
  // fastest.
  size_t batchOf(size_t images) const;
  // Returns a program of a worker of the experiment that only validates, with the model's values.
  // The model must outlive it.
  kj::Own<nn::Program> newProgram() const;
};

// Opens what `path` names, with `overrides` (`a.b=value`) laid over its experiment:
//   - a run: its last weights, with the run's experiment;
//   - a file of weights of this program, which contains its experiment;
//   - an experiment file (.toml) with model.weights, which may come from another system. Biases
//     that model.skip names are 0, as in a network without them.
// Reads no images, unless the file of weights lacks the mean image or the classes. If they are not
// imported yet, imports them, and reports to `progress`.
//
// Throws, with the way out, if there are no such weights, or if they do not fit the network. If the
// experiment has errors, they are in `loaded.errors`, and nothing else is set.
TrainedModel openTrained(
    kj::StringPtr path, kj::ArrayPtr<const kj::StringPtr> overrides, io::Progress& progress);

}  // namespace runner
