#include "runner/logs/confusion_file.h"

#include <doctest/doctest.h>
#include <kj/exception.h>
#include <stdlib.h>

#include "runner/system/files.h"

namespace runner {
namespace {

// Returns the message about `text`. Empty if it is accepted.
kj::String complaint(kj::StringPtr text) {
  auto parse = [&]() { parseConfusion(text, "c.csv"); };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(parse)) return kj::str(e->getDescription());
  return nullptr;
}

TEST_CASE("classesText: has one line per class, which readClasses() reads back") {
  auto path = kj::str(::getenv("TEST_TMPDIR"), "/classes.txt");
  auto text = classesText(kj::arr(kj::str("cat"), kj::str(), kj::str("a\nb")));
  CHECK(text == "cat\n\na b\n");
  writeWhole(path, text);
  CHECK(kj::strArray(readClasses(path), ",") == "cat,,a b");
}

TEST_CASE("confusionText: has one line per cell, which parseConfusion() reads back") {
  const nn::ConfusionCell cells[] = {{0, 0, 900}, {0, 6, 100}, {21840, 3, 1}};
  auto text = confusionText(cells);
  CHECK(text == "label,predicted,images\n0,0,900\n0,6,100\n21840,3,1\n");
  auto read = parseConfusion(text, "c.csv");
  CHECK(confusionText(read) == text);
  CHECK(parseConfusion(confusionText(nullptr), "c.csv").size() == 0);
}

TEST_CASE("parseConfusion: names the wrong line") {
  CHECK(complaint("label,predicted\n") ==
        "c.csv does not begin with `label,predicted,images`: another program wrote or changed the "
        "file; remove it");
  constexpr kj::StringPtr WRONG[] = {"0,0"_kj, "0,0,1"_kj, "0,0,0\n"_kj, "0,0,-1\n"_kj, "0,,1\n"_kj,
      ",0,1\n"_kj, "0,0,1,\n"_kj, "0,0,1\r\n"_kj, "1234567890,0,1\n"_kj,
      "0,0,1234567890123456\n"_kj, "\n"_kj, "0,4,1\n"_kj, "0,5,1\n"_kj};
  for (auto line: WRONG) {
    CAPTURE(line.cStr());
    CHECK(complaint(kj::str("label,predicted,images\n0,5,2\n", line)) ==
          "c.csv:3 is not the next label, prediction and number of images: another program wrote "
          "or changed the file; remove it");
  }
  CHECK(complaint("label,predicted,images\n0,5,2\n0,6,123456789012345\n") == "");
}

}  // namespace
}  // namespace runner
