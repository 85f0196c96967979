#include "runner/experiment/expectations.h"

#include <kj/vector.h>

#include "runner/text/numbers.h"

namespace runner {

namespace {

constexpr ExpectedFigure FIGURES[] = {
    {"validation_accuracy", "Share of the validation images that are classified correctly.",
        ExpectedFigure::VALIDATION_ACCURACY, 1},
    {"validation_top_k_accuracy",
        "Share of the validation images whose label is among the `log.top_k` largest logits.",
        ExpectedFigure::VALIDATION_TOP_K_ACCURACY, 1},
    {"train_accuracy",
        "Share of the training images that are classified correctly, measured during training.",
        ExpectedFigure::TRAIN_ACCURACY, 1},
    {"validation_loss", "Mean loss of the validation images.", ExpectedFigure::VALIDATION_LOSS},
    {"train_loss", "Mean loss of the training images, measured during training.",
        ExpectedFigure::TRAIN_LOSS},
};

Expectation readExpectation(configs::Reader& reader, const ExpectedFigure& figure) {
  Expectation result;
  result.figure = &figure;
  KJ_IF_MAYBE(epoch, reader.maybeInteger("epoch",
                         "The epoch from which the figure is taken. Default: the last one.",
                         {.atLeast = 1, .atMost = 1000000})) {
    result.epoch = uint(*epoch);
  }
  result.atLeast =
      reader.maybeReal("at_least", "The smallest allowed figure.", {.atMost = figure.atMost});
  result.atMost = reader.maybeReal("at_most", "The largest allowed figure.", {.atLeast = 0});
  result.withinOfFirstRun = reader.maybeReal("within_of_first_run",
      "Largest allowed distance from the same figure of the first run of the sweep. Has no effect "
      "without a sweep.",
      {.atLeast = 0});
  result.withinOfFirstEpoch = reader.maybeReal("within_of_first_epoch",
      "Largest allowed distance from the same figure after epoch 1.", {.atLeast = 0});
  if (reader.isManual()) return result;
  if (result.atLeast == nullptr && result.atMost == nullptr && result.withinOfFirstRun == nullptr &&
      result.withinOfFirstEpoch == nullptr) {
    reader.error("", "this table expects nothing",
        "add at_least, at_most, within_of_first_run or within_of_first_epoch");
  }
  KJ_IF_MAYBE(least, result.atLeast) {
    KJ_IF_MAYBE(most, result.atMost) {
      if (*least > *most) {
        reader.error("at_most", "`at_least` is greater than `at_most`",
            "make `at_most` the larger one", {"at_least"_kj});
      }
    }
  }
  return result;
}

}  // namespace

kj::Array<Expectation> readExpectations(configs::Reader& reader) {
  kj::Vector<Expectation> result;
  for (auto& figure: FIGURES) {
    auto read = [&](configs::Reader& section) { return readExpectation(section, figure); };
    KJ_IF_MAYBE(expectation, reader.maybeSection(figure.name, figure.doc, read)) {
      result.add(*expectation);
    }
  }
  if (result.empty() && !reader.isManual()) {
    reader.error("", "this table expects nothing",
        "add the table of a figure, such as validation_accuracy = { at_least = 0.9 }, or leave "
        "[expect] out");
  }
  return result.releaseAsArray();
}

kj::Array<kj::String> neverReached(kj::ArrayPtr<const Expectation> expectations,
    const kj::Maybe<Published>& published, uint epochs, bool validates) {
  kj::Vector<kj::String> sentences;
  auto add = [&](kj::StringPtr what, uint epoch) {
    sentences.add(
        kj::str(what, " about epoch ", epoch, ", and the run has only ", counted(epochs, "epoch")));
  };
  for (auto& expectation: expectations) {
    auto& figure = *expectation.figure;
    auto epoch = expectation.epoch.orDefault(epochs);
    if (epoch > epochs) {
      add(kj::str("expect.", figure.name, " will be missed: it is"), epoch);
    } else if (!validates && figure.isOfValidation()) {
      sentences.add(
          kj::str("expect.", figure.name, " will be missed: there are no records to validate on"));
    }
  }
  KJ_IF_MAYBE(figures, published) {
    uint earliest = kj::maxValue;
    // A row without an epoch can be compared with any run.
    for (auto& row: figures->rows) earliest = kj::min(earliest, row.epoch.orDefault(0));
    if (figures->rows.size() > 0 && earliest > epochs) {
      add("no row of published.rows can be compared with the run: the earliest is", earliest);
    }
  }
  return sentences.releaseAsArray();
}

}  // namespace runner
