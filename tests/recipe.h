// tests/recipe.h: the recipes in docs/clusters.md, for the tests that run them.
#pragma once

#include <kj/string.h>

namespace tests {

// Returns the first block of code below the heading `## <section>` of docs/clusters.md that
// contains `part`. Throws if there is none.
kj::String recipe(kj::StringPtr section, kj::StringPtr part);

// Returns `recipe` with these names in the place of node1 and node2.
kj::String withHosts(kj::StringPtr recipe, kj::StringPtr node1, kj::StringPtr node2);

// Returns `PATH=…`, by which a shell in any folder finds the `runner` of this test.
kj::String pathSetting();

}  // namespace tests
