// runner/export/torch_names.h: names and texts as Python has them.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "nn/network/graph.h"

namespace runner {

// Returns for each node the name of its module and of its variable: that of the node, if Python and
// PyTorch leave it free. Otherwise a name like it. All are different.
kj::Array<kj::String> torchNames(const nn::Graph& graph);

// Returns `text`, which is UTF-8, as a string literal with quotes.
kj::String pythonText(kj::StringPtr text);

}  // namespace runner
