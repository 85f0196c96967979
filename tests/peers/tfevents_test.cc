// Compares the event files of a real run, as tfevents.py reads them, with the run's own events.
#include <doctest/doctest.h>
#include <glob.h>
#include <stdio.h>

#include "tests/cluster/whole_runs.h"
#include "tests/run.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr TINY = "tests/peers/tiny.toml"_kj;
constexpr int NO_PROTOC = 77;

Ended readBoard(kj::StringPtr path) {
  return Command({"python3", "tests/peers/tfevents.py", path}).wait();
}

// The only file of a folder below `run`'s.
kj::String fileIn(const Trained& run, kj::StringPtr folder) {
  auto pattern = kj::str(run.folder, "/tensorboard/", folder, "/events.out.tfevents.*.runner");
  glob_t found;
  REQUIRE(glob(pattern.cStr(), 0, nullptr, &found) == 0);
  KJ_DEFER(globfree(&found));
  REQUIRE(found.gl_pathc == 1);
  return kj::str(found.gl_pathv[0]);
}

// A point as the script prints it: values are float32 there.
kj::String point(kj::StringPtr tag, uint64_t step, double value) {
  char digits[32];
  snprintf(digits, sizeof(digits), "%.9g", double(float(value)));
  return kj::str(tag, "\t", step, "\t", static_cast<const char*>(digits), "\n");
}

// What tfevents.py must print of the files of worker `rank`, and of the validation.
struct Expected {
  kj::Vector<kj::String> worker;
  kj::Vector<kj::String> validation;
};

Expected expectedOf(const Trained& run, uint rank) {
  Expected expected;
  eachEvent(run, [&](runner::Event::Reader event) {
    if (event.isSpeed() && event.getIndex() == rank) {
      auto speed = event.getSpeed();
      auto add = [&](kj::StringPtr tag, double value) {
        expected.worker.add(point(tag, speed.getGlobalStep(), value));
      };
      add("train/loss", speed.getLoss());
      add("train/accuracy", speed.getAccuracy());
      add("images_per_s", speed.getImagesPerS());
      add("learning_rate", speed.getLearningRate());
    } else if (event.isTrained() && event.getIndex() == rank) {
      auto trained = event.getTrained();
      auto add = [&](kj::StringPtr tag, double value) {
        expected.worker.add(point(tag, trained.getGlobalStep(), value));
      };
      add("epoch/loss", trained.getLoss());
      add("epoch/accuracy", trained.getAccuracy());
      add("epoch/seconds", trained.getTimeS());
    } else if (event.isValidated() && event.getIndex() == 0) {
      auto validated = event.getValidated();
      auto add = [&](kj::StringPtr tag, double value) {
        expected.validation.add(point(tag, validated.getGlobalStep(), value));
      };
      add("validation/loss", validated.getLoss());
      add("validation/accuracy", validated.getAccuracy());
    }
  });
  return expected;
}

TEST_CASE("an independent reader finds in the event files the figures of the run's events") {
  auto run = train(TINY);
  if (readBoard(fileIn(run, "validation")).exitCode == NO_PROTOC) {
    SKIP_CASE("no protoc to decode event files with (protobuf-compiler)");
  }
  for (uint rank = 0; rank < 2; rank++) {
    auto expected = expectedOf(run, rank);
    // 60 steps per epoch, and one line per 20 steps, with four points. Each epoch has three more.
    CHECK(expected.worker.size() == 2 * (3 * 4 + 3));
    CHECK(expected.validation.size() == 2 * 2);
    auto worker = readBoard(fileIn(run, kj::str("worker-", rank)));
    INFO(worker.errors);
    CHECK(worker.exitCode == 0);
    CHECK(worker.output == kj::strArray(expected.worker, ""));
    auto validation = readBoard(fileIn(run, "validation"));
    INFO(validation.errors);
    CHECK(validation.exitCode == 0);
    CHECK(validation.output == kj::strArray(expected.validation, ""));
  }
}

TEST_CASE("the independent reader refuses a torn file, and one with a wrong bit") {
  auto run = train(TINY, {"train.epochs=1", "cluster.workers=1"});
  auto whole = readFile(fileIn(run, "worker-0"));
  auto path = kj::str(newFolder(), "/file");
  auto complaint = [&](kj::StringPtr content) {
    writeFile(path, content);
    auto ended = readBoard(path);
    CHECK(ended.exitCode == 1);
    return kj::mv(ended.errors);
  };
  CHECK(
      complaint(kj::heapString(whole.slice(0, whole.size() - 1))).endsWith("goes past the end\n"));
  auto wrong = kj::heapString(whole);
  wrong.begin()[whole.size() - 5] ^= 1;
  CHECK(complaint(wrong).endsWith("the data's checksum is wrong\n"));
  wrong = kj::heapString(whole);
  wrong.begin()[0] ^= 1;
  CHECK(complaint(wrong).endsWith("the length's checksum is wrong\n"));
}

TEST_CASE("log.tensorboard = false writes no event files") {
  auto run = train(TINY, {"train.epochs=1", "cluster.workers=1", "log.tensorboard=false"});
  glob_t found;
  CHECK(glob(kj::str(run.folder, "/tensorboard*").cStr(), 0, nullptr, &found) == GLOB_NOMATCH);
}

}  // namespace
}  // namespace tests
