#include "runner/sweep/loaded_runs.h"

#include <dirent.h>
#include <doctest/doctest.h>
#include <stdlib.h>

#include "runner/system/files.h"
#include "tests/text.h"

namespace runner {
namespace {

constexpr kj::StringPtr BASE =
    "name = \"x\"\n"
    "[data]\n"
    "dataset = \"fashion_mnist\"\n"
    "[model]\n"
    "network = \"mlp\"\n"
    "[train]\n"
    "optimizer = { kind = \"sgd\", learning_rate = 0.1 }\n"_kj;

LoadedRuns load(kj::StringPtr more, kj::ArrayPtr<const kj::StringPtr> sweeps = nullptr) {
  auto path = kj::str(::getenv("TEST_TMPDIR"), "/x.toml");
  writeWhole(path, kj::str(BASE, more));
  return loadRuns(path, nullptr, sweeps);
}

// Returns the settings of all runs, without the digests.
kj::Array<kj::String> runsOf(const LoadedRuns& all) {
  CHECK(all.errors == "");
  return KJ_MAP(run, all.runs) {
    return nameOf(run.settings, all.shortKeys);
  };
}

TEST_CASE(
    "loadRuns: the first key of a grid changes slowest, then the others, rows of zip, and draws") {
  auto all = load(
      "[sweep]\n"
      "grid = { \"data.batch_size\" = [128, 256], \"train.epochs\" = [1, 2] }\n"
      "zip = { \"train.seed\" = [5, 6], \"train.optimizer.learning_rate\" = [0.5, 1e-3] }\n");
  CHECK(kj::strArray(runsOf(all), "\n") ==
        "batch_size=128,epochs=1,seed=5,learning_rate=0.5\n"
        "batch_size=128,epochs=1,seed=6,learning_rate=0.001\n"
        "batch_size=128,epochs=2,seed=5,learning_rate=0.5\n"
        "batch_size=128,epochs=2,seed=6,learning_rate=0.001\n"
        "batch_size=256,epochs=1,seed=5,learning_rate=0.5\n"
        "batch_size=256,epochs=1,seed=6,learning_rate=0.001\n"
        "batch_size=256,epochs=2,seed=5,learning_rate=0.5\n"
        "batch_size=256,epochs=2,seed=6,learning_rate=0.001");
}

TEST_CASE(
    "loadRuns: a run's experiment has its settings, and its folder the first digits of its "
    "digest") {
  auto all = load("[sweep]\ngrid = { \"data.batch_size\" = [128, 256] }\n");
  REQUIRE(all.runs.size() == 2);
  auto& run = all.runs[1];
  CHECK(KJ_ASSERT_NONNULL(run.loaded.experiment).data.batchSize == 256);
  CHECK(run.name == kj::str("batch_size=256-", run.loaded.digest.slice(0, 8)));
  load("");
  kj::StringPtr override = "data.batch_size=256";
  auto alone =
      loadExperiment(kj::str(::getenv("TEST_TMPDIR"), "/x.toml"), kj::arrayPtr(&override, 1));
  CHECK(alone.digest == run.loaded.digest);
}

TEST_CASE("loadRuns: a run is not named after an address that may have secrets") {
  auto all = load(
      "[sweep.grid]\n\"data.source\" = [\"https://a.org/x\", \"https://me:pw@a.org/x\", "
      "\"https://a.org/x?key=y\"]\n");
  CHECK(kj::strArray(runsOf(all), " ") == "source=https___a.org_x source=2 source=3");
}

TEST_CASE(
    "loadRuns: a range has both its ends, and equal steps or ratios, rounded to four digits") {
  CHECK(kj::strArray(runsOf(load("[sweep.grid]\n\"train.optimizer.learning_rate\" = { from = 0.01, "
                                 "to = 1, count = 5, scale = \"log\" }\n")),
            " ") ==
        "learning_rate=0.01 learning_rate=0.03162 learning_rate=0.1 "
        "learning_rate=0.3162 learning_rate=1");
  CHECK(kj::strArray(runsOf(load("[sweep.grid]\n\"train.optimizer.learning_rate\" = "
                                 "{ from = 0.0, to = 1, count = 4 }\n")),
            " ") == "learning_rate=0 learning_rate=0.3333 learning_rate=0.6667 learning_rate=1");
}

TEST_CASE("loadRuns: a range between integers has integers, and equal runs become one") {
  CHECK(kj::strArray(runsOf(load("[sweep.grid]\n\"train.epochs\" = { from = 1, to = 3, count = 5 "
                                 "}\n")),
            " ") == "epochs=1 epochs=2 epochs=3");
  CHECK(kj::strArray(runsOf(load("[sweep.grid]\n\"data.batch_size\" = { from = 16, to = 256, "
                                 "count = 5, scale = \"log\" }\n")),
            " ") == "batch_size=16 batch_size=32 batch_size=64 batch_size=128 batch_size=256");
}

TEST_CASE(
    "loadRuns: values of a range have more than four digits if they would be equal otherwise") {
  CHECK(kj::strArray(runsOf(load("[sweep.grid]\n\"train.optimizer.learning_rate\" = { from = 1.0, "
                                 "to = 1.00002, count = 3 }\n")),
            " ") == "learning_rate=1 learning_rate=1.00001 learning_rate=1.00002");
}

TEST_CASE("loadRuns: draws depend only on seed, number and key, and lie within their range") {
  constexpr kj::StringPtr RATE =
      "\"train.optimizer.learning_rate\" = { from = 0.01, to = 1, scale = \"log\" }"_kj;
  auto some = load(kj::str("[sweep]\ndraws = 20\ndraw = { ", RATE, " }\n"));
  auto more = load(kj::str(
      "[sweep]\ndraws = 30\ndraw = { \"train.epochs\" = { from = 1, to = 4 }, ", RATE, " }\n"));
  REQUIRE(some.runs.size() == 20);
  REQUIRE(more.runs.size() == 30);
  bool isEpochs[5] = {};
  for (size_t i: kj::indices(more.runs)) {
    auto& settings = more.runs[i].settings;
    auto epochs = settings[0].value->content.get<int64_t>();
    REQUIRE(epochs >= 1);
    REQUIRE(epochs <= 4);
    isEpochs[epochs] = true;
    double rate = settings[1].value->content.get<double>();
    CHECK(rate >= 0.01);
    CHECK(rate <= 1);
    if (i < 20) CHECK(settings[1].name == some.runs[i].settings[0].name);
  }
  for (uint epochs = 1; epochs <= 4; epochs++) CHECK(isEpochs[epochs]);
  auto other = load(kj::str("[sweep]\nseed = 2\ndraws = 20\ndraw = { ", RATE, " }\n"));
  CHECK(other.runs[0].name != some.runs[0].name);
}

TEST_CASE("loadRuns: equal draws become one run") {
  auto all = load("[sweep]\ndraws = 50\ndraw = { \"train.seed\" = [1, 2, 3] }\n");
  CHECK(all.runs.size() == 3);
}

TEST_CASE(
    "loadRuns: writes keys with the same last word in full, and tables and lists as numbers") {
  auto all = load(
      "[sweep.grid]\n"
      "\"model.init.kind\" = [\"xavier\"]\n"
      "\"train.schedule.kind\" = [\"constant\"]\n"
      "\"train.optimizer\" = [{ kind = \"sgd\", learning_rate = 1 }, { kind = \"adam\" }]\n");
  CHECK(kj::strArray(runsOf(all), "\n") ==
        "model.init.kind=xavier,train.schedule.kind=constant,optimizer=1\n"
        "model.init.kind=xavier,train.schedule.kind=constant,optimizer=2");
}

TEST_CASE("loadRuns: a key may lie in a table that another key sets, in any order") {
  auto all = load(
      "[sweep.grid]\n"
      "\"train.optimizer.learning_rate\" = [0.5]\n"
      "\"train.optimizer\" = [{ kind = \"sgd\", learning_rate = 1 }]\n");
  REQUIRE(all.errors == "");
  CHECK(configs::print(KJ_ASSERT_NONNULL(configs::valueAt(
            all.runs[0].loaded.document->root, "train.optimizer.learning_rate"))) == "0.5");
}

TEST_CASE("loadRuns: merges a swept table with the file's, and replaces one of another kind") {
  constexpr kj::StringPtr OPTIMIZERS =
      "train.optimizer={ learning_rate = 0.5 },{ kind = \"sgd\", momentum = 0.9 },"
      "{ kind = \"adam\" }"_kj;
  auto all = load("", {OPTIMIZERS});
  REQUIRE(all.errors == "");
  REQUIRE(all.runs.size() == 3);
  auto print = [&](uint run, kj::StringPtr key) {
    return configs::valueAt(all.runs[run].loaded.document->root, key)
        .map([](const configs::Value& value) { return configs::print(value); })
        .orDefault(kj::str("none"));
  };
  CHECK(print(0, "train.optimizer") == "{ kind = \"sgd\", learning_rate = 0.5 }");
  CHECK(print(1, "train.optimizer") == "{ kind = \"sgd\", learning_rate = 0.1, momentum = 0.9 }");
  CHECK(print(2, "train.optimizer") == "{ kind = \"adam\" }");
  // A `--set` of the same text makes the same run.
  kj::StringPtr setting = "train.optimizer={ kind = \"sgd\", momentum = 0.9 }";
  auto path = kj::str(::getenv("TEST_TMPDIR"), "/x.toml");
  CHECK(all.runs[1].loaded.digest == loadExperiment(path, kj::arrayPtr(&setting, 1)).digest);
}

TEST_CASE(
    "loadRuns: a name has only characters that file names may have, and at most 180 before its "
    "digest") {
  auto all = load(kj::str("[sweep.grid]\n\"data.source\" = [\"/a b/ü\", \"",
      kj::strArray(kj::repeat("long"_kj, 100), ""), "\"]\n"));
  REQUIRE(all.runs.size() == 2);
  CHECK(all.runs[0].name.startsWith("source=_a_b___-"));
  CHECK(all.runs[1].name.size() == 180 + 9);
}

TEST_CASE("loadRuns: --sweep adds a key to the grid, or replaces one") {
  auto none = load("", {"data.batch_size=64,128", "model.network=mlp,\"lenet\""});
  CHECK(kj::strArray(runsOf(none), " ") ==
        "batch_size=64,network=mlp batch_size=64,network=lenet "
        "batch_size=128,network=mlp batch_size=128,network=lenet");
  auto over = load("[sweep.grid]\n\"train.seed\" = [1, 2]\n\"data.batch_size\" = [1, 2]\n",
      {"data.batch_size=64", "train.optimizer={ kind = \"sgd\", learning_rate = 1 }"});
  CHECK(kj::strArray(runsOf(over), " ") ==
        "seed=1,batch_size=64,optimizer=1 seed=2,batch_size=64,optimizer=1");
}

TEST_CASE("loadRuns: tables in a grid's tables are dotted keys, and --sweep replaces those too") {
  constexpr kj::StringPtr NESTED =
      "[sweep]\ngrid = { data.batch_size = [1, 2], train = { optimizer.learning_rate = "
      "{ from = 1, to = 2, count = 2 }, seed = [3] } }\n"_kj;
  CHECK(kj::strArray(runsOf(load(NESTED)), " ") ==
        "batch_size=1,learning_rate=1,seed=3 batch_size=1,learning_rate=2,seed=3 "
        "batch_size=2,learning_rate=1,seed=3 batch_size=2,learning_rate=2,seed=3");
  CHECK(kj::strArray(runsOf(load(NESTED, {"data.batch_size=4", "train.optimizer.learning_rate=5"})),
            " ") == "batch_size=4,learning_rate=5,seed=3");
}

TEST_CASE("loadRuns: --sweep accepts a range") {
  auto all = load("", {"train.seed={ from = 1, to = 3, count = 3 }"});
  CHECK(kj::strArray(runsOf(all), " ") == "seed=1 seed=2 seed=3");
}

TEST_CASE("loadRuns: an error that only some runs with a setting have says which runs") {
  constexpr kj::StringPtr MOMENTUM = "train.optimizer.momentum=0.1,0.2"_kj;
  auto some = load("", {"train.optimizer.kind=sgd,adam", MOMENTUM}).errors;
  CHECK(tests::contains(some,
      "unknown key `momentum` in [train.optimizer] (in 2 runs, for example kind=adam,momentum=0.1)"
      "\n"));
  // All runs with the setting have the error: its place says enough.
  auto all = load("", {"data.batch_size=128,0", "train.seed=1,2"}).errors;
  CHECK(tests::contains(all, "`batch_size` must be an integer 1 … 65536, not 0\n"));
}

TEST_CASE("loadRuns: values of a range with the same error make one error, with their number") {
  auto errors = load("", {"train.epochs={ from = -3, to = 2, count = 6 }"}).errors;
  CHECK(tests::contains(errors,
      "`epochs` must be an integer 1 … 1000000, not -3 (in 4 runs, for example epochs=-3)\n"));
  CHECK(tests::contains(errors, "\n1 error; "));
}

TEST_CASE("loadRuns: one wrong value of a range is named alone, unless only some runs have it") {
  constexpr kj::StringPtr RANGE = "train.epochs={ from = 0, to = 2, count = 3 }"_kj;
  constexpr kj::StringPtr NOT_0 = "`epochs` must be an integer 1 … 1000000, not 0\n"_kj;
  CHECK(tests::contains(load("", {RANGE}).errors, NOT_0));
  CHECK(tests::contains(load("", {RANGE, "train.seed=1,2"}).errors, NOT_0));
  // The message names the wrong key, and not its value.
  auto key = load("", {"train.optimizer.kind=sgd,adam",
                          "train.optimizer.momentum={ from = 0.1, to = 0.2, count = 2 }"})
                 .errors;
  CHECK(tests::contains(key, "(in 2 runs, for example kind=adam,momentum=0.1)\n"));
}

TEST_CASE("loadRuns: refuses a key with very many parts") {
  auto deep = kj::str("a", kj::strArray(kj::repeat(".b"_kj, 100000), ""));
  auto errors = load(kj::str("[sweep]\ngrid = { \"", deep, "\" = [1, 2] }\n")).errors;
  CHECK(tests::contains(errors, "error: this key has more than 256 parts\n"));
}

TEST_CASE("loadRuns: a file without a sweep is one run with the digest of the file") {
  auto all = load("");
  REQUIRE(all.runs.size() == 1);
  CHECK(all.runs[0].name == "");
  auto path = kj::str(::getenv("TEST_TMPDIR"), "/x.toml");
  CHECK(all.runs[0].loaded.digest == loadExperiment(path, nullptr).digest);
}

TEST_CASE("loadExperiment: refuses a file with a sweep for a role") {
  load("[sweep]\ngrid = { \"train.seed\" = [1] }\n");
  auto loaded = loadExperiment(kj::str(::getenv("TEST_TMPDIR"), "/x.toml"), nullptr);
  CHECK(loaded.experiment == nullptr);
  CHECK(loaded.errors.size() > 0);
}

kj::Vector<kj::String> experimentFiles() {
  kj::Vector<kj::String> files;
  DIR* folder = ::opendir("configs");
  REQUIRE(folder != nullptr);
  while (dirent* entry = ::readdir(folder)) {
    if (kj::StringPtr(entry->d_name).endsWith(".toml")) {
      files.add(kj::str("configs/", entry->d_name));
    }
  }
  ::closedir(folder);
  return files;
}

TEST_CASE("loadExperiment: a resolved run of each experiment in configs/ reads back to itself") {
  auto files = experimentFiles();
  CHECK(files.size() >= 20);
  for (auto& file: files) {
    auto all = loadRuns(file, nullptr, nullptr);
    CHECK_MESSAGE(all.errors == "", all.errors.cStr());
    for (auto& run: all.runs) {
      auto path = kj::str(::getenv("TEST_TMPDIR"), "/resolved.toml");
      writeWhole(path, run.loaded.resolved);
      auto again = loadExperiment(path, nullptr);
      CHECK_MESSAGE(again.resolved == run.loaded.resolved, file.cStr());
      CHECK(again.digest == run.loaded.digest);
    }
  }
}

TEST_CASE("loadData: reads [data], whatever is wrong with the rest of the file") {
  auto path = kj::str(::getenv("TEST_TMPDIR"), "/data.toml");
  auto load = [&](kj::StringPtr text) {
    writeWhole(path, text);
    return loadData(path);
  };
  auto batchSizeOf = [&](kj::StringPtr text) {
    auto loaded = load(text);
    CHECK(loaded.errors == "");
    return KJ_ASSERT_NONNULL(loaded.config).batchSize;
  };
  // A kernel that does not fit, a section that misses its keys, and an unknown key.
  auto wrong =
      kj::str("unknown = 1\n[model]\nlayers = [{ kind = \"conv\", filters = 1, kernel = 40 ",
          "}]\n[train]\n[data]\ndataset = \"mnist\"\n");
  CHECK(batchSizeOf(kj::str(wrong, "batch_size = 10\n")) == 10);
  // Of a sweep, the first run counts.
  CHECK(batchSizeOf(kj::str(wrong, "[sweep]\ngrid = { \"data.batch_size\" = [20, 30] }\n")) == 20);

  auto errors = load(kj::str(wrong, "batch_sice = 10\n")).errors;
  CHECK(tests::contains(errors, "unknown key `batch_sice` in [data]"));
  CHECK(tests::contains(errors, "1 error in "));
  CHECK(tests::contains(load("[model]\n").errors, "missing key `dataset` in [data]"));
}

}  // namespace
}  // namespace runner
