// runner/weights/weights_notes.h: the notes in a file of weights, with which it can be used without
// its run. docs/formats/weights.md describes the texts.
#pragma once

#include "runner/checkpoints/safetensors.h"
#include "runner/experiment/model_facts.h"
#include "runner/weights/weights_file.h"

namespace runner {

// The most bytes that the notes take in the header of a file. A mean image that does not fit is
// left out.
constexpr uint64_t NOTES_BYTES_MAX = 2 << 20;

// Returns the notes of the weights that an experiment has trained, beside those of weightsHead().
// `resolved` is the text of its experiment.toml. Leaves out secrets in the addresses of its data.
// If the experiment subtracts the mean image and `facts` do not have it, opens the data set, whose
// content is fixed then. Leaves the mean image out if this machine does not have the data set.
kj::Array<Note> notesOf(
    kj::StringPtr resolved, const Experiment& experiment, const ModelFacts& facts);

// The content of these notes.
struct WeightsNotes {
  kj::String resolved;
  io::DatasetFacts facts;      // without the numbers of records
  kj::Array<float> meanImage;  // empty if there is none, or if it was left out
};

// Reads the notes of `file`. Null if it has none, because another program or an older version of
// this one wrote it. Throws, with the path, if they contradict each other.
kj::Maybe<WeightsNotes> readNotes(const WeightsFile& file);

}  // namespace runner
