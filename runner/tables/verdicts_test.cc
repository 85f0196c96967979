#include "runner/tables/verdicts.h"

#include <doctest/doctest.h>
#include <kj/vector.h>

#include <cmath>

namespace runner {
namespace {

constexpr uint TOP_K = 5;

// Two epochs with the validation accuracies `first` and `second`.
RunRecord run(double first, double second) {
  auto epochs = kj::heapArray<EpochRecord>(2);
  for (uint i = 0; i < 2; i++) {
    epochs[i].epoch = i + 1;
    epochs[i].images = 100;
    epochs[i].trainLoss = 0.5;
    epochs[i].trainAccuracy = 0.25;
    epochs[i].validationAccuracy = i == 0 ? first : second;
  }
  RunRecord record;
  record.state = RunRecord::FINISHED;
  record.epochRecords = kj::mv(epochs);
  return record;
}

// Returns the verdicts on a run, each after a `+` or `-`.
kj::String judged(
    kj::StringPtr text, const RunRecord& record, kj::Maybe<const RunRecord&> firstRun = nullptr) {
  configs::Diagnostics diagnostics;
  auto document = configs::parse("x.toml", text, diagnostics);
  configs::Reading reading{diagnostics, {}};
  auto expectations = configs::readDocument(*document, reading, readExpectations);
  CHECK(diagnostics.format("x.toml") == "");
  auto lines = KJ_MAP(verdict, judge(expectations, record, TOP_K, firstRun)) {
    return kj::str(verdict.met ? "+ " : "- ", verdict.sentence, "\n");
  };
  return kj::strArray(lines, "");
}

TEST_CASE("judge: bounds hold for the last epoch, or for the epoch that they name") {
  auto record = run(0.7912, 0.85);
  CHECK(judged("validation_accuracy = { at_least = 0.82 }", record) ==
        "+ validation_accuracy of epoch 2 is 0.85, as expected at least 0.82\n");
  CHECK(judged("validation_accuracy = { epoch = 1, at_least = 0.82 }", record) ==
        "- validation_accuracy of epoch 1 is 0.7912, expected at least 0.82\n");
  CHECK(judged("train_loss = { at_most = 0.4 }\ntrain_accuracy = { at_least = 0.25 }", record) ==
        "+ train_accuracy of epoch 2 is 0.25, as expected at least 0.25\n"
        "- train_loss of epoch 2 is 0.5, expected at most 0.4\n");
}

TEST_CASE("judge: the top-k accuracy is a separate figure") {
  auto record = run(0.5, 0.6);
  record.epochRecords[1].topK = TopKFigure{TOP_K, 0.875};
  CHECK(judged("validation_top_k_accuracy = { at_least = 0.9 }", record) ==
        "- validation_top_k_accuracy of epoch 2 is 0.875, expected at least 0.9\n");
  CHECK(judged("validation_top_k_accuracy = { epoch = 1, at_least = 0 }", record) ==
        "- validation_top_k_accuracy of epoch 1 is expected, but the run does not have it\n");
}

TEST_CASE("judge: a top-k accuracy of another k is not the expected figure") {
  auto record = run(0.5, 0.6);
  record.epochRecords[1].topK = TopKFigure{1, 0.6};
  CHECK(judged("validation_top_k_accuracy = { at_most = 0.95 }", record) ==
        "- validation_top_k_accuracy of epoch 2 is expected, but the run does not have it\n");
}

TEST_CASE("judge: an expectation is missed if its figure is missing or not a number") {
  CHECK(judged("validation_accuracy = { epoch = 3, at_least = 0 }", run(0, 0)) ==
        "- validation_accuracy of epoch 3 is expected, but the run has only 2 epochs\n");
  CHECK(judged("validation_loss = { at_most = 1 }", run(0, 0)) ==
        "- validation_loss of epoch 2 is expected, but the run does not have it\n");
  CHECK(judged("validation_accuracy = { at_least = 0 }", run(0, std::nan(""))) ==
        "- validation_accuracy of epoch 2 is nan, expected at least 0\n");
}

TEST_CASE("judge: prints a narrow miss with enough digits to show it") {
  CHECK(judged("validation_accuracy = { at_least = 0.80960001 }", run(0.1, 0.8096)) ==
        "- validation_accuracy of epoch 2 is 0.8096, expected at least 0.80960001\n");
  CHECK(judged("validation_accuracy = { at_most = 0.8 }", run(0.1, 0.80000001)) ==
        "- validation_accuracy of epoch 2 is 0.80000001, expected at most 0.8\n");
  CHECK(judged("validation_accuracy = { within_of_first_epoch = 0 }", run(0.5, 0.50000001)) ==
        "- validation_accuracy of epoch 2 is 0.50000001, expected within 0 of epoch 1's 0.5\n");
}

TEST_CASE("judge: a distance that equals the bound in decimal fractions meets it") {
  CHECK(judged("validation_accuracy = { within_of_first_epoch = 0.05 }", run(0.7, 0.75))
            .startsWith("+ "));
  CHECK(judged("validation_accuracy = { within_of_first_epoch = 0.05 }", run(0.7, INFINITY))
            .startsWith("- "));
}

TEST_CASE("judge: measures distances from epoch 1, and from the same epoch of the first run") {
  constexpr kj::StringPtr NEAR_EPOCH = "validation_accuracy = { within_of_first_epoch = 0.01 }"_kj;
  CHECK(judged(NEAR_EPOCH, run(0.5, 0.505)).startsWith("+ "));
  CHECK(judged(NEAR_EPOCH, run(0.5, 0.52)) ==
        "- validation_accuracy of epoch 2 is 0.52, expected within 0.01 of epoch 1's 0.5\n");

  constexpr kj::StringPtr NEAR_RUN = "validation_accuracy = { within_of_first_run = 0.01 }"_kj;
  auto first = run(0.1, 0.9);
  first.folder = kj::str("first");
  CHECK(judged(NEAR_RUN, run(0.2, 0.895), first).startsWith("+ "));
  CHECK(judged(NEAR_RUN, run(0.1, 0.88), first) ==
        "- validation_accuracy of epoch 2 is 0.88, expected within 0.01 of the first run's 0.9\n");
  first.state = RunRecord::STOPPED;
  CHECK(judged(NEAR_RUN, run(0.2, 0.9), first) ==
        "- validation_accuracy of epoch 2 is 0.9, expected within 0.01 of the first run's, but "
        "that run is missing or did not finish\n");
  first.state = RunRecord::RUNNING;
  CHECK(judged(NEAR_RUN, run(0.2, 0.9), first) == "");
  // Without a sweep, and for the first run itself, this expectation has no verdict.
  CHECK(judged(NEAR_RUN, run(0.1, 0.88)) == "");
  CHECK(judged(NEAR_RUN, first, first) == "");
}

}  // namespace
}  // namespace runner
