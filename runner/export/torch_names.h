// runner/export/torch_names.h: names and texts in the form that Python needs.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "nn/network/graph.h"

namespace runner {

// Returns for each node the name of its module and of its variable. This is the node's name, or a
// similar one if Python or PyTorch uses that name. All names are different.
kj::Array<kj::String> torchNames(const nn::Graph& graph);

// Returns `text`, which is UTF-8, as a string literal with quotes.
kj::String pythonText(kj::StringPtr text);

}  // namespace runner
