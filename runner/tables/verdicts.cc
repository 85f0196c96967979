#include "runner/tables/verdicts.h"

#include <kj/vector.h>

#include <cmath>

#include "runner/text/numbers.h"

namespace runner {

namespace {

// Returns `value` with at most six decimals, as the classic lines have them.
kj::String shortest(double value) {
  auto text = figureText(value, 6);
  size_t end = text.size();
  if (text.findFirst('.') == nullptr || text.findFirst('e') != nullptr) return text;
  while (text[end - 1] == '0') --end;
  if (text[end - 1] == '.') --end;
  return kj::heapString(text.slice(0, end));
}

// The same, but with all digits if six decimals could hide a miss by `excess`.
kj::String shortest(double value, double excess) {
  constexpr double HIDDEN = 2e-6;
  return excess > 0 && excess < HIDDEN ? kj::str(value) : shortest(value);
}

kj::Maybe<const EpochRecord&> findEpoch(const RunRecord& run, kj::Maybe<uint> wanted) {
  auto& epochs = run.epochRecords;
  KJ_IF_MAYBE(number, wanted) {
    for (auto& epoch: epochs) {
      if (epoch.epoch == *number) return epoch;
    }
    return nullptr;
  }
  if (epochs.size() == 0) return nullptr;
  return epochs.back();
}

// Returns the figure of an epoch. Null if the run does not have it, or only a top-k accuracy of
// another k.
kj::Maybe<double> figureOf(const EpochRecord& epoch, ExpectedFigure::Kind kind, uint topK) {
  bool trained = epoch.images > 0;
  switch (kind) {
    case ExpectedFigure::VALIDATION_ACCURACY:
      return epoch.validationAccuracy;
    case ExpectedFigure::VALIDATION_TOP_K_ACCURACY:
      return epoch.topKAccuracy(topK);
    case ExpectedFigure::TRAIN_ACCURACY:
      return trained ? kj::Maybe<double>(epoch.trainAccuracy) : nullptr;
    case ExpectedFigure::VALIDATION_LOSS:
      return epoch.validationLoss;
    case ExpectedFigure::TRAIN_LOSS:
      return trained ? kj::Maybe<double>(epoch.trainLoss) : nullptr;
  }
  KJ_UNREACHABLE;
}

kj::Maybe<double> figureOf(
    const RunRecord& run, const ExpectedFigure& figure, uint topK, kj::Maybe<uint> wanted) {
  KJ_IF_MAYBE(epoch, findEpoch(run, wanted)) return figureOf(*epoch, figure.kind, topK);
  return nullptr;
}

// Judges the bounds of one expectation.
class Judge {
public:
  Judge(const Expectation& expectation, const RunRecord& run, uint topK,
      kj::Vector<Verdict>& verdicts)
      : expectation(expectation), run(run), topK(topK), verdicts(verdicts) {
    auto& figure = *expectation.figure;
    value = figureOf(run, figure, topK, expectation.epoch);
    auto epoch = expectation.epoch.orDefault(
        run.epochRecords.size() == 0 ? 0 : run.epochRecords.back().epoch);
    subject = epoch == 0 ? kj::str(figure.name) : kj::str(figure.name, " of epoch ", epoch);
  }

  void judge(kj::Maybe<const RunRecord&> first) {
    KJ_IF_MAYBE(v, value) {
      // A NaN misses every bound.
      KJ_IF_MAYBE(bound, expectation.atLeast) {
        add(*bound - *v, kj::str("at least ", *bound));
      }
      KJ_IF_MAYBE(bound, expectation.atMost) {
        add(*v - *bound, kj::str("at most ", *bound));
      }
      KJ_IF_MAYBE(bound, expectation.withinOfFirstEpoch) {
        addNear(*v, *bound, figureOf(run, *expectation.figure, topK, uint(1)), "epoch 1");
      }
      KJ_IF_MAYBE(bound, expectation.withinOfFirstRun) {
        KJ_IF_MAYBE(f, first) {
          addNearFirst(*v, *bound, *f);
        }
      }
    } else {
      uint last = run.epochRecords.size() == 0 ? 0 : run.epochRecords.back().epoch;
      bool isTooShort = expectation.epoch.orDefault(0) > last;
      auto has =
          isTooShort ? kj::str("has only ", counted(last, "epoch")) : kj::str("does not have it");
      verdicts.add(Verdict{false, kj::str(subject, " is expected, but the run ", has)});
    }
  }

private:
  // `excess` is the distance of the figure beyond the bound. The bound is met if this is not above
  // 0.
  void add(double excess, kj::StringPtr expected) {
    bool met = excess <= 0;
    verdicts.add(Verdict{met, kj::str(subject, " is ", shortest(KJ_ASSERT_NONNULL(value), excess),
                                  met ? ", as expected " : ", expected ", expected)});
  }

  void addNear(double v, double bound, kj::Maybe<double> other, kj::StringPtr whose) {
    KJ_IF_MAYBE(o, other) {
      double excess = std::fabs(v - *o) - bound;
      // The difference of two decimal fractions is not exact: 0.75 - 0.7 is more than 0.05.
      constexpr double ROUNDING = 1e-12;
      if (std::isfinite(excess) && std::fabs(excess) <= ROUNDING * kj::max(1.0, std::fabs(v)))
        excess = 0;
      add(excess, kj::str("within ", bound, " of ", whose, "'s ", shortest(*o, excess)));
    } else {
      add(NAN, kj::str("within ", bound, " of ", whose, "'s, which is missing"));
    }
  }

  void addNearFirst(double v, double bound, const RunRecord& first) {
    if (first.state == RunRecord::FINISHED) {
      addNear(
          v, bound, figureOf(first, *expectation.figure, topK, expectation.epoch), "the first run");
    } else if (first.state != RunRecord::RUNNING) {
      // The figure of a run in progress is not known yet.
      add(NAN, kj::str("within ", bound,
                   " of the first run's, but that run is missing or did not finish"));
    }
  }

  const Expectation& expectation;
  const RunRecord& run;
  const uint topK;
  kj::Vector<Verdict>& verdicts;
  kj::Maybe<double> value;
  kj::String subject;
};

}  // namespace

kj::Array<Verdict> judge(kj::ArrayPtr<const Expectation> expectations, const RunRecord& run,
    uint topK, kj::Maybe<const RunRecord&> first) {
  KJ_IF_MAYBE(f, first) {
    if (f->folder == run.folder) first = nullptr;
  }
  kj::Vector<Verdict> verdicts;
  for (auto& expectation: expectations) Judge(expectation, run, topK, verdicts).judge(first);
  return verdicts.releaseAsArray();
}

}  // namespace runner
