// runner/export/torch_preprocess.h: the pre-processing of images as Python code.
#pragma once

#include "runner/export/preprocessing.h"

namespace runner {

// The name of a mean image among the tensors of the exported file.
constexpr kj::StringPtr MEAN_IMAGE = "mean_image"_kj;

// Returns the code of a function preprocess(), and of the functions that it calls, except
// read_tensors(), which returns a mean image. torchScript() adds that function. Images of other
// sizes than those of the data set are treated as io::ImageFitter does.
kj::String torchPreprocess(const Preprocessing& preprocessing);

}  // namespace runner
