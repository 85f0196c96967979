// `runner check` on each x.toml here must print exactly x.expected on stderr and end with exit code
// 2. A first line `# with: --set a.b=c` adds these words to the command. To add a case: write the
// file, run tests/update.sh, and read what it wrote as a user would.
#include <doctest/doctest.h>
#include <glob.h>
#include <kj/vector.h>
#include <unistd.h>

#include "tests/command.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr RUNNER = "runner/runner"_kj;
constexpr kj::StringPtr FOLDER = "tests/bad"_kj;

kj::Array<kj::String> badFiles() {
  glob_t found;
  REQUIRE(glob(kj::str(FOLDER, "/*.toml").cStr(), 0, nullptr, &found) == 0);
  KJ_DEFER(globfree(&found));
  return KJ_MAP(path, kj::arrayPtr(found.gl_pathv, found.gl_pathc)) {
    return kj::str(path);
  };
}

// The words after `# with:` in the first line.
kj::Array<kj::String> wordsWith(kj::StringPtr text) {
  constexpr kj::StringPtr MARK = "# with: "_kj;
  kj::Vector<kj::String> words;
  if (!text.startsWith(MARK)) return nullptr;
  size_t begin = MARK.size();
  for (size_t i = begin;; ++i) {
    if (text[i] != ' ' && text[i] != '\n') continue;
    words.add(kj::heapString(text.slice(begin, i)));
    begin = i + 1;
    if (text[i] == '\n') return words.releaseAsArray();
  }
}

Ended check(kj::StringPtr file, kj::ArrayPtr<const kj::String> more) {
  kj::Vector<kj::StringPtr> words;
  words.addAll(kj::ArrayPtr<const kj::StringPtr>({RUNNER, "check", file}));
  for (auto& word: more) words.add(word);
  return Command(words).wait();
}

TEST_CASE("check prints for each bad file exactly what is expected, and ends with exit code 2") {
  auto files = badFiles();
  CHECK(files.size() >= 20);
  for (auto& file: files) {
    auto stem = kj::heapString(file.slice(0, file.size() - kj::StringPtr(".toml").size()));
    auto expected = readFile(kj::str(stem, ".expected"));
    auto ended = check(file, wordsWith(readFile(file)));
    INFO(file, "\nprinted:\n", ended.errors, "\nexpected:\n", expected);
    CHECK(ended.errors == expected);
    CHECK(ended.exitCode == 2);
    CHECK(ended.output == "");
  }
}

TEST_CASE("check says where there is no file, and ends with exit code 2") {
  auto ended = check("tests/bad/nowhere.toml", nullptr);
  CHECK(ended.errors == "error: cannot read tests/bad/nowhere.toml: No such file or directory\n");
  CHECK(ended.exitCode == 2);
}

TEST_CASE("a command that cannot be understood ends with exit code 2 and says how to ask") {
  auto refuse = [](kj::ArrayPtr<const kj::StringPtr> words) {
    auto ended = Command(words).wait();
    INFO(kj::strArray(words, " "), "\n", ended.errors);
    CHECK(ended.exitCode == 2);
    CHECK(ended.output == "");
    CHECK(ended.errors.startsWith("runner"));
  };
  refuse({RUNNER});
  refuse({RUNNER, "chekc", "x.toml"});
  refuse({RUNNER, "check"});
  refuse({RUNNER, "check", "x.toml", "--set", "train.epochs"});
  refuse({RUNNER, "check", "--no-such-option", "x.toml"});
  refuse({RUNNER, "role", "x.toml"});
}

}  // namespace
}  // namespace tests
