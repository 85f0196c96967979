#include "configs/language/reader.h"

#include <doctest/doctest.h>

#include "configs/language/test_experiment.h"

namespace configs {
namespace {

TEST_CASE("Reader: takes values from the file, and absent ones from the defaults") {
  Good good(R"(
name = "a"
data = { dataset = "jpeg", mean = [1, 2.5] }
[train]
optimizer = { kind = "sgd", learning_rate = 1 }
[[model.layers]]
kind = "repeat"
layers = [{ kind = "dense", units = 3 }, { kind = "relu" }]
[[model.layers]]
kind = "branches"
branches = [[{ kind = "relu" }], [], [{ kind = "relu" }, { kind = "dense", units = 4 }]]
[log]
every = [5, 6]
)");
  auto& experiment = good.experiment;
  CHECK(experiment.name == "a");
  CHECK(experiment.data.given == &ENCODINGS[1]);
  CHECK(experiment.data.encoding == &ENCODINGS[1]);
  CHECK(experiment.data.batchSize == 128);
  CHECK(experiment.data.source == nullptr);
  REQUIRE(experiment.data.mean.size() == 2);
  CHECK(experiment.data.mean[1] == 2.5);
  CHECK(experiment.optimizer->learningRate == 1);
  CHECK(experiment.optimizer->momentum == 0.9);
  CHECK(experiment.other == nullptr);
  REQUIRE(experiment.layers.size() == 2);
  CHECK(experiment.layers[0].units == 2);
  REQUIRE(experiment.layers[0].layers.size() == 2);
  CHECK(experiment.layers[0].layers[0].units == 3);
  auto& branches = experiment.layers[1].branches;
  REQUIRE(branches.size() == 3);
  CHECK(branches[0].size() == 1);
  CHECK(branches[1].size() == 0);
  REQUIRE(branches[2].size() == 2);
  CHECK(branches[2][1].units == 4);
  CHECK(experiment.log);
  REQUIRE(experiment.every.size() == 2);
  CHECK(experiment.every[1] == 6);
  REQUIRE(experiment.hosts.size() == 1);
  CHECK(experiment.hosts[0] == "localhost");
}

TEST_CASE("Reader: reports all mistakes of a file in one run") {
  CHECK(errorsOf(R"(name = 5
[data]
dataset = "jpg"
batch_size = 0
mean = [1, "2", 256]
[train.optimizer]
kind = "sgd"
learning_rat = 0.1
learning_rate = "0.1"
momentum = 1.0
[modell]
)") == R"(x.toml:1:8: error: `name` must be a string, not an integer
  1 | name = 5
    |        ^
  help: write the string in quotes
x.toml:3:11: error: `jpg` is not a known `dataset`
  3 | dataset = "jpg"
    |           ^^^^^
  help: did you mean `jpeg`? (raw, jpeg)
x.toml:4:14: error: `batch_size` must be an integer ≥ 1, not 0
  4 | batch_size = 0
    |              ^
x.toml:5:12: error: `mean[1]` must be a number, not a string
  5 | mean = [1, "2", 256]
    |            ^^^
  help: write a number without quotes
x.toml:5:17: error: `mean[2]` must be a number 0 … 255, not 256
  5 | mean = [1, "2", 256]
    |                 ^^^
x.toml:8:1: error: unknown key `learning_rat` in [train.optimizer]
  8 | learning_rat = 0.1
    | ^^^^^^^^^^^^
  help: did you mean `learning_rate`? (kind, learning_rate, momentum)
x.toml:9:17: error: `learning_rate` must be a number, not a string
  9 | learning_rate = "0.1"
    |                 ^^^^^
  help: write a number without quotes
x.toml:10:12: error: `momentum` must be a number ≥ 0 and < 1, not 1.0
  10 | momentum = 1.0
     |            ^^^
x.toml:11:2: error: unknown key `modell` at the top level
  11 | [modell]
     |  ^^^^^^
  help: did you mean `model`? (name, data, model, train, log)
9 errors in x.toml; nothing was started.
)");
}

TEST_CASE("Reader: the help for a wrong --set works on a command line") {
  auto folder = kj::newInMemoryDirectory(kj::nullClock());
  folder->openFile(kj::Path("x.toml"), kj::WriteMode::CREATE)
      ->writeAll("name = 'x'\n[data]\ndataset = 'raw'\n");
  const kj::StringPtr overrides[] = {"name=5", "data.batch_size=many", "data.mean=[1, '2']",
      "train.optimizer={ kind = 'sgd', learning_rate = '0.1' }", "train.optimizer.momentum="};
  Diagnostics diagnostics;
  auto document = load(*folder, "x.toml", overrides, diagnostics);
  Reading reading{diagnostics, {}};
  readDocument(*document, reading, readExperiment);
  CHECK(shown(diagnostics.format("x.toml")) ==
        R"(--set name:1:6: error: `name` must be a string, not an integer
  1 | name=5
    |      ^
  help: write --set 'name="…"'. The shell removes the outer quotes
--set data.batch_size:1:17: error: `batch_size` must be an integer, not a string
  1 | data.batch_size=many
    |                 ^^^^
  help: `many` is not a number
--set data.mean:1:15: error: `mean[1]` must be a number, not a string
  1 | data.mean=[1, '2']
    |               ^^^
  help: write a number without quotes
--set train.optimizer:1:49: error: `learning_rate` must be a number, not a string
  1 | train.optimizer={ kind = 'sgd', learning_rate = '0.1' }
    |                                                 ^^^^^
  help: write a number without quotes
--set train.optimizer.momentum:1:26: error: `momentum` must be a number, not a string
  1 | train.optimizer.momentum=
    |                          ^
  help: write a number after the `=`
5 errors; nothing was started.
)");
}

TEST_CASE("Reader: the help for a list in an option, where one number is needed, is a sweep") {
  auto folder = kj::newInMemoryDirectory(kj::nullClock());
  folder->openFile(kj::Path("x.toml"), kj::WriteMode::CREATE)
      ->writeAll("name = 'x'\n[data]\ndataset = 'raw'\n[train.optimizer]\nkind = 'sgd'\n");
  const kj::StringPtr overrides[] = {
      "data.batch_size = [8, 16]", "data.mean=[1, [2]]", "train.optimizer.learning_rate=[1]"};
  Diagnostics diagnostics;
  auto document = load(*folder, "x.toml", overrides, diagnostics);
  Reading reading{diagnostics, {}};
  readDocument(*document, reading, readExperiment);
  CHECK(shown(diagnostics.format("x.toml")) ==
        R"(--set data.batch_size:1:19: error: `batch_size` must be an integer, not a list
  1 | data.batch_size = [8, 16]
    |                   ^^^^^^^
  help: for one run per value, write --sweep 'data.batch_size = 8, 16'
--set data.mean:1:15: error: `mean[1]` must be a number, not a list
  1 | data.mean=[1, [2]]
    |               ^^^
--set train.optimizer.learning_rate:1:31: error: `learning_rate` must be a number, not a list
  1 | train.optimizer.learning_rate=[1]
    |                               ^^^
  help: for one run per value, write --sweep 'train.optimizer.learning_rate=1'
3 errors; nothing was started.
)");
}

TEST_CASE("Reader: reports a missing key at its table, with the line to add") {
  CHECK(errorsOf("") == R"(x.toml:1:1: error: missing key `name`
  help: add `name = …` (string): What the run is called.
x.toml:1:1: error: missing key `dataset` in [data]
  help: add `dataset = …` (one of raw, jpeg): Which records.
2 errors in x.toml; nothing was started.
)");
  CHECK(errorsOf(R"(name = "a"
train = { optimizer = { kind = "sgd" } }
[data]
[[model.layers]]
kind = "relu"
[[model.layers]]
kind = "repeat"
layers = [{ units = 5 }, { kind = "dense" }]
)") == R"(x.toml:2:23: error: missing key `learning_rate` in [train.optimizer]
  2 | train = { optimizer = { kind = "sgd" } }
    |                       ^^^^^^^^^^^^^^^^
  help: add `learning_rate = …` (number > 0): Length of a step.
x.toml:3:1: error: missing key `dataset` in [data]
  3 | [data]
    | ^^^^^^
  help: add `dataset = …` (one of raw, jpeg): Which records.
x.toml:8:11: error: missing key `kind` in [model.layers[1].layers[0]]
  8 | layers = [{ units = 5 }, { kind = "dense" }]
    |           ^^^^^^^^^^^^^
  help: add `kind = …` (one of dense, relu, repeat, branches): Which kind it is.
x.toml:8:26: error: missing key `units` in [model.layers[1].layers[1]]
  8 | layers = [{ units = 5 }, { kind = "dense" }]
    |                          ^^^^^^^^^^^^^^^^^^
  help: add `units = …` (integer ≥ 1): Outputs.
4 errors in x.toml; nothing was started.
)");
}

TEST_CASE("Reader: an unknown kind is one error, whatever else its table holds") {
  CHECK(errorsOf(R"(name = "a"
data.dataset = "raw"
[train]
optimizer = { kind = "sgdd", foo = 1 }
other = "sgd"
[model]
layers = [{ kind = "relu", x = 1 }, { kind = "convolution", y = 2 }, { kind = 3 }, 4]
)") == R"(x.toml:4:22: error: `sgdd` is not a known `kind` of `optimizer`
  4 | optimizer = { kind = "sgdd", foo = 1 }
    |                      ^^^^^^
  help: did you mean `sgd`? (sgd, free)
x.toml:5:9: error: `other` must be a table, not a string
  5 | other = "sgd"
    |         ^^^^^
  help: write `other = { kind = "sgd" }`
x.toml:7:28: error: unknown key `x` in [model.layers[0]]
  7 | layers = [{ kind = "relu", x = 1 }, { kind = "convolution", y = 2 }, { kind = 3 }, 4]
    |                            ^
  help: known: kind
x.toml:7:46: error: `convolution` is not a known `kind` of `layers[1]`
  7 | layers = [{ kind = "relu", x = 1 }, { kind = "convolution", y = 2 }, { kind = 3 }, 4]
    |                                              ^^^^^^^^^^^^^
  help: known: dense, relu, repeat, branches
x.toml:7:79: error: `kind` must be a string, not an integer
  7 | layers = [{ kind = "relu", x = 1 }, { kind = "convolution", y = 2 }, { kind = 3 }, 4]
    |                                                                               ^
  help: one of dense, relu, repeat, branches
x.toml:7:84: error: `layers[3]` must be a table, not an integer
  7 | layers = [{ kind = "relu", x = 1 }, { kind = "convolution", y = 2 }, { kind = 3 }, 4]
    |                                                                                    ^
  help: write { kind = "dense", … }
6 errors in x.toml; nothing was started.
)");
}

TEST_CASE("Reader: sections, lists and flags of the wrong type name the right type") {
  CHECK(errorsOf(R"(name = "a"
data = 1
train = [1]
[log]
on = "yes"
every = 5
hosts = "localhost"
[model]
layers = { kind = "branches", branches = [] }
)") == R"(x.toml:2:8: error: `data` must be a table, not an integer
  2 | data = 1
    |        ^
  help: write [data] on a separate line
x.toml:3:9: error: `train` must be a table, not a list
  3 | train = [1]
    |         ^^^
  help: write [train] on a separate line
x.toml:5:6: error: `on` must be a boolean, not a string
  5 | on = "yes"
    |      ^^^^^
  help: write `true` or `false`, without quotes
x.toml:6:9: error: `every` must be a list, not an integer
  6 | every = 5
    |         ^
  help: write `every = [1, 2]`
x.toml:7:9: error: `hosts` must be a list, not a string
  7 | hosts = "localhost"
    |         ^^^^^^^^^^^
  help: write `hosts = ["…"]`
x.toml:9:10: error: `layers` must be a list, not a table
  9 | layers = { kind = "branches", branches = [] }
    |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  help: write [{ kind = "dense", … }]
6 errors in x.toml; nothing was started.
)");
  CHECK(errorsOf(R"(name = "a"
data.dataset = "raw"
model.layers = [
  { kind = "branches", branches = [{ kind = "relu" }, [{ kind = "relu", z = 1 }]] },
  { kind = "branches", branches = "relu" },
]
)") == R"(x.toml:4:36: error: `branches[0]` must be a list, not a table
  4 |   { kind = "branches", branches = [{ kind = "relu" }, [{ kind = "relu", z = 1 }]] },
    |                                    ^^^^^^^^^^^^^^^^^
  help: write [{ kind = "dense", … }]
x.toml:4:73: error: unknown key `z` in [model.layers[0].branches[1][0]]
  4 |   { kind = "branches", branches = [{ kind = "relu" }, [{ kind = "relu", z = 1 }]] },
    |                                                                         ^
  help: known: kind
x.toml:5:35: error: `branches` must be a list of lists, not a string
  5 |   { kind = "branches", branches = "relu" },
    |                                   ^^^^^^
  help: write [[{ kind = "dense", … }]]
3 errors in x.toml; nothing was started.
)");
}

TEST_CASE("Reader: replaces a wrong value by the default, or by the nearest allowed value") {
  Diagnostics diagnostics;
  auto document =
      parse("x.toml", "a = 99\nb = 99\nc = -1\nd = 2.5\ne = nan\nf = inf\ng = 7\n", diagnostics);
  Reading reading{diagnostics, {}};
  readDocument(*document, reading, [](Reader& reader) {
    CHECK(reader.integer("a", "", {.atLeast = 1, .atMost = 9}, 5) == 5);
    CHECK(reader.integer("b", "", {.atLeast = 1, .atMost = 9}) == 9);
    CHECK(reader.integer("c", "", {.atLeast = 1}) == 1);
    CHECK(reader.real("d", "", {.above = 0, .below = 1}) == 0.5);
    CHECK(reader.real("e", "", {.above = 0}) == 1);
    CHECK(reader.real("f", "", {.atLeast = 0, .atMost = 4}) == 4);
    CHECK(reader.text("g", "", "word") == "word");
    CHECK(reader.integer("absent", "", {.atMost = -3}) == -3);
    return true;
  });
  CHECK(diagnostics.count() == 8);
}

TEST_CASE("Reader: wordOrReals accepts one word or a list of numbers") {
  Diagnostics diagnostics;
  auto document = parse("x.toml", "a = 'image'\nb = [1, 2]\nc = 'imag'\nd = 5\n", diagnostics);
  Reading reading{diagnostics, {}};
  readDocument(*document, reading, [](Reader& reader) {
    auto read = [&](kj::StringPtr key) { return reader.wordOrReals(key, "", "image", {}); };
    CHECK(read("a").get<kj::String>() == "image");
    CHECK(read("b").get<kj::Array<double>>().size() == 2);
    CHECK(read("c").get<kj::Array<double>>().size() == 0);
    CHECK(read("d").get<kj::Array<double>>().size() == 0);
    CHECK(read("absent").get<kj::Array<double>>().size() == 0);
    return true;
  });
  CHECK(shown(print(reading.resolved)) == "a = \"image\"\nb = [1.0, 2.0]\n");
  CHECK(shown(diagnostics.format("x.toml")) == R"(x.toml:3:5: error: `imag` is not a known `c`
  3 | c = 'imag'
    |     ^^^^^^
  help: it must be `"image"` or a list of numbers
x.toml:4:5: error: `d` must be `"image"` or a list of numbers, not an integer
  4 | d = 5
    |     ^
2 errors in x.toml; nothing was started.
)");
}

TEST_CASE("Reader: flagOrWord accepts a boolean or one word") {
  Diagnostics diagnostics;
  auto document = parse("x.toml", "a = true\nb = 'both'\nc = 'bth'\nd = 5\n", diagnostics);
  Reading reading{diagnostics, {}};
  readDocument(*document, reading, [](Reader& reader) {
    auto read = [&](kj::StringPtr key) { return reader.flagOrWord(key, "", "both", false); };
    CHECK(read("a").get<bool>());
    CHECK(read("b").get<kj::String>() == "both");
    CHECK(!read("c").get<bool>());
    CHECK(!read("d").get<bool>());
    CHECK(reader.flagOrWord("absent", "", "both", true).get<bool>());
    return true;
  });
  CHECK(shown(print(reading.resolved)) ==
        "a = true\nb = \"both\"\nc = false\nd = false\nabsent = true\n");
  CHECK(shown(diagnostics.format("x.toml")) == R"(x.toml:3:5: error: `bth` is not a known `c`
  3 | c = 'bth'
    |     ^^^^^
  help: write `true`, `false` or `"both"`
x.toml:4:5: error: `d` must be a boolean or `"both"`, not an integer
  4 | d = 5
    |     ^
2 errors in x.toml; nothing was started.
)");
}

TEST_CASE("Reader: maybeFlag and maybeChoose are null for an absent key, which stays absent") {
  struct Word {
    const char* name;
    const char* doc;
  };
  constexpr Word WORDS[] = {{"up", ""}, {"down", ""}};
  Diagnostics diagnostics;
  auto document = parse("x.toml", "a = true\nb = 'down'\nc = 1\nd = 'dwn'\n", diagnostics);
  Reading reading{diagnostics, {}};
  readDocument(*document, reading, [&](Reader& reader) {
    auto choose = [&](kj::StringPtr key) {
      return reader.maybeChoose(key, "", kj::arrayPtr(WORDS, kj::size(WORDS)));
    };
    CHECK(KJ_ASSERT_NONNULL(reader.maybeFlag("a", "")));
    CHECK(&KJ_ASSERT_NONNULL(choose("b")) == &WORDS[1]);
    CHECK(reader.maybeFlag("absent", "") == nullptr);
    CHECK(choose("away") == nullptr);
    reader.maybeFlag("c", "");
    choose("d");
    return true;
  });
  CHECK(shown(print(reading.resolved)) == "a = true\nb = \"down\"\nc = false\nd = \"up\"\n");
  CHECK(diagnostics.count() == 2);
}

TEST_CASE("Reading: `resolved` holds every value used, and reading it gives the same experiment") {
  Good good(R"(
train = { optimizer = { learning_rate = 1e-5, kind = "sgd" } }
name = "a \"quoted\" \\ ü\n\u0001"
[data]
mean = [1, 0.1, 0.30000000000000004]
dataset = "raw"
[[model.layers]]
kind = "branches"
branches = [[{ kind = "relu" }], [], [{ kind = "repeat", layers = [{ kind = "relu" }] }]]
[[model.layers]]
units = 3
kind = "dense"
[log]
)");
  auto text = print(good.reading.resolved);
  CHECK(shown(text) == R"(name = "a \"quoted\" \\ ü\n\u0001"

[data]
dataset = "raw"
encoding = "jpeg"
batch_size = 128
mean = [1.0, 0.1, 0.30000000000000004]

[model]
layers = [
  { kind = "branches", branches = [[{ kind = "relu" }], [], [{ kind = "repeat", times = 2, )"
                       R"(layers = [{ kind = "relu" }] }]] },
  { kind = "dense", units = 3 },
]

[train]
optimizer = { kind = "sgd", learning_rate = 1e-05, momentum = 0.9 }

[log]
hosts = ["localhost"]
on = true
)");
  Good again(text);
  CHECK(shown(print(again.reading.resolved)) == shown(text));
}

TEST_CASE("Reading: `resolved` has a default kind with its own defaults, and no absent sections") {
  Good good("name = \"a\"\ndata.dataset = \"raw\"\n");
  auto text = print(good.reading.resolved);
  CHECK(shown(text) == R"(name = "a"

[data]
dataset = "raw"
encoding = "jpeg"
batch_size = 128

[model]

[train]
optimizer = { kind = "free" }
)");
  Good again(text);
  CHECK(shown(print(again.reading.resolved)) == shown(text));
}

}  // namespace
}  // namespace configs
