// `runner evaluate` and `runner predict` of finished runs, and runs that start from trained
// weights.
#include <kj/filesystem.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/images/jpeg.h"
#include "tests/cluster/whole_runs.h"

namespace tests {
namespace {

constexpr kj::StringPtr PHOTOS = "tests/cluster/photos.toml"_kj;

// Runs a command of the program, in the cache of the runs.
Ended command(kj::ArrayPtr<const kj::StringPtr> words) {
  kj::Vector<kj::StringPtr> all;
  all.add(RUNNER);
  all.addAll(words);
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  return Command(all, {.environment = environment}).wait();
}

kj::String outputOf(kj::ArrayPtr<const kj::StringPtr> words) {
  auto ended = command(words);
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  return kj::mv(ended.output);
}

// Returns the number after `"name":` in JSON.
double numberIn(kj::StringPtr json, kj::StringPtr name) {
  auto key = kj::str("\"", name, "\":");
  auto found = ::strstr(json.cStr(), key.cStr());
  REQUIRE(found != nullptr);
  return strtod(found + key.size(), nullptr);
}

// Checks that `evaluate` gives the figures of the run's last validation, to the last bit.
void checkAgain(const Trained& run) {
  auto json = outputOf({"evaluate", run.folder, "--json"});
  INFO(json);
  bool isValidated = false;
  eachEvent(run, [&](runner::Event::Reader event) {
    if (!event.isValidated() || !event.getValidated().getLast()) return;
    auto validated = event.getValidated();
    isValidated = true;
    CHECK(numberIn(json, "loss") == validated.getLoss());
    CHECK(numberIn(json, "accuracy") == validated.getAccuracy());
    CHECK(numberIn(json, "images") == validated.getImages());
    if (validated.hasTopK()) {
      CHECK(numberIn(json, "top_k_accuracy") == validated.getTopK().getAccuracy());
    }
  });
  CHECK(isValidated);
}

// A folder with photographs of two classes: mostly bright and mostly dark ones, with noise.
kj::String photos() {
  auto folder = newFolder();
  constexpr uint COUNT = 60, SIDE = 12;
  auto filesystem = kj::newDiskFilesystem();
  auto root = filesystem->getRoot().openSubdir(
      filesystem->getCurrentPath().eval(folder), kj::WriteMode::MODIFY);
  uint noise = 1;
  for (uint i = 0; i < COUNT; i++) {
    auto pixels = kj::heapArray<kj::byte>(3 * SIDE * SIDE);
    bool isBright = i % 2 == 0;
    for (auto& pixel: pixels) {
      noise = noise * 1664525 + 1013904223;
      pixel = (isBright ? 90 : 60) + (noise >> 24) / 3;
    }
    auto file = io::encodeJpeg({{3, SIDE, SIDE}, io::Layout::PIXELS, pixels});
    auto name = kj::str(isBright ? "bright" : "dark", "/", i, ".jpg");
    root->openFile(kj::Path::parse(name), kj::WriteMode::CREATE | kj::WriteMode::CREATE_PARENT)
        ->writeAll(file);
  }
  return folder;
}

}  // namespace

TEST_CASE("evaluate: gives the figures of the last validation, to the last bit") {
  SUBCASE("two workers") {
    checkAgain(train(MLP, {"train.steps=50", "log.top_k=3"}));
  }
  SUBCASE("batch norm, crops and a mean image, one worker with two threads") {
    kj::StringPtr settings[] = {"train.steps=50", "kvstore.mode=local", "cluster.servers=0",
        "cluster.workers=1", "cluster.threads_per_worker=2", "data.validation_views=mirror"};
    checkAgain(train(BATCH_NORM, settings));
  }
  SUBCASE("three workers, and all records for each") {
    kj::StringPtr settings[] = {"train.steps=50", "cluster.workers=3", "data.validation=whole"};
    checkAgain(train(MLP, settings));
  }
}

TEST_CASE("evaluate: needs only the weights, not their run") {
  auto run = train(BATCH_NORM, {"train.steps=20", "checkpoint.keep_best=true"});
  auto folder = newFolder();
  auto copy = kj::str(folder, "/w.safetensors");
  writeFile(copy,
      run.folder.size() > 0 ? readFile(kj::str(run.folder, "/weights.safetensors")) : kj::str());
  auto here = outputOf({"evaluate", run.folder, "--json"});
  auto there = outputOf({"evaluate", copy, "--json"});
  CHECK(numberIn(here, "loss") == numberIn(there, "loss"));
  auto best = kj::str(run.folder, "/best.safetensors");
  CHECK(numberIn(outputOf({"evaluate", best, "--json"}), "accuracy") == numberIn(here, "accuracy"));
}

TEST_CASE("evaluate: refuses weights that have changed since their run wrote them") {
  auto run = train(MLP, {"train.steps=20"});
  auto path = kj::str(run.folder, "/weights.safetensors");
  auto changed = readFile(path);
  changed[changed.size() - 1] ^= 1;
  writeFile(path, changed);
  for (auto& words: {kj::arr(kj::str("evaluate"), kj::str(run.folder)),
           kj::arr(kj::str("evaluate"), kj::str(path)),
           kj::arr(kj::str("export"), kj::str(run.folder), kj::str("--to"), kj::str("onnx"),
               kj::str("--output"), kj::str(run.folder, "/network.onnx"))}) {
    auto ended = command(KJ_MAP(word, words)->kj::StringPtr { return word; });
    INFO(ended.errors);
    CHECK(ended.exitCode != 0);
    CHECK(contains(ended.errors, kj::str("error: ", path, " has changed since the run wrote it")));
  }
  // Elsewhere, it is a file like any other.
  auto copy = kj::str(newFolder(), "/weights.safetensors");
  writeFile(copy, changed);
  outputOf({"evaluate", copy});
}

TEST_CASE("evaluate: biases that the weights lack can be left out, and nothing else") {
  // The network of MLP, without biases.
  auto folder = newFolder();
  auto file = kj::str(folder, "/mlp.toml");
  writeFile(file, R"(name = "mlp"
data = { dataset = "fashion_mnist", batch_size = 100, augment = { scale = 0.00390625 } }
train = { steps = 20, optimizer = { kind = "sgd", learning_rate = 0.05 } }
[model]
init = { kind = "xavier" }
layers = [
  { kind = "dense", name = "fc1", units = 128, bias = false }, { kind = "relu" },
  { kind = "dense", name = "fc2", units = 64, bias = false }, { kind = "relu" },
  { kind = "dense", name = "fc3", units = 10, bias = false },
]
)");
  auto run = train(file);
  auto weights = kj::str("model.weights=", run.folder);
  auto json =
      outputOf({"evaluate", MLP, "--json", "--set", weights, "--set", "model.skip=[\"*_bias\"]"});
  // Two workers add their losses in another order than one.
  auto own = outputOf({"evaluate", run.folder, "--json"});
  CHECK(numberIn(json, "loss") == doctest::Approx(numberIn(own, "loss")).epsilon(1e-9));
  CHECK(numberIn(json, "accuracy") == numberIn(own, "accuracy"));

  auto ended = command({"evaluate", MLP, "--set", weights});
  CHECK(ended.exitCode == 2);
  CHECK(
      contains(ended.errors, "it does not have fc1_bias, fc2_bias, fc3_bias. Its layers probably"));
  ended =
      command({"evaluate", MLP, "--set", weights, "--set", "model.skip=[\"*_bias\", \"fc3*\"]"});
  CHECK(ended.exitCode == 2);
  CHECK(contains(ended.errors, "model.skip leaves out `fc3_weight`, without which"));
}

TEST_CASE("predict: its answers for all files add up to evaluate's accuracy") {
  auto folder = photos();
  auto source = kj::str("data.source=", folder);
  auto run = train(PHOTOS, {source});
  auto lines = linesOf(outputOf({"predict", run.folder, folder, "--format", "jsonl"}));
  CHECK(lines.size() == 60);
  uint correct = 0;
  for (auto& line: lines) {
    auto at = ::strstr(line.cStr(), "\"top\":[{\"class\":\"");
    REQUIRE(at != nullptr);
    bool isBright = ::strncmp(at + 17, "bright", 6) == 0;
    correct += isBright == contains(line, "/bright/");
    CHECK(numberIn(line, "probability") >= 0.5);
  }
  auto into = newFolder();
  auto json = outputOf({"evaluate", run.folder, "--data", folder, "--json", "--into", into});
  CHECK(numberIn(json, "images") == 60);
  CHECK(numberIn(json, "accuracy") == double(correct) / 60);
  auto page = readFile(kj::str(into, "/evaluation.html"));
  CHECK(contains(page, "<h2>Classes</h2>"));
  CHECK(contains(page, "bright"));
  CHECK(countOf(page, "<img ") == 60 - correct);
  CHECK(readFile(kj::str(into, "/evaluation.csv")).size() > 0);
  // A second evaluation replaces the page of the first, but no page of another program.
  auto again = [&]() {
    return command({"evaluate", run.folder, "--data", folder, "--into", into});
  };
  CHECK(again().exitCode == 0);
  for (auto name: {"/evaluation.csv", "/evaluation.html"}) {
    auto foreign = kj::str(into, name);
    writeFile(foreign, "my own");
    auto refused = again();
    CHECK(refused.exitCode == 2);
    CHECK(contains(refused.errors, kj::str(foreign, " exists, and is not of an evaluation. ")));
    CHECK(readFile(foreign) == "my own");
    REQUIRE(::unlink(foreign.cStr()) == 0);
  }
  auto all = command({"evaluate", run.folder, "--set", "log.top_k=2"});
  CHECK(all.exitCode == 2);
  CHECK(contains(all.errors, "log.top_k = 2 counts every image: the network has 2 classes"));

  SUBCASE("a file that is not an image is named, and the others are classified") {
    writeFile(kj::str(folder, "/notes.txt"), "not a picture");
    auto ended = command({"predict", run.folder, folder, "--format", "csv", "--top", "1"});
    CHECK(ended.exitCode == 1);
    CHECK(contains(ended.errors, "notes.txt is neither a JPEG nor a PNG file"));
    CHECK(contains(ended.errors, "1 of 61 images could not be used"));
    CHECK(linesOf(ended.output).size() == 61);  // with the header
  }
  SUBCASE("hidden files and empty folders are named, and are no error") {
    writeFile(kj::str(folder, "/.note"), "not a picture");
    auto empty = kj::str(folder, "/later");
    REQUIRE(::mkdir(empty.cStr(), 0777) == 0);
    auto ended = command({"evaluate", run.folder, "--data", folder, "--json"});
    CHECK(ended.exitCode == 0);
    CHECK(
        contains(ended.errors, kj::str("left out 1 hidden file or folder of ", folder, ": .note")));
    CHECK(contains(ended.errors, kj::str("left out 1 empty folder of ", folder, ": later")));
    CHECK(numberIn(ended.output, "images") == 60);
  }
  SUBCASE("a path without an image is named, and the others are classified") {
    auto image = kj::str(folder, "/bright/0.jpg");
    auto ended = command({"predict", run.folder, "/nowhere.jpg", image, "--format", "csv"});
    CHECK(ended.exitCode == 1);
    CHECK(contains(ended.errors, "cannot find the image /nowhere.jpg"));
    CHECK(contains(ended.errors, "1 of 2 images could not be used"));
    CHECK(contains(ended.output, "/bright/0.jpg,1,"));
  }
  SUBCASE("an image whose values are not finite is named, and the others are classified") {
    auto grey = kj::heapArray<kj::byte>(3 * 12 * 12);
    for (auto& pixel: grey) pixel = 128;
    auto image = kj::str(folder, "/grey.jpg");
    writeFile(image, kj::str(io::encodeJpeg({{3, 12, 12}, io::Layout::PIXELS, grey}).asChars()));
    // Values of a grey image are 0, and those of other images overflow.
    auto ended = command({"predict", run.folder, folder, "--format", "csv", "--top", "1", "--set",
        "data.augment.scale=1e38"});
    CHECK(ended.exitCode == 1);
    CHECK(contains(ended.errors, kj::str("there is no answer for ", folder, "/bright/0.jpg: ")));
    CHECK(contains(ended.errors, "/weights.safetensors give "));
    CHECK(contains(ended.errors, "60 of 61 images could not be used"));
    auto lines = linesOf(ended.output);
    REQUIRE(lines.size() == 2);
    CHECK(contains(lines[1], "/grey.jpg,1,"));
  }
  SUBCASE("classes of another data set are not compared with those of the network") {
    auto other = train(MLP, {"train.steps=5"});
    auto ended = command({"evaluate", other.folder, "--set", "data.classes=[\"Bag\", \"Coat\"]"});
    CHECK(ended.exitCode == 2);
    CHECK(contains(ended.errors, "is the class "));
    ended = command({"evaluate", other.folder, "--set", "model.weights =x"});
    CHECK(contains(ended.errors, "has its own weights. Name an experiment file"));
    auto weights = kj::str("model.weights=", run.folder);
    ended = command({"evaluate", MLP, "--set", weights});
    CHECK(ended.exitCode == 2);
    CHECK(contains(ended.errors, "do not fit the network"));
  }
  SUBCASE("a folder may have the number of a class as its name") {
    auto other = photos();
    kj::newDiskFilesystem()->getRoot().openFile(kj::Path(nullptr).eval(kj::str(other, "/0/1.jpg")),
        kj::WriteMode::CREATE | kj::WriteMode::CREATE_PARENT);
    // The file is not an image.
    auto ended = command({"evaluate", run.folder, "--data", other});
    CHECK(!contains(ended.errors, "/0 is not named after a class"));
  }
  SUBCASE("a folder that names no class is an error") {
    auto other = photos();
    auto place = kj::str(other, "/zebra/1.jpg");
    kj::newDiskFilesystem()->getRoot().openFile(
        kj::Path(nullptr).eval(place), kj::WriteMode::CREATE | kj::WriteMode::CREATE_PARENT);
    auto ended = command({"evaluate", run.folder, "--data", other});
    CHECK(ended.exitCode == 2);
    CHECK(contains(ended.errors, "/zebra is not named after a class of the network"));
  }
}

TEST_CASE("evaluate: finds classes whose names are not UTF-8") {
  auto folder = photos();
  auto bright = kj::str(folder, "/bright"), dark = kj::str(folder, "/dark");
  REQUIRE(::rename(bright.cStr(), kj::str(folder, "/clart\xe9").cStr()) == 0);
  REQUIRE(::rename(dark.cStr(), kj::str(folder, "/noir\xff").cStr()) == 0);
  auto source = kj::str("data.source=", folder);
  auto run = train(PHOTOS, {source});
  checkAgain(run);
  CHECK(numberIn(outputOf({"evaluate", run.folder, "--data", folder, "--json"}), "images") == 60);
}

TEST_CASE("model.weights: training begins with them, except for what is skipped") {
  kj::StringPtr brief[] = {"train.steps=30"};
  auto first = train(MLP, brief);
  auto from = kj::str("model.weights=", first.folder);
  constexpr kj::StringPtr STILL[] = {"train.steps=1"_kj, "train.optimizer.learning_rate=1e-30"_kj,
      "train.optimizer.weight_decay=0"_kj};
  auto same = train(MLP, {from, STILL[0], STILL[1], STILL[2]});
  CHECK(same.weightsSha256 == first.weightsSha256);

  auto other = train(MLP, {from, "model.skip=[\"fc3*\"]", STILL[0], STILL[1], STILL[2]});
  CHECK(other.weightsSha256 != first.weightsSha256);
  auto ours = weightsOf(other), theirs = weightsOf(first);
  size_t head = 64 * 10 + 10, same_floats = ours.size() - head;
  for (size_t i = 0; i < same_floats; i++) CHECK(ours[i] == theirs[i]);

  // A run moves the link `last` to itself when it begins.
  auto runs = kj::str(first.folder, "/../.."), last = kj::str(first.folder, "/../last");
  auto fromLast = kj::str("model.weights=", last);
  auto next = command({"run", MLP, "--runs", runs, "--set", fromLast, "--set", "train.steps=1"});
  INFO(next.errors);
  CHECK(next.exitCode == 0);
  CHECK(contains(readFile(kj::str(last, "/experiment.toml")), "/1\"\n"));

  auto file = readFile(kj::str(first.folder, "/experiment.toml"));
  auto ended = command({"check", BATCH_NORM, "--set", from});
  CHECK(ended.exitCode == 2);
  CHECK(contains(ended.errors, "do not fit this network"));
  ended = command({"check", MLP, "--set", from, "--set", "model.skip=[\"head*\"]"});
  CHECK(ended.exitCode == 2);
  CHECK(contains(ended.errors, "the network has no array `head*` that could be skipped"));
  ended = command({"check", MLP, "--set", "model.weights=nowhere"});
  CHECK(ended.exitCode == 2);
  CHECK(contains(ended.errors, "cannot find the weights"));
}

TEST_CASE("model.weights: the digest depends on the weights, and not on where they are") {
  auto first = train(MLP, {"train.steps=30"}), second = train(MLP, {"train.steps=31"});
  auto digest = [&](kj::StringPtr weights) {
    auto from = kj::str("model.weights=", weights);
    auto run = train(MLP, {from, "train.steps=1"});
    kj::String found;
    eachEvent(run, [&](runner::Event::Reader event) {
      if (event.isStarted()) found = kj::str(event.getStarted().getDigest());
    });
    return found;
  };
  auto folder = newFolder();
  auto moved = kj::str(folder, "/moved.safetensors");
  writeFile(moved, readFile(kj::str(first.folder, "/weights.safetensors")));
  auto ofFirst = digest(first.folder);
  CHECK(ofFirst.size() == 64);
  CHECK(digest(moved) == ofFirst);
  CHECK(digest(second.folder) != ofFirst);
}

TEST_CASE("train.early_stop: a run ends when epochs are no better, and says so") {
  kj::StringPtr settings[] = {"train.epochs=9", "train.early_stop={ patience = 2 }",
      "train.optimizer.learning_rate=1e-30", "train.optimizer.weight_decay=0",
      "data.batch_size=3000"};
  auto run = train(MLP, settings);
  uint validations = 0, ends = 0;
  eachEvent(run, [&](runner::Event::Reader event) {
    if (event.isEnded() && event.getIndex() == 0) ends++;
    if (!event.isValidated() || event.getIndex() != 0) return;
    auto validated = event.getValidated();
    validations++;
    CHECK(validated.getLast() == (validations == 3));
    CHECK(validated.hasEndsEarly() == (validations == 3));
  });
  CHECK(validations == 3);
  CHECK(ends == 1);
  CHECK(contains(readFile(kj::str(run.folder, "/table.md")),
      "Ended early: no epoch was better than epoch 1, whose validation accuracy is"));
  CHECK(readFile(kj::str(run.folder, "/confusion.csv")).size() > 0);
  checkAgain(run);
}

TEST_CASE("train.ema: the average has a separate file and figure, and changes no weights") {
  kj::StringPtr plain[] = {"train.steps=60"};
  kj::StringPtr averaged[] = {"train.steps=60", "train.ema={ decay = 0.95 }"};
  auto without = train(BATCH_NORM, plain), with = train(BATCH_NORM, averaged);
  CHECK(without.weightsSha256 == with.weightsSha256);
  double accuracy = -1, loss = -1;
  eachEvent(with, [&](runner::Event::Reader event) {
    if (!event.isAveraged()) return;
    accuracy = event.getAveraged().getAccuracy();
    loss = event.getAveraged().getLoss();
  });
  auto file = kj::str(with.folder, "/ema.safetensors");
  auto json = outputOf({"evaluate", file, "--json"});
  CHECK(numberIn(json, "accuracy") == accuracy);
  CHECK(numberIn(json, "loss") == loss);
  CHECK(accuracy > 0.3);
  CHECK(contains(readFile(kj::str(with.folder, "/table.md")), "Kept in ema.safetensors"));
}

}  // namespace tests
