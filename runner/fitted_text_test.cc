#include "runner/fitted_text.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

TEST_CASE("columnsOf: a character counts once, however many bytes it has") {
  CHECK(columnsOf("") == 0);
  CHECK(columnsOf("Äpfel …") == 7);
}

TEST_CASE("shortened: a text that is too long ends between two words") {
  CHECK(shortened("one two three", 13) == "one two three");
  CHECK(shortened("one two three", 12) == "one two…");
  CHECK(shortened("one two three", 8) == "one two…");
  CHECK(shortened("size=128,rate=0.05,seed=1", 20) == "size=128,rate=0.05,…");
  CHECK(shortened("size=128,rate=0.05,seed=1", 19) == "size=128,…");
}

TEST_CASE("shortened: a single long word is cut between two characters") {
  CHECK(shortened("äöüäöü", 4) == "äöü…");
  CHECK(shortened("a bcdefghijkl", 8) == "a bcdef…");
  CHECK(shortened("abc", 1) == "…");
  CHECK(shortened("abc", 0) == "");
}

TEST_CASE("shortenedName: the start and the end stay") {
  CHECK(shortenedName("grid/rate=0.05-3123b34d", 23) == "grid/rate=0.05-3123b34d");
  CHECK(shortenedName("grid/rate=0.05-3123b34d", 11) == "grid/…3b34d");
  CHECK(shortenedName("äöüäöü", 4) == "ä…öü");
  CHECK(shortenedName("abc", 2) == "…c");
  CHECK(shortenedName("abc", 1) == "…");
  CHECK(shortenedName("abc", 0) == "");
}

TEST_CASE("wrapped: lines break at spaces, and only there") {
  CHECK(wrapped("a reason of many words", 10) == "a reason\nof many\nwords");
  CHECK(wrapped("a reason of many words", 10, 2) == "a reason\n  of many\n  words");
  CHECK(wrapped("/a/path/that/is/long of it", 10) == "/a/path/that/is/long\nof it");
  CHECK(wrapped("short", 10) == "short");
  CHECK(wrapped("", 10) == "");
}

TEST_CASE("fitted: whole parts are left out, and the remaining time stays longest") {
  auto line = "run 1/4: epoch 1/2  step 194/468  12511 images/s  loss 0.4  ETA 0:26"_kj;
  CHECK(fitted(line, columnsOf(line)) == line);
  CHECK(fitted(line, columnsOf(line) - 1) ==
        "run 1/4: epoch 1/2  step 194/468  12511 images/s  ETA 0:26");
  CHECK(fitted(line, 45) == "run 1/4: epoch 1/2  step 194/468  ETA 0:26");
  CHECK(fitted(line, 30) == "run 1/4: epoch 1/2  ETA 0:26");
  CHECK(fitted(line, 20) == "run 1/4: epoch 1/2");
  CHECK(fitted(line, 17) == "run 1/4: epoch…");
}

}  // namespace
}  // namespace runner
