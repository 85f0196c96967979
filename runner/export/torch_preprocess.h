// runner/export/torch_preprocess.h: the pre-processing of images as Python code.
#pragma once

#include "runner/export/preprocessing.h"

namespace runner {

// The name of a mean image among the tensors of the exported file.
constexpr kj::StringPtr MEAN_IMAGE = "mean_image"_kj;

// Returns the code of a function preprocess(), for images with `channels` channels. It calls
// read_tensors() if there is a mean image.
kj::String torchPreprocess(const Preprocessing& preprocessing, uint channels);

}  // namespace runner
