// tests/recipe.h: the recipes in docs/clusters.md, for the tests that run them.
#pragma once

#include <kj/string.h>

namespace tests {

// Returns the first block of code below the heading `## <section>` of docs/clusters.md that
// contains `part`. Throws if there is none.
kj::String recipe(kj::StringPtr section, kj::StringPtr part);

}  // namespace tests
