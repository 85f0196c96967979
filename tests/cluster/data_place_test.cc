// The place of an experiment's images: which folder a relative data.source starts from, and that a
// run is identified by its images and not by their folder.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/filesystem.h>
#include <string.h>

#include "io/images/jpeg.h"
#include "tests/run.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr EXPERIMENT = R"(name = "x"

[data]
dataset = "image_folder"
source = "photos"
batch_size = 4
reader_threads = 1

[model]
layers = [{ kind = "dense", units = 2 }]

[train]
steps = 2
optimizer = { kind = "sgd", learning_rate = 1e-6 }

[kvstore]
mode = "dist_sync"

[cluster]
workers = 1
)"_kj;

kj::String absolute(kj::StringPtr path) {
  auto filesystem = kj::newDiskFilesystem();
  return filesystem->getCurrentPath().eval(path).toString(true);
}

// A folder with x.toml and, in `photos`, twenty images of two classes.
kj::String newExperiment(uint brightness) {
  auto folder = newFolder();
  REQUIRE(Command({"mkdir", "-p", kj::str(folder, "/photos/cat"), kj::str(folder, "/photos/dog")})
              .wait()
              .exitCode == 0);
  io::ImageShape shape = {3, 8, 8};
  for (uint i = 0; i < 20; i++) {
    auto pixels = kj::heapArray<kj::byte>(shape.size());
    for (size_t k: kj::indices(pixels)) pixels[k] = (k * (i + 3) * 37 + brightness) % 251;
    auto jpeg = io::encodeJpeg({shape, io::Layout::PIXELS, pixels});
    auto name = kj::str(i % 2 == 0 ? "cat" : "dog", "/", i / 10, i % 10, ".jpeg");
    writeFile(kj::str(folder, "/photos/", name), kj::heapString(jpeg.asChars()));
  }
  writeFile(kj::str(folder, "/x.toml"), EXPERIMENT);
  return folder;
}

struct TestFolders {
  kj::String folder = newFolder();  // where the program is called
  kj::String cache = kj::str("RUNNER_CACHE=", newFolder());
  kj::String runs = newFolder();

  Ended call(kj::ArrayPtr<const kj::StringPtr> words) {
    auto program = absolute(RUNNER);
    kj::Vector<kj::StringPtr> all;
    all.add(program);
    all.addAll(words);
    kj::StringPtr environment[] = {cache};
    return Command(all, {.folder = folder, .environment = environment}).wait();
  }

  // Trains `file`, and returns the folder of the run.
  kj::String train(kj::StringPtr file, kj::ArrayPtr<const kj::StringPtr> more = nullptr) {
    kj::Vector<kj::StringPtr> words;
    words.addAll(kj::ArrayPtr<const kj::StringPtr>({"run", file, "--runs", runs}));
    words.addAll(more);
    auto ended = call(words);
    INFO(ended.errors);
    REQUIRE(ended.exitCode == 0);
    auto line = KJ_ASSERT_NONNULL(ended.output.findLast(' '));
    return kj::heapString(ended.output.slice(line + 1, ended.output.size() - 1));
  }
};

kj::String digestOf(kj::StringPtr runFolder) {
  auto events = readFile(kj::str(runFolder, "/events.jsonl"));
  constexpr kj::StringPtr MARK = "\"digest\":\""_kj;
  auto at = ::strstr(events.cStr(), MARK.cStr());
  REQUIRE(at != nullptr);
  return kj::heapString(at + MARK.size(), 64);
}

TEST_CASE("a run finds images beside its file from any folder, and keeps their absolute path") {
  TestFolders folders;
  auto experiment = newExperiment(0);
  auto run = folders.train(kj::str(experiment, "/x.toml"));
  auto kept = kj::str(run, "/experiment.toml");
  CHECK(contains(readFile(kept), kj::str("\nsource = \"", experiment, "/photos\"\n")));
  // The kept file means the same in any folder.
  CHECK(digestOf(folders.train(kept)) == digestOf(run));
}

TEST_CASE("the digest of a run depends on its images, and not on where they are") {
  TestFolders folders;
  auto first = newExperiment(0), same = newExperiment(0), other = newExperiment(1);
  auto digest = digestOf(folders.train(kj::str(first, "/x.toml")));
  CHECK(digestOf(folders.train(kj::str(same, "/x.toml"))) == digest);
  CHECK(digestOf(folders.train(kj::str(other, "/x.toml"))) != digest);
  // Other images in the place of the first.
  REQUIRE(Command({"cp", "-r", kj::str(other, "/photos"), first}).wait().exitCode == 0);
  CHECK(digestOf(folders.train(kj::str(first, "/x.toml"))) != digest);
}

TEST_CASE(
    "a sweep runs again if its images have changed, and skips finished runs if they have not") {
  TestFolders folders;
  auto first = newExperiment(0), other = newExperiment(1);
  auto sweep = [&]() {
    auto ended = folders.call(
        {"run", kj::str(first, "/x.toml"), "--runs", folders.runs, "--sweep", "train.seed=1,2"});
    INFO(ended.errors);
    REQUIRE(ended.exitCode == 0);
    return kj::mv(ended.errors);
  };
  CHECK(contains(sweep(), "2 runs to do, 0 done before"));
  CHECK(contains(sweep(), "0 runs to do, 2 done before"));
  REQUIRE(Command({"cp", "-r", kj::str(other, "/photos"), first}).wait().exitCode == 0);
  CHECK(contains(sweep(), "2 runs to do, 0 done before"));
}

TEST_CASE("images that only the current folder has are refused before anything is imported") {
  TestFolders folders;
  auto elsewhere = newFolder();
  writeFile(kj::str(elsewhere, "/x.toml"), EXPERIMENT);
  folders.folder = newExperiment(0);
  auto ended = folders.call({"run", kj::str(elsewhere, "/x.toml"), "--runs", folders.runs});
  INFO(ended.errors);
  CHECK(ended.exitCode == 2);
  CHECK(contains(ended.errors, kj::str("there is nothing at ", elsewhere, "/photos, but there is ",
                                   "something at ", folders.folder, "/photos")));
  CHECK(contains(ended.errors, "--set data.source=photos"));
  // The advice in the message works.
  auto run = folders.train(kj::str(elsewhere, "/x.toml"), {"--set", "data.source=photos"});
  CHECK(contains(readFile(kj::str(run, "/experiment.toml")), kj::str(folders.folder, "/photos")));
}

TEST_CASE("data needs only [data] of an experiment to be right") {
  TestFolders folders;
  auto experiment = newExperiment(0);
  auto file = kj::str(experiment, "/x.toml");
  // The images have sides of 8 pixels.
  writeFile(file, kj::str("unknown = 1\n[data]\ndataset = \"image_folder\"\nsource = \"photos\"\n",
                      "[model]\nlayers = [{ kind = \"conv\", filters = 1, kernel = 9 }]\n"));
  CHECK(folders.call({"check", file}).exitCode == 2);
  for (auto word: {"info", "verify", "show"}) {
    auto ended = folders.call({"data", word, file});
    INFO(ended.errors);
    CHECK(ended.exitCode == 0);
  }
  writeFile(file, "[data]\ndataset = \"image_folder\"\nsauce = \"photos\"\n");
  auto ended = folders.call({"data", "info", file});
  CHECK(ended.exitCode == 2);
  CHECK(contains(ended.errors, "unknown key `sauce` in [data]"));
}

TEST_CASE("check imports nothing") {
  TestFolders folders;
  CHECK(folders.call({"check", kj::str(newExperiment(0), "/x.toml")}).exitCode == 0);
  auto folder = folders.cache.slice(kj::StringPtr("RUNNER_CACHE=").size());
  CHECK(Command({"ls", "-A", kj::StringPtr(folder)}).wait().output == "");
}

TEST_CASE("--copy-data is refused with a launcher that has no hosts to copy to") {
  auto folder = newFolder();
  writeFile(kj::str(folder, "/x.toml"), EXPERIMENT);
  auto ended =
      Command({RUNNER, "run", kj::str(folder, "/x.toml"), "--runs", folder, "--copy-data"}).wait();
  CHECK(ended.exitCode == 2);
  CHECK(contains(
      ended.errors, "--copy-data is for cluster.launcher = \"ssh\", and this file has \"local\""));
}

}  // namespace
}  // namespace tests
