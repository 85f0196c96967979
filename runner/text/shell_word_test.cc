#include "runner/text/shell_word.h"

#include <doctest/doctest.h>

#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

TEST_CASE("shellWord: a shell reads every text back as one word") {
  CHECK(shellWord("runs/x.toml") == "runs/x.toml");
  CHECK(shellWord("") == "''");
  for (auto word: {"a b"_kj, "it's"_kj, "$HOME `id` \"x\" \\ * ~ # ;&|<>(){}!"_kj, "two\nlines"_kj,
           "~/runs"_kj, "[fd00::1]:7000"_kj, "#"_kj, "größe"_kj}) {
    auto script = kj::str("printf %s ", shellWord(word));
    CHECK(tests::Command({"sh", "-c", script}).wait().output == word);
  }
}

}  // namespace
}  // namespace runner
