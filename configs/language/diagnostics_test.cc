#include "configs/language/diagnostics.h"

#include <doctest/doctest.h>

namespace configs {
namespace {

Source source(kj::StringPtr name, kj::StringPtr text) {
  return {kj::str(name), kj::str(text)};
}

TEST_CASE("Diagnostics: an error shows its line, carets under the whole token, and what to do") {
  auto x = source("configs/x.toml", "a = 1\n\n\n\nlearning_rat = 0.1\n");
  Diagnostics diagnostics;
  diagnostics.error(Span{&x, 5, 1, 5, 13}, "unknown key `learning_rat` in [train.optimizer]",
      "did you mean `learning_rate`? (kind, learning_rate)");
  CHECK(diagnostics.count() == 1);
  CHECK(diagnostics.format("configs/x.toml") ==
        "configs/x.toml:5:1: error: unknown key `learning_rat` in [train.optimizer]\n"
        "  5 | learning_rat = 0.1\n"
        "    | ^^^^^^^^^^^^\n"
        "  help: did you mean `learning_rate`? (kind, learning_rate)\n"
        "1 error in configs/x.toml; nothing was started.\n");
}

TEST_CASE("Diagnostics: prints errors in the order of their places, those of the main file first") {
  auto x = source("x.toml", "a = 1\nb = 2\n");
  auto base = source("base.toml", "c = 3\n");
  Diagnostics diagnostics;
  diagnostics.error(Span{&base, 1, 1, 1, 2}, "third");
  diagnostics.error(Span{&x, 2, 5, 2, 6}, "second");
  diagnostics.error(Span{&x, 1, 1, 1, 1}, "first");
  diagnostics.error(Span{}, "nowhere");
  CHECK(diagnostics.format("x.toml") ==
        "error: nowhere\n"
        "x.toml:1:1: error: first\n"
        "x.toml:2:5: error: second\n"
        "  2 | b = 2\n"
        "    |     ^\n"
        "base.toml:1:1: error: third\n"
        "  1 | c = 3\n"
        "    | ^\n"
        "4 errors in x.toml; nothing was started.\n");
}

TEST_CASE(
    "Diagnostics: columns count characters; tabs, line ends and control characters are not printed "
    "raw") {
  auto x = source("x.toml", "\tä = \"€\x1b\" # \xc2\x9bü\r\nb");
  Diagnostics diagnostics;
  diagnostics.error(Span{&x, 1, 6, 1, 10}, "here");
  CHECK(diagnostics.format("x.toml") ==
        "x.toml:1:6: error: here\n"
        "  1 |         ä = \"€?\" # ?ü\n"
        "    |             ^^^^\n"
        "1 error in x.toml; nothing was started.\n");
}

TEST_CASE("Diagnostics: carets are under the terminal columns that the place takes") {
  // Two wide characters, a letter with a mark, a wide emoji, and a tab up to column 16.
  auto x = source("x.toml", "名前 = \"e\u0301🙂\t.\" # no");
  Diagnostics diagnostics;
  diagnostics.error(Span{&x, 1, 6, 1, 13}, "the value");
  diagnostics.error(Span{&x, 1, 14, 1, 15}, "the comment");
  CHECK(diagnostics.format("x.toml") ==
        "x.toml:1:6: error: the value\n"
        "  1 | 名前 = \"e\u0301🙂     .\" # no\n"
        "    |        ^^^^^^^^^^^\n"
        "x.toml:1:14: error: the comment\n"
        "  1 | 名前 = \"e\u0301🙂     .\" # no\n"
        "    |                    ^\n"
        "2 errors in x.toml; nothing was started.\n");
}

TEST_CASE("Diagnostics: a source line is cut to the width of the terminal, around the place") {
  auto x = source("x.toml", "batch_size = 64  # 学習 and many more words\n");
  Diagnostics diagnostics;
  diagnostics.error(Span{&x, 1, 1, 1, 11}, "a key");
  diagnostics.error(Span{&x, 1, 20, 1, 22}, "wide");
  CHECK(diagnostics.format("x.toml", 30) ==
        "x.toml:1:1: error: a key\n"
        "  1 | batch_size = 64  # 学…\n"
        "    | ^^^^^^^^^^\n"
        "x.toml:1:20: error: wide\n"
        "  1 | …ze = 64  # 学習 and ma…\n"
        "    |             ^^^^\n"
        "2 errors in x.toml; nothing was started.\n");
  CHECK(diagnostics.format("x.toml", 50) == diagnostics.format("x.toml"));
}

TEST_CASE("Diagnostics: a span over several lines is underlined to the end of its first") {
  auto x = source("x.toml", "\n\n\n\n\n\n\n\n\na = [1,\n  2]\n");
  Diagnostics diagnostics;
  diagnostics.error(Span{&x, 10, 5, 11, 5}, "a list");
  // Past the end of the text: still one caret.
  diagnostics.error(Span{&x, 12, 3, 12, 4}, "beyond");
  CHECK(diagnostics.format("x.toml") ==
        "x.toml:10:5: error: a list\n"
        "  10 | a = [1,\n"
        "     |     ^^^\n"
        "x.toml:12:3: error: beyond\n"
        "  12 |\n"
        "     |   ^\n"
        "2 errors in x.toml; nothing was started.\n");
}

TEST_CASE("Diagnostics: does not name the file at the end if all errors are elsewhere") {
  auto x = source("x.toml", "a = 1\n"), y = source("y.toml", "a = 1\n");
  Diagnostics elsewhere;
  elsewhere.error(Span{&y, 1, 1, 1, 2}, "wrong");
  CHECK(elsewhere.format("x.toml").endsWith("\n1 error; nothing was started.\n"));
  Diagnostics both;
  both.error(Span{&y, 1, 1, 1, 2}, "wrong");
  both.error(Span{&x, 1, 1, 1, 2}, "wrong");
  CHECK(both.format("x.toml").endsWith("\n2 errors in x.toml; nothing was started.\n"));
  Diagnostics nowhere;
  nowhere.error(Span(), "wrong");
  CHECK(nowhere.format("x.toml").endsWith("\n1 error in x.toml; nothing was started.\n"));
}

TEST_CASE("Diagnostics: prints nothing if there are no errors") {
  CHECK(Diagnostics().format("x.toml") == "");
}

TEST_CASE("Span: a span without a source has no place") {
  auto x = source("x.toml", "a");
  CHECK(Span{}.toString() == "");
  CHECK(Span{&x, 3, 4, 3, 5}.toString() == "x.toml:3:4");
}

TEST_CASE(
    "nearest: finds a word with a third of its letters wrong, and counts a swap as one mistake") {
  const kj::StringPtr known[] = {"learning_rate", "momentum", "kind", "mnist", "sgd"};
  auto find = [&](kj::StringPtr word) { return nearest(word, known).orDefault("-"); };
  CHECK(find("learning_rat") == "learning_rate");
  CHECK(find("mometnum") == "momentum");
  CHECK(find("lerning_raet") == "learning_rate");
  CHECK(find("mnst") == "mnist");
  CHECK(find("SGD") == "sgd");
  CHECK(find("kidn") == "kind");
  CHECK(find("king") == "kind");
  CHECK(find("bind_") == "-");
  CHECK(find("x") == "-");
  CHECK(find("") == "-");
  CHECK(find(kj::str(kj::repeat('a', 100000))) == "-");
  CHECK(nearest("a", nullptr) == nullptr);
}

TEST_CASE("suggest: prefers the words that begin with the given word to the nearest one") {
  const kj::StringPtr known[] = {"lenet"_kj, "resnet-20"_kj, "resnet-32"_kj, "mlp"_kj};
  CHECK(suggest("resnet", known) ==
        "did you mean `resnet-20` or `resnet-32`? (lenet, resnet-20, resnet-32, mlp)");
  CHECK(
      suggest("resnet-2", known) == "did you mean `resnet-20`? (lenet, resnet-20, resnet-32, mlp)");
  CHECK(suggest("lenat", known) == "did you mean `lenet`? (lenet, resnet-20, resnet-32, mlp)");
  // Two letters begin too many words.
  CHECK(suggest("ml", known) == "did you mean `mlp`? (lenet, resnet-20, resnet-32, mlp)");
  CHECK(suggest("re", known) == "known: lenet, resnet-20, resnet-32, mlp");
}

TEST_CASE("nearest: a word with letters left out is nearer than one with other letters") {
  const kj::StringPtr known[] = {"train_accuracy"_kj, "validation_accuracy"_kj};
  CHECK(nearest("valid_accuracy", known).orDefault("") == "validation_accuracy");
  CHECK(nearest("trian_accuracy", known).orDefault("") == "train_accuracy");
}

TEST_CASE(
    "Diagnostics: withdrawing a premise removes the errors that depend on it, and no others") {
  Diagnostics diagnostics;
  auto first = diagnostics.newPremise(), second = diagnostics.newPremise();
  diagnostics.error(Span{}, "on nothing");
  diagnostics.error(Span{}, "on the first", nullptr, first);
  diagnostics.error(Span{}, "on the second", nullptr, second);
  diagnostics.error(Span{}, "on the first, too", nullptr, first);
  diagnostics.withdraw(first);
  REQUIRE(diagnostics.count() == 2);
  CHECK(diagnostics.all()[0].message == "on nothing");
  CHECK(diagnostics.all()[1].message == "on the second");
}

TEST_CASE("Diagnostics: of a line that fills a screen, only the part around the place is shown") {
  Source source{kj::str("x.toml"), kj::str(kj::repeat('a', 300), "bad", kj::repeat('c', 300))};
  Diagnostics diagnostics;
  diagnostics.error({&source, 1, 301, 1, 304}, "this is bad");
  CHECK(diagnostics.format("x.toml") == kj::str("x.toml:1:301: error: this is bad\n  1 | …",
                                            kj::repeat('a', 80), "bad", kj::repeat('c', 77),
                                            "…\n    | ", kj::repeat(' ', 81),
                                            "^^^\n1 error in x.toml; nothing was started.\n"));
}

TEST_CASE(
    "Diagnostics: addNew() adds errors with a new message or a new place, and no repeated ones") {
  Source source{kj::str("x.toml"), kj::str("a = 1\n")};
  Span first{&source, 1, 1, 1, 2}, second{&source, 1, 5, 1, 6};
  Diagnostics all, more;
  all.error(first, "one");
  more.error(first, "one");
  more.error(first, "two");
  more.error(second, "one", "help");
  all.addNew(more);
  CHECK(all.count() == 3);
  all.addNew(more);
  CHECK(all.count() == 3);
}

}  // namespace
}  // namespace configs
