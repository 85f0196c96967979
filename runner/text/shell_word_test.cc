#include "runner/text/shell_word.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

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

TEST_CASE("wordsOfShell: returns the same words as a shell") {
  for (auto command: {"ssh -i key"_kj, "  ssh\t -i  'my key' "_kj, "ssh -i \"it's\"'  'x"_kj,
           "a\\ b \\\"c \\~/d"_kj, "\"a\\\"b\\\\c\\d \\$e\" '\\'"_kj, "'' \"\" x"_kj,
           "~/bin/ssh ~ '~' x~ ~/'a b'"_kj, "größe"_kj}) {
    INFO(command);
    auto script = kj::str("printf '%s\n' ", command);
    auto words = KJ_ASSERT_NONNULL(wordsOfShell(command));
    CHECK(tests::Command({"sh", "-c", script}).wait().output ==
          kj::str(kj::strArray(words, "\n"), "\n"));
  }
  CHECK(KJ_ASSERT_NONNULL(wordsOfShell(" \t")).size() == 0);
}

TEST_CASE("wordsOfShell: expands no variables, patterns or commands") {
  auto words = KJ_ASSERT_NONNULL(wordsOfShell("$HOME * `id` #x ~root a;b"));
  CHECK(kj::strArray(words, "|") == "$HOME|*|`id`|#x|~root|a;b");
}

TEST_CASE("wordsOfShell: a command that ends within quotes has no words") {
  for (auto command: {"ssh -i 'key"_kj, "ssh -i \"key"_kj, "ssh \"a\\\""_kj, "ssh \\"_kj}) {
    CHECK(wordsOfShell(command) == nullptr);
  }
}

}  // namespace
}  // namespace runner
