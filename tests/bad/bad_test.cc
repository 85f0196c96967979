// `runner check` on each x.toml here must print exactly x.expected on stderr and end with exit code
// 2. A first line `# with: --set a.b=c` adds these words to the command. To add a case: write the
// file, run tests/update.sh, and read its output as a user would.
#include <doctest/doctest.h>
#include <glob.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <string.h>
#include <sys/stat.h>
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

TEST_CASE("check names a missing file, and ends with exit code 2") {
  auto ended = check("tests/bad/nowhere.toml", nullptr);
  CHECK(ended.errors == "error: cannot read tests/bad/nowhere.toml: No such file or directory\n");
  CHECK(ended.exitCode == 2);
}

TEST_CASE("check says that a directory is not an experiment file, and ends with exit code 2") {
  auto ended = check("tests/bad", nullptr);
  CHECK(ended.errors == "error: tests/bad is a directory; give the path of a .toml file\n");
  CHECK(ended.exitCode == 2);
}

TEST_CASE("check says which commands check the image shapes of data that it does not read") {
  auto source = kj::arr(kj::str("--set"), kj::str("data.source=configs"));
  auto ended = check("configs/imagenet_inception_bn.toml", source);
  CHECK(ended.output ==
        "configs/imagenet_inception_bn.toml: OK so far; `runner explain` and `runner run` also "
        "check image shapes, once they have read the records\n");
  CHECK(ended.exitCode == 0);
}

TEST_CASE("check warns once of an expectation about an epoch that no run of a sweep has") {
  auto ended = Command({RUNNER, "check", "configs/mnist_mlp_local.toml", "--set",
                           "expect.train_loss={ at_most = 1, epoch = 9 }", "--set",
                           "train.epochs=3", "--sweep", "train.seed=1,2"})
                   .wait();
  CHECK(ended.exitCode == 0);
  CHECK(ended.errors ==
        "warning: expect.train_loss will be missed: it is about epoch 9, and the run has only 3 "
        "epochs\n");
}

TEST_CASE("check refuses an image folder without a source, unless the environment names one") {
  auto check = [](kj::StringPtr environment) {
    return Command({RUNNER, "check", "configs/imagenet_inception_bn.toml"},
        {.environment = kj::arrayPtr(&environment, 1)})
        .wait();
  };
  auto refused = check("RUNNER_DATASETS=");
  CHECK(refused.exitCode == 2);
  CHECK(contains(refused.errors, "inception_bn.toml:9:11: error: data set `image_folder` needs"));
  CHECK(contains(refused.errors, "help: set data.source to a folder or an archive of images"));
  CHECK(contains(check("RUNNER_DATASETS=/nowhere").errors,
      "needs a `source`, and RUNNER_DATASETS has no folder /nowhere/imagenet-sample\n"));
  auto datasets = newFolder();
  REQUIRE(Command({"mkdir", kj::str(datasets, "/imagenet-sample")}).wait().exitCode == 0);
  CHECK(check(kj::str("RUNNER_DATASETS=", datasets)).exitCode == 0);
}

TEST_CASE("check points at a missing source, unless the workers are elsewhere") {
  auto check = [](kj::ArrayPtr<const kj::StringPtr> settings) {
    kj::Vector<kj::StringPtr> words;
    for (auto word: {RUNNER, "check"_kj, "configs/imagenet_inception_bn.toml"_kj}) words.add(word);
    for (auto setting: settings) {
      words.add("--set"_kj);
      words.add(setting);
    }
    return Command(words).wait();
  };
  constexpr kj::StringPtr SOURCE = "data.source=/nowhere/photos"_kj;
  auto refused = check({SOURCE, "data.validation_source=/nowhere/more"_kj});
  CHECK(refused.exitCode == 2);
  for (auto text: {"--set data.source:1:13: error: there is nothing at /nowhere/photos"_kj,
           "help: set data.source to a folder or an archive of images"_kj,
           "error: there is nothing at /nowhere/more"_kj,
           "help: set data.validation_source to a folder or an archive of images"_kj}) {
    CAPTURE(text);
    CHECK(contains(refused.errors, text));
  }
  CHECK(check({SOURCE, "cluster.launcher=manual"_kj}).exitCode == 0);
}

TEST_CASE("a negative number after an option is its value") {
  constexpr kj::StringPtr FILE = "configs/mnist_mlp_local.toml"_kj;
  auto errorOf = [](kj::ArrayPtr<const kj::StringPtr> words) {
    auto ended = Command(words).wait();
    CHECK(ended.exitCode == 2);
    return kj::mv(ended.errors);
  };
  CHECK(contains(errorOf({RUNNER, "explain", FILE, "--bandwidth", "-1"}),
      "--bandwidth=-1: `-1` is not a number above 0 and below 1000000000"));
  CHECK(contains(errorOf({RUNNER, "explain", FILE, "--bandwidth", "5", "--overhead", "-.5"}),
      "`-.5` is not a number of at least 0 and below 1000000000"));
  CHECK(contains(errorOf({RUNNER, "role", FILE, "--role", "worker", "--index", "-1"}),
      "`-1` is not a whole number from 0 to 1000000"));
  CHECK(contains(errorOf({RUNNER, "explain", FILE, "--bandwidth", "--overhead", "1"}),
      "--bandwidth: missing argument"));
}

TEST_CASE("control characters of names are shown, not sent to the terminal") {
  auto ended = check("tests/bad/no\x1b[31mwhere.toml", nullptr);
  CHECK(ended.errors ==
        "error: cannot read tests/bad/no\\x1b[31mwhere.toml: No such file or directory\n");
  auto set = kj::arr(kj::str("--set"), kj::str("a\x1b=1"));
  auto wrong = check("configs/mnist_mlp_local.toml", set);
  CHECK(wrong.exitCode == 2);
  CHECK(wrong.errors.findFirst('\x1b') == nullptr);
  auto name = kj::arr(kj::str("--set"), kj::str("name=\"a\\u001bb\""));
  CHECK(contains(check("configs/mnist_mlp_local.toml", name).errors, "`a\\x1bb` cannot name a "));
}

TEST_CASE("table says which folder is wrong and what to do, and ends with exit code 2") {
  auto refuse = [](kj::ArrayPtr<const kj::StringPtr> words, kj::StringPtr errors) {
    auto ended = Command(words).wait();
    CHECK(ended.errors == errors);
    CHECK(ended.exitCode == 2);
    CHECK(ended.output == "");
  };
  auto folder = newFolder();
  refuse({RUNNER, "table", "/nowhere"},
      "error: cannot read the folder /nowhere: No such file or directory\n");
  refuse({RUNNER, "table", folder},
      kj::str("error: there is no run in ", folder,
          ": name the folder of a run, such as runs/<name>/1, or one that holds such folders\n"));
  auto events = kj::str(folder, "/events.jsonl");
  REQUIRE(::symlink("events.jsonl", events.cStr()) == 0);
  refuse({RUNNER, "table", folder},
      kj::str("error: cannot read ", events, ": Too many levels of symbolic links\n"));
  REQUIRE(::unlink(events.cStr()) == 0);
  REQUIRE(::mkfifo(events.cStr(), 0600) == 0);
  refuse({RUNNER, "table", folder},
      kj::str("error: cannot read ", events, ": it is not a regular file\n"));
  REQUIRE(::unlink(events.cStr()) == 0);
  writeFile(events, "nonsense\n");
  refuse({RUNNER, "table", folder},
      kj::str("error: ", events,
          ":1 is not an event of a run: another program or version wrote or "
          "changed it; leave this folder out\n"));
  // If several folders are given, the good ones have their table.
  auto good = newFolder();
  writeFile(kj::str(good, "/events.jsonl"), "");
  auto several = Command({RUNNER, "table", folder, good, "/nowhere"}).wait();
  CHECK(several.exitCode == 2);
  CHECK(several.errors.startsWith(kj::str("error: ", events, ":1 is not an event of a run")));
  CHECK(contains(several.errors, "error: cannot read the folder /nowhere: "));
  // A run without events has no name but that of its folder.
  auto name = good.slice(KJ_ASSERT_NONNULL(good.findLast('/')) + 1);
  CHECK(contains(several.output, kj::str("| ", name, " |")));
  CHECK(Command({RUNNER, "table", good, "--into", events}).wait().exitCode == 2);
  writeFile(events, "");
  refuse({RUNNER, "table", folder, "--into", "/proc/foo"},
      "error: cannot make the folder /proc/foo: No such file or directory; choose another folder "
      "with --into\n");
  // Files of other programs stay, whether the folder is named with --into or not. A table of an
  // earlier report is replaced.
  for (bool isNamed: {true, false}) {
    auto into = isNamed ? newFolder() : kj::str(folder);
    auto foreign = kj::str(into, "/table.csv");
    auto table = [&]() {
      kj::StringPtr words[] = {RUNNER, "table", folder, "--into", into};
      return Command(kj::arrayPtr(words, isNamed ? 5 : 3)).wait();
    };
    writeFile(foreign, "my,own\n");
    auto refused = table();
    CHECK(refused.exitCode == 2);
    CHECK(contains(refused.errors, kj::str(foreign, " exists, and is not of a report. Choose ")));
    CHECK(readFile(foreign) == "my,own\n");
    CHECK(::access(kj::str(into, "/report.html").cStr(), F_OK) != 0);
    REQUIRE(::unlink(foreign.cStr()) == 0);
    table();
    REQUIRE(::unlink(kj::str(into, "/report.html").cStr()) == 0);
    CHECK(!contains(table().errors, "is not of a report"));
    CHECK(::access(kj::str(into, "/report.html").cStr(), F_OK) == 0);
  }
}

TEST_CASE("a misspelt command is answered with the nearest one and with all of them") {
  auto ended = Command({RUNNER, "chekc", "x.toml"}).wait();
  CHECK(ended.errors ==
        "runner: `chekc` is not a command; did you mean `check`? (check, explain, run, ps, "
        "attach, stop, scale, table, evaluate, predict, export, inspect, diff, data, role, host, "
        "devices, reference)\nTry "
        "'runner "
        "--help' "
        "for more "
        "information.\n");
  CHECK(ended.exitCode == 2);
  CHECK(contains(Command({RUNNER, "trian"}).wait().errors,
      "`trian` is not a command; known: check, explain, run, "));
}

TEST_CASE("`runner help help` prints the help of the program") {
  auto ended = Command({RUNNER, "help", "help"}).wait();
  CHECK(ended.exitCode == 0);
  CHECK(ended.output.startsWith("Usage: runner"));
}

TEST_CASE("-h prints the same help as --help, of the program and of each command") {
  auto same = [](kj::ArrayPtr<const kj::StringPtr> command) {
    kj::Vector<kj::StringPtr> brief, whole;
    brief.addAll(command);
    brief.add("-h");
    whole.addAll(command);
    whole.add("--help");
    auto ended = Command(brief).wait();
    CHECK(ended.exitCode == 0);
    CHECK(ended.output.startsWith("Usage: runner"));
    CHECK(ended.output == Command(whole).wait().output);
  };
  same({RUNNER});
  same({RUNNER, "run"});
}

// Returns the help of a command, with one space in place of each line break.
kj::String helpOf(kj::StringPtr command) {
  kj::Vector<char> text;
  for (char c: Command({RUNNER, command, "--help"}).wait().output) {
    if (c != ' ' && c != '\n') {
      text.add(c);
    } else if (!text.empty() && text.back() != ' ') {
      text.add(' ');
    }
  }
  return kj::heapString(text.asPtr());
}

TEST_CASE("the help describes the options") {
  auto run = helpOf("run");
  CHECK(contains(run, "override a value of the file"));
  CHECK(contains(run, "as many as fit into the buffer"));
  auto explain = helpOf("explain");
  CHECK(contains(explain, "fixed network time per step in ms, added to the transfer time"));
}

TEST_CASE("every example in the help of a command is on one line") {
  for (kj::StringPtr command: {"check", "explain", "run", "table", "role"}) {
    auto help = Command({RUNNER, command, "--help"}).wait().output;
    INFO(help);
    auto example = kj::str("\n  runner ", command, " ");
    kj::StringPtr rest = help;
    uint examples = 0;
    while (auto found = strstr(rest.cStr(), example.cStr())) {
      rest = rest.slice(found - rest.begin() + 1);
      auto next = rest.slice(KJ_ASSERT_NONNULL(rest.findFirst('\n')) + 1);
      CHECK((next.startsWith("\n") || next.startsWith("  runner ")));
      examples++;
    }
    CHECK(examples > 0);
  }
}

TEST_CASE("role refuses a wrong --coordinator or --index when it reads the command line") {
  auto errorOf = [](kj::ArrayPtr<const kj::StringPtr> words) {
    auto ended = Command(words).wait();
    CHECK(ended.exitCode == 2);
    return kj::mv(ended.errors);
  };
  constexpr kj::StringPtr FILE = "configs/mnist_mlp_local.toml"_kj;
  for (auto address:
      {"x", "127.0.0.1", "127.0.0.1:99999", "127.0.0.1:0", ":80", "host:8o", "fd00::4:7000"}) {
    auto errors = errorOf({RUNNER, "role", FILE, "--role", "worker", "--coordinator", address});
    INFO(errors);
    CHECK(contains(errors,
        kj::str("`", address, "` is not HOST:PORT, or [IPv6]:PORT, with a port from 1 to 65535")));
  }
  CHECK(contains(
      errorOf({RUNNER, "role", FILE, "--role", "coordinator", "--index", "3", "--folder", "/x"}),
      "a coordinator takes no --index N: a job has one coordinator"));
}

TEST_CASE("explain accepts an overhead of 0, and says which amounts it accepts") {
  constexpr kj::StringPtr FILE = "configs/mnist_mlp_local.toml"_kj;
  auto explained = [](kj::ArrayPtr<const kj::StringPtr> words) { return Command(words).wait(); };
  CHECK(
      explained({RUNNER, "explain", FILE, "--bandwidth", "1000", "--overhead", "0"}).exitCode == 0);
  auto large = explained({RUNNER, "explain", FILE, "--bandwidth", "1e300"});
  CHECK(large.exitCode == 2);
  CHECK(contains(large.errors, "`1e300` is not a number above 0 and below 1000000000"));
  auto alone = explained({RUNNER, "explain", FILE, "--overhead", "3"});
  CHECK(alone.exitCode == 2);
  CHECK(contains(alone.errors, "--overhead needs --bandwidth MBIT"));
}

TEST_CASE("an invalid command ends with exit code 2 and refers to the help") {
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
  refuse({RUNNER, "check", "x.toml", "--sweep", "a.b=1,2", "--sweep", "a.b=3,4"});
  refuse({RUNNER, "table", "x", "--into", ""});
  refuse({RUNNER, "run", "configs/mnist_mlp_local.toml", "--runs", RUNNER});
  refuse({RUNNER, "run", "configs/mnist_mlp_local.toml", "--runs", kj::str(RUNNER, "/x")});
  refuse({RUNNER, "role", "configs/mnist_mlp_local.toml"});
}

}  // namespace
}  // namespace tests
