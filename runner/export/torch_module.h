// runner/export/torch_module.h: a trained network as a PyTorch module: a Python script, and a file
// of weights beside it.
#pragma once

#include "runner/export/exported_network.h"
#include "runner/export/preprocessing.h"

namespace runner {

// The name of a text in the header of torchWeights(). No other file of weights has it.
constexpr kj::StringPtr EXPORT_NOTE = "preprocessing"_kj;

// Returns the text of the script. It reads the file of the same name that ends in .safetensors.
kj::String torchScript(const ExportedNetwork& network, const Preprocessing& preprocessing);

// Returns the bytes of that file: the state dict, with PyTorch's names (`conv1.weight`,
// `bn1.running_mean`), in the safetensors format. It also has the mean image, if there is one.
kj::Array<kj::byte> torchWeights(
    const ExportedNetwork& network, const Preprocessing& preprocessing);

}  // namespace runner
