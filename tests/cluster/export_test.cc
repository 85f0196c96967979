// `runner export` of finished runs: its output, and its errors.
#include <sys/stat.h>

#include "tests/cluster/whole_runs.h"

namespace tests {
namespace {

// Runs `runner export` in the cache of the runs.
Ended exportRun(kj::ArrayPtr<const kj::StringPtr> words) {
  kj::Vector<kj::StringPtr> all;
  all.add(RUNNER);
  all.add("export"_kj);
  all.addAll(words);
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  return Command(all, {.environment = environment}).wait();
}

bool exists(kj::StringPtr path) {
  struct stat about;
  return ::stat(path.cStr(), &about) == 0;
}

TEST_CASE("export: writes a run's network with its classes, and replaces an older file") {
  auto run = train(BATCH_NORM, {"train.steps=20"});
  auto folder = newFolder();
  auto onnx = kj::str(folder, "/network.onnx"), script = kj::str(folder, "/network.py");
  writeFile(onnx, "\x08\x08old");
  auto ended = exportRun({run.folder, "--to", "onnx", "--output", onnx});
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(ended.output.startsWith(kj::str("wrote ", onnx, ": ")));
  auto model = readFile(onnx);
  for (auto part: {"BatchNormalization"_kj, "Ankle boot"_kj, "experiment_sha256"_kj,
           "\"mean_image\":true"_kj, "\"crop\":24"_kj}) {
    CAPTURE(part);
    CHECK(contains(model, part));
  }
  kj::StringPtr more[] = {run.folder, "--to", "onnx", "--output", onnx, "--fold-batch-norm",
      "--with-preprocessing", "--probabilities"};
  CHECK(exportRun(more).exitCode == 0);
  auto other = readFile(onnx);
  CHECK_FALSE(contains(other, "BatchNormalization"));
  CHECK(contains(other, "pixel_mean"));
  CHECK(contains(other, "Softmax"));

  CHECK(exportRun({run.folder, "--to", "torch", "--output", script}).exitCode == 0);
  CHECK(contains(readFile(script), "nn.BatchNorm2d(16, eps="));
  CHECK(contains(readFile(kj::str(folder, "/network.safetensors")), "\"mean_image\""));
}

TEST_CASE("export: refuses wrong options with one sentence, and writes nothing") {
  auto folder = newFolder();
  auto onnx = kj::str(folder, "/network.onnx"), script = kj::str(folder, "/network.py");
  auto lost = kj::str(folder, "/no/network.onnx");
  struct Row {
    std::initializer_list<kj::StringPtr> words;
    kj::StringPtr sentence;
  };
  for (auto& row: {Row{{"x", "--output", onnx}, "name a format: --to onnx or --to torch"},
           Row{{"x", "--to", "onnx"}, "name a file: --output FILE"},
           Row{{"x", "--to", "onx", "--output", onnx},
               "there is no format `onx`; did you mean `onnx`? (onnx, torch)"},
           Row{{"x", "--to", "torch", "--output", onnx}, "must end in .py, such as network.py"},
           Row{{"x", "--to", "torch", "--output", script, "--with-preprocessing"},
               "--with-preprocessing is for --to onnx"},
           Row{{"x", "--to", "torch", "--output", script, "--probabilities"},
               "--probabilities is for --to onnx"},
           Row{{"x", "--to", "onnx", "--output", lost},
               "/no/network.onnx: No such file or directory. Choose another --output"},
           Row{{"x", "--to", "onnx", "--output", folder}, "exists but is not a regular file"},
           Row{{"/nowhere", "--to", "onnx", "--output", onnx}, "/nowhere"}}) {
    auto ended = exportRun(kj::arrayPtr(row.words.begin(), row.words.size()));
    CAPTURE(row.sentence);
    INFO(ended.errors);
    CHECK(ended.exitCode == 2);
    CHECK(contains(ended.errors, row.sentence));
    CHECK(ended.output == "");
  }
  CHECK_FALSE(exists(onnx));
  CHECK_FALSE(exists(script));
}

TEST_CASE("export: does not replace the weights of a run") {
  auto run = train(MLP, {"train.steps=20"});
  auto weights = kj::str(run.folder, "/weights.safetensors");
  auto before = readFile(weights);
  auto script = kj::str(run.folder, "/weights.py");
  auto ended = exportRun({run.folder, "--to", "torch", "--output", script});
  CHECK(ended.exitCode == 2);
  CHECK(contains(ended.errors, "would replace"));
  ended = exportRun({run.folder, "--to", "onnx", "--output", weights});
  CHECK(ended.exitCode == 2);
  CHECK(contains(ended.errors, "exists, and no export has written it"));
  CHECK(readFile(weights) == before);
  CHECK_FALSE(exists(script));
}

}  // namespace
}  // namespace tests
