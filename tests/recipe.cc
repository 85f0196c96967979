#include "tests/recipe.h"

#include <kj/debug.h>
#include <stdlib.h>

#include <filesystem>

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

kj::String withHosts(kj::StringPtr recipe, kj::StringPtr node1, kj::StringPtr node2) {
  auto change = kj::str("s/node1/", node1, "/g; s/node2/", node2, "/g");
  return Command({"sh", "-c", "echo \"$1\" | sed \"$2\"", "sh", recipe, change}).wait().output;
}

kj::String pathSetting() {
  auto here = std::filesystem::current_path();
  return kj::str("PATH=", here.c_str(), "/runner:", ::getenv("PATH"));
}

}  // namespace tests
