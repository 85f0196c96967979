// tests/cluster/whole_runs.h: runs the experiments of this folder, and reads their results.
#pragma once

#include <capnp/message.h>
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <math.h>

#include "runner/logs/confusion_file.h"
#include "runner/logs/events.h"
#include "tests/run.h"
#include "tests/text.h"

namespace tests {

// Arguments of `--set`, such as `train.seed=2`.
using Settings = kj::ArrayPtr<const kj::StringPtr>;

constexpr kj::StringPtr MLP = "tests/cluster/mlp.toml"_kj;
constexpr kj::StringPtr TANH = "tests/cluster/tanh.toml"_kj;
constexpr kj::StringPtr BATCH_NORM = "tests/cluster/batch_norm.toml"_kj;

// Runs `file`, and returns the sha256 of its final weights.
inline kj::String bitsOf(kj::StringPtr file, Settings settings = nullptr) {
  return train(file, settings).weightsSha256;
}

// Returns the largest difference between the weights of two runs.
inline double distance(const Trained& a, const Trained& b) {
  auto left = weightsOf(a), right = weightsOf(b);
  REQUIRE(left.size() == right.size());
  REQUIRE(left.size() > 1000);
  double largest = 0;
  for (size_t i: kj::indices(left)) {
    largest = kj::max(largest, fabs(double(left[i]) - double(right[i])));
  }
  return largest;
}

// Calls `use` with every event of a run.
inline void eachEvent(const Trained& run, kj::FunctionParam<void(runner::Event::Reader)> use) {
  for (auto& line: linesOf(readFile(kj::str(run.folder, "/events.jsonl")))) {
    capnp::MallocMessageBuilder message;
    auto event = message.initRoot<runner::Event>();
    runner::parseEvent(line, event);
    use(event);
  }
}

// Returns the accuracy of the last validation.
inline double validationAccuracy(const Trained& run) {
  double accuracy = 0;
  eachEvent(run, [&](runner::Event::Reader event) {
    if (event.isValidated()) accuracy = event.getValidated().getAccuracy();
  });
  return accuracy;
}

// Returns the text of the run's confusion.csv, after checking that it is about the images and the
// accuracy of the last validation that worker 0 has reported.
inline kj::String confusionOf(const Trained& run) {
  auto text = readFile(kj::str(run.folder, "/confusion.csv"));
  uint64_t images = 0, correct = 0;
  for (auto& cell: runner::parseConfusion(text, run.folder)) {
    images += cell.images;
    if (cell.label == cell.predicted) correct += cell.images;
  }
  uint lasts = 0;
  eachEvent(run, [&](runner::Event::Reader event) {
    if (!event.isValidated() || !event.getValidated().getLast() || event.getIndex() > 0) return;
    lasts++;
    CHECK(images == event.getValidated().getImages());
    CHECK(double(correct) / images == event.getValidated().getAccuracy());
  });
  CHECK(lasts == 1);
  return text;
}

}  // namespace tests
