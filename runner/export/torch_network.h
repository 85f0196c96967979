// runner/export/torch_network.h: a network as the Python code of a PyTorch module.
#pragma once

#include "runner/export/exported_network.h"

namespace runner {

// Returns the code of a class `Network`, which is a torch.nn.Module. `names` is torchNames().
kj::String torchNetwork(const nn::Graph& graph, kj::ArrayPtr<const kj::String> names);

}  // namespace runner
