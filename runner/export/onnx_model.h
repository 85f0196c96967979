// runner/export/onnx_model.h: a trained network as an ONNX file.
#pragma once

#include "runner/export/exported_network.h"
#include "runner/export/preprocessing.h"

namespace runner {

struct OnnxOptions {
  // Whether the network takes pixels from 0 to 255 after resizing and cropping, and normalises
  // them itself.
  bool withPreprocessing = false;
  // Whether the output has probabilities in place of logits.
  bool probabilities = false;
};

// Returns the bytes of an ONNX model: opset 13, IR version 8. Its input `images` is float32,
// N×C×H×W with any N. Its output `logits` (or `probabilities`) is N×classes. The metadata has
// `experiment_sha256` and `class_names` (one per line) as far as they are known, and
// `preprocessing`, as JSON.
//
// Throws, and says what to do, if the values do not fit into the 2 GiB that such a file may have.
kj::Array<kj::byte> onnxModel(
    const ExportedNetwork& network, const Preprocessing& preprocessing, OnnxOptions options);

}  // namespace runner
