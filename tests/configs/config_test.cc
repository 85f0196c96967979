// An experiment of configs/ must pass `runner check`, have the published number of parameters, and
// train: all runs of its sweep with the roles that it asks for, some steps on some small images.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <stdlib.h>
#include <string.h>

#include "io/images/jpeg.h"
#include "tests/run.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr uint CLASSES = 10;
// Enough for two steps of five workers with a batch of 4. Every tenth image is for validation.
constexpr uint IMAGES = 60;
// Larger than the crops of all files.
constexpr io::ImageShape SHAPE = {3, 32, 32};

kj::StringPtr variable(const char* name) {
  auto value = ::getenv(name);
  KJ_REQUIRE(value != nullptr, "the BUILD file sets it", name);
  return value;
}

kj::String file() {
  return kj::str("configs/", variable("CONFIG"), ".toml");
}

// A folder of JPEG files in ten classes.
kj::String imageFolder() {
  auto folder = newFolder();
  auto pixels = kj::heapArray<kj::byte>(SHAPE.size());
  for (uint i = 0; i < IMAGES; ++i) {
    auto label = kj::str(folder, "/", i % CLASSES);
    if (i < CLASSES) REQUIRE(Command({"mkdir", label}).wait().exitCode == 0);
    for (size_t k: kj::indices(pixels)) pixels[k] = (k * (i % CLASSES + 3) * 37 + i) % 251;
    auto jpeg = io::encodeJpeg({SHAPE, io::Layout::PIXELS, pixels});
    writeFile(kj::str(label, "/", i / CLASSES, ".jpeg"), kj::heapString(jpeg.asChars()));
  }
  return folder;
}

// `runner VERB FILE`, with a folder of images where the file leaves it to the user to name one.
Ended runAsPublished(kj::StringPtr verb) {
  auto path = file();
  kj::Vector<kj::StringPtr> words;
  words.addAll(kj::ArrayPtr<const kj::StringPtr>({RUNNER, verb, path}));
  auto source = kj::str("data.source=", imageFolder());
  if (variable("NEEDS_SOURCE") == "yes") {
    words.addAll(kj::ArrayPtr<const kj::StringPtr>({"--set", source}));
  }
  return Command(words).wait();
}

TEST_CASE("runner check finds no mistake in the file") {
  auto ended = runAsPublished("check");
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
}

TEST_CASE("the network of the file has the published number of parameters") {
  auto parameters = variable("PARAMETERS");
  if (parameters == "") return;  // another file has the number for this network
  auto ended = runAsPublished("explain");
  INFO(ended.output, ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, kj::str("\n", parameters, " parameters in ")));
}

// `runner VERB FILE` with the settings that tiny data need (SETTINGS), and `more`.
Ended runTiny(kj::StringPtr verb, kj::StringPtr source, kj::ArrayPtr<const kj::StringPtr> more) {
  auto path = file();
  kj::Vector<kj::StringPtr> words;
  // The largest of these networks keep a busy machine silent for seconds.
  words.addAll(kj::ArrayPtr<const kj::StringPtr>(
      {RUNNER, verb, path, "--set", source, "--set", "cluster.silence_timeout_s=60"}));
  // Each line of SETTINGS is one setting.
  auto settings = kj::str(variable("SETTINGS"));
  for (char* word = ::strtok(settings.begin(), "\n"); word != nullptr;
       word = ::strtok(nullptr, "\n")) {
    words.addAll(kj::ArrayPtr<const kj::StringPtr>({"--set", word}));
  }
  words.addAll(more);
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  Command command(words, {.environment = environment});
  return command.wait();
}

// N of `FILE: fine, N runs` or `FILE: OK so far, N runs; …`. 1 without a number.
uint runsOf(kj::StringPtr checked) {
  for (auto verdict: {": fine, ", ": OK so far, "}) {
    auto at = ::strstr(checked.cStr(), verdict);
    if (at != nullptr) return ::atoi(at + strlen(verdict));
  }
  return 1;
}

uint count(kj::StringPtr text, kj::StringPtr part) {
  uint found = 0;
  for (auto at = ::strstr(text.cStr(), part.cStr()); at != nullptr;
       at = ::strstr(at + part.size(), part.cStr())) {
    ++found;
  }
  return found;
}

TEST_CASE("all runs of the file train some steps on small images") {
  auto source = kj::str("data.source=", imageFolder());
  auto checked = runTiny("check", source, nullptr);
  CHECK(checked.exitCode == 0);
  auto runs = newFolder();
  auto ended = runTiny("run", source, {"--runs", runs});
  INFO(ended.output, ended.errors);
  if (contains(ended.errors, "error: device `cuda`: ")) SKIP_CASE("no GPU that it names");
  // 3: four steps cannot meet the expectations of the file.
  CHECK((ended.exitCode == 0 || ended.exitCode == 3));
  CHECK(count(ended.output, "weights sha256=") == runsOf(checked.output));
  CHECK(processesWith(runs).size() == 0);
}

}  // namespace
}  // namespace tests
