// The output on terminals of several widths: nothing is cut off, and no line is too long.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/vector.h>

#include "configs/language/display_width.h"
#include "tests/run.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr MLP = "tests/cluster/mlp.toml"_kj;

// The output of `command` on a terminal with this many columns, and its exit code.
struct Shown {
  kj::String text;
  int exitCode;
};
Shown shownAt(uint columns, kj::StringPtr command) {
  auto shell = kj::str("stty cols ", columns, " rows 24; ", command);
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache, "TERM=xterm"};
  auto ended = Command({"script", "--quiet", "--return", "--command", shell, "/dev/null"},
      {.environment = environment})
                   .wait();
  // The terminal's driver turns \n into \r\n.
  kj::Vector<char> text;
  for (char c: ended.output) {
    if (c != '\r') text.add(c);
  }
  return {kj::heapString(text), ended.exitCode};
}

kj::Vector<kj::String> partsOf(kj::StringPtr text, char separator) {
  kj::Vector<kj::String> parts;
  while (text.size() > 0) {
    size_t end = text.findFirst(separator).orDefault(text.size());
    if (end > 0) parts.add(kj::heapString(text.slice(0, end)));
    text = text.slice(kj::min(text.size(), end + 1));
  }
  return parts;
}

// The text without its line breaks and gaps.
kj::String wordsOf(kj::StringPtr text) {
  kj::Vector<kj::String> words;
  for (auto& line: partsOf(text, '\n')) {
    for (auto& word: partsOf(line, ' ')) words.add(kj::mv(word));
  }
  return kj::strArray(words, " ");
}

// Returns the first line that is too long although it has a gap to break at. Empty if there is
// none.
kj::String tooLong(kj::StringPtr text, uint columns) {
  for (auto& line: partsOf(text, '\n')) {
    bool isWord = partsOf(line, ' ').size() == 1;
    if (configs::columnsOf(line) > columns && !isWord) return kj::mv(line);
  }
  return nullptr;
}

TEST_CASE("at a terminal sentences are wrapped between words, and none is lost") {
  auto file = kj::str(newFolder(), "/x.toml");
  writeFile(file, "name = \"x\"\n[data]\nbatch_siz = 3\n");
  for (auto& command: {kj::str(RUNNER, " --help"), kj::str(RUNNER, " run --help"),
           kj::str(RUNNER, " chekc"), kj::str(RUNNER, " run --sweep x ", MLP),
           kj::str(RUNNER, " devices"), kj::str(RUNNER, " check ", MLP),
           kj::str(RUNNER, " check ", file), kj::str(RUNNER, " run ", file, " --set x")}) {
    auto plain = Command({"sh", "-c", kj::str(command, " 2>&1")}).wait();
    for (uint columns: {40, 60, 80, 100}) {
      INFO(command, " at ", columns);
      auto shown = shownAt(columns, command);
      CHECK(shown.exitCode == plain.exitCode);
      CHECK(wordsOf(shown.text) == wordsOf(plain.output));
      CHECK(tooLong(shown.text, columns) == "");
    }
    auto wide = shownAt(1000, command);
    CHECK(wide.text == plain.output);
  }
}

TEST_CASE("at a terminal a source line and its carets fit, wide characters or not") {
  auto file = kj::str(newFolder(), "/x.toml");
  writeFile(file, "name = \"名前\" x # 学習率 of the first layers of all networks\n");
  auto shown = shownAt(40, kj::str(RUNNER, " check ", file));
  INFO(shown.text);
  CHECK(contains(shown.text,
      "\n  1 | name = \"名前\" x # 学習率 of the …\n"
      "    |               ^\n"));
}

TEST_CASE("at a terminal a table is aligned, as wide as the terminal, and says where the rest is") {
  auto run = train(MLP, {"train.steps=20", "cluster.workers=2", "cluster.servers=1"});
  auto command = kj::str(RUNNER, " table ", run.folder);
  auto wide = shownAt(250, command), narrow = shownAt(50, command);
  for (auto text: {kj::StringPtr(wide.text), kj::StringPtr(narrow.text)}) {
    INFO(text);
    CHECK(text.startsWith("epoch  train-accuracy  valid-accuracy  time\n"));
    CHECK(contains(text, "\nworker 1  "));
    CHECK_FALSE(contains(text, "|"));
  }
  kj::StringPtr rest = "\nAll columns: table.md and report.html in"_kj;
  CHECK(wide.text.endsWith(kj::str(rest, " ", run.folder, "\n")));
  // The path is on a separate line, from which it can be copied.
  CHECK(narrow.text.endsWith(kj::str(rest, "\n", run.folder, "\n")));
  CHECK(contains(wide.text, "  transport  "));
  CHECK(contains(wide.text, "  staleness\n"));
  CHECK_FALSE(contains(narrow.text, "staleness"));
  CHECK(tooLong(narrow.text, 50) == "");
}

TEST_CASE("at a terminal a run's first line and its missed expectations are wrapped") {
  auto shown = shownAt(
      60, kj::str(RUNNER, " run ", MLP, " --runs ", newFolder(),
              " --set train.steps=20 --set expect.validation_accuracy.at_least=1 >/dev/null"));
  INFO(shown.text);
  CHECK(shown.exitCode == 3);
  CHECK(contains(wordsOf(shown.text), ": 2 servers and 2 workers, 200 images per step, 20 steps "));
  CHECK(contains(shown.text, "expectation missed: validation_accuracy of epoch 1 is\n  0."));
  CHECK(contains(wordsOf(shown.text), ", expected at least 1"));
}

TEST_CASE("at a narrow terminal the runs of a sweep have different names") {
  auto runs = newFolder();
  auto shown = shownAt(
      40, kj::str(RUNNER, " run tests/sweep/small.toml --runs ", runs,
              " --set train.steps=20 --sweep train.optimizer.learning_rate=0.1,1e38 2>/dev/null"));
  INFO(shown.text);
  CHECK(shown.exitCode == 1);
  for (auto name: {"\n1 batch_si"_kj, "\n2 batch_si"_kj, "\n3 batch_si"_kj, "\n4 batch_si"_kj}) {
    CHECK(contains(shown.text, name));
  }
  CHECK(tooLong(shown.text, 40) == "");
  auto told = shownAt(
      40, kj::str(RUNNER, " run tests/sweep/small.toml --runs ", runs,
              " --set train.steps=20 --sweep train.optimizer.learning_rate=0.1,1e38 >/dev/null"));
  INFO(told.text);
  CHECK(contains(told.text, "error: 2 of 4 runs failed. The table\n  says why. The same command"));
}

}  // namespace
}  // namespace tests
