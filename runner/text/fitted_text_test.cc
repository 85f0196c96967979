#include "runner/text/fitted_text.h"

#include <doctest/doctest.h>
#include <stdlib.h>

namespace runner {
namespace {

TEST_CASE("shortened: cuts a text that is too long between two words") {
  CHECK(shortened("one two three", 13) == "one two three");
  CHECK(shortened("one two three", 12) == "one two…");
  CHECK(shortened("one two three", 8) == "one two…");
  CHECK(shortened("size=128,rate=0.05,seed=1", 20) == "size=128,rate=0.05,…");
  CHECK(shortened("size=128,rate=0.05,seed=1", 19) == "size=128,…");
}

TEST_CASE("shortened: cuts a single long word between two characters") {
  CHECK(shortened("äöüäöü", 4) == "äöü…");
  CHECK(shortened("a bcdefghijkl", 8) == "a bcdef…");
  CHECK(shortened("abc", 1) == "…");
  CHECK(shortened("abc", 0) == "");
  CHECK(shortened("学習率の値", 6) == "学習…");
  CHECK(shortened("e\u0301e\u0301e\u0301", 2) == "e\u0301…");
}

TEST_CASE("shortenedName: keeps the start and the end") {
  CHECK(shortenedName("grid/rate=0.05-3123b34d", 23) == "grid/rate=0.05-3123b34d");
  CHECK(shortenedName("grid/rate=0.05-3123b34d", 11) == "grid/…3b34d");
  CHECK(shortenedName("äöüäöü", 4) == "ä…öü");
  CHECK(shortenedName("abc", 2) == "…c");
  CHECK(shortenedName("abc", 1) == "…");
  CHECK(shortenedName("abc", 0) == "");
  CHECK(shortenedName("学習率の値", 6) == "学…値");
}

TEST_CASE("shortened and shortenedName: fit text also if the ellipsis takes three columns") {
  ::setenv("LC_ALL", "C", 1);
  CHECK(shortened("one two three", 10) == "one two...");
  CHECK(shortened("abc def", 2) == "..");
  CHECK(shortened("abc", 0) == "");
  CHECK(shortenedName("grid/rate=0.05-3123b34d", 11) == "grid...b34d");
  CHECK(shortenedName("grid/rate", 4) == "...e");
  CHECK(fitted("run 1/4: epoch 1/2  step 194/468", 17) == "run 1/4: epoch...");
  ::unsetenv("LC_ALL");
}

TEST_CASE("shortenedNames: different names stay different, with a number where that is needed") {
  const kj::StringPtr names[] = {"rate=0.1,seed=1,momentum=0", "rate=0.1,seed=2,momentum=0",
      "rate=0.1,seed=1,momentum=0", "short"};
  CHECK(kj::strArray(shortenedNames(names, 26), "|") == kj::strArray(names, "|"));
  CHECK(kj::strArray(shortenedNames(names, 12), "|") ==
        "1 rate…tum=0|2 rate…tum=0|1 rate…tum=0|3 short");
  CHECK(kj::strArray(shortenedNames(names, 1), "|") == "…|…|…|…");
  auto last = kj::ArrayPtr<const kj::StringPtr>(names).slice(2, 4);
  CHECK(kj::strArray(shortenedNames(last, 10), "|") == "rate…tum=0|short");
}

TEST_CASE("wrapped: breaks lines at spaces only, and indents the rest of a line") {
  CHECK(wrapped("a reason of many words", 10) == "a reason\n  of many\n  words");
  CHECK(wrapped("/a/path/that/is/long of it", 10) == "/a/path/that/is/long\n  of it");
  CHECK(wrapped("short", 10) == "short");
  CHECK(wrapped("", 10) == "");
  CHECK(wrapped("学習 の値", 8) == "学習\n  の値");
}

TEST_CASE("wrapped: wraps each line separately, and keeps its indentation and its gaps") {
  CHECK(wrapped("one two\n  three  four\n\n", 9) == "one two\n  three\n    four\n\n");
  CHECK(wrapped("a  b  c", 6) == "a  b\n  c");
  auto once = wrapped("  an option with a long text", 12);
  CHECK(wrapped(once, 12) == once);
}

TEST_CASE("fitted: leaves out whole parts, and keeps the remaining time longest") {
  auto line = "run 1/4: epoch 1/2  step 194/468  12511 images/s  loss 0.4  ETA 0:26"_kj;
  CHECK(fitted(line, line.size()) == line);
  CHECK(fitted(line, line.size() - 1) ==
        "run 1/4: epoch 1/2  step 194/468  12511 images/s  ETA 0:26");
  CHECK(fitted(line, 45) == "run 1/4: epoch 1/2  step 194/468  ETA 0:26");
  CHECK(fitted(line, 30) == "run 1/4: epoch 1/2  ETA 0:26");
  CHECK(fitted(line, 20) == "run 1/4: epoch 1/2");
  CHECK(fitted(line, 17) == "run 1/4: epoch…");
}

TEST_CASE("fitted: a long name leaves half of the columns to the text after it") {
  CHECK(fitted("run 1/4 rate=0.1,seed=1,momentum=0.9: epoch 1/2  step 194/468  ETA 0:26", 45) ==
        "run 1/4 ra…omentum=0.9: epoch 1/2  ETA 0:26");
  CHECK(fitted("reading /data/datasets/fashion_mnist, files: 0 of 4 (0 %)", 40) ==
        "reading /dat…_mnist, files: 0 of 4 (0 %)");
}

}  // namespace
}  // namespace runner
