#include "tests/recipe.h"

#include <kj/debug.h>

#include "tests/run.h"
#include "tests/text.h"

namespace tests {

kj::String recipe(kj::StringPtr section, kj::StringPtr part) {
  bool isInSection = false, isInBlock = false;
  kj::Vector<kj::String> block;
  for (auto& line: linesOf(readFile("docs/clusters.md"))) {
    if (line.startsWith("## ")) isInSection = line.slice(3) == section;
    if (!isInSection) continue;
    if (line.startsWith("```")) {
      isInBlock = !isInBlock;
      auto text = kj::strArray(block, "");
      if (contains(text, part)) return text;
      block = {};
    } else if (isInBlock) {
      block.add(kj::str(line, "\n"));
    }
  }
  KJ_FAIL_REQUIRE("no such block", section, part);
}

}  // namespace tests
