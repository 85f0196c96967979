#include "runner/tables/reported_run.h"

#include <kj/debug.h>
#include <kj/map.h>
#include <kj/vector.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "runner/experiment/differences.h"
#include "runner/experiment/experiment.h"
#include "runner/logs/confusion_file.h"
#include "runner/logs/run_folder.h"
#include "runner/logs/run_lock.h"
#include "runner/system/files.h"
#include "runner/system/reason.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

constexpr uint64_t EXPERIMENT_BYTES_MAX = 1 << 24;

// The longest label made of settings. Names of a sweep's folders are not longer, but runs of
// different experiments can differ in dozens of settings.
constexpr size_t LABEL_BYTES_MAX = 180;

kj::ArrayPtr<const EpochRecord> warmEpochs(const RunRecord& record) {
  auto epochs = record.epochRecords.asPtr();
  if (epochs.size() < 2) return epochs;
  size_t end = epochs.size();
  // Whole epochs may differ by one step.
  bool isShort = epochs[end - 1].images + record.globalBatchSize < epochs[end - 2].images;
  if (isShort && end > 2) --end;
  return epochs.slice(1, end);
}

uint64_t distance(uint64_t a, uint64_t b) {
  return a < b ? b - a : a - b;
}

// Returns the one of `records` whose global step is nearest to `step`. Null if all are more than a
// tenth off.
template <typename Record>
kj::Maybe<const Record&> nearestTo(uint64_t step, kj::ArrayPtr<const Record> records) {
  kj::Maybe<const Record&> best;
  uint64_t nearest = step / 10;
  for (auto& record: records) {
    uint64_t off = distance(record.globalStep, step);
    if (off > nearest || (best != nullptr && off == nearest)) continue;
    nearest = off;
    best = record;
  }
  return best;
}

// Returns the record with the most updates of the job.
kj::Maybe<const SpeedRecord&> lastOf(kj::ArrayPtr<const SpeedRecord> speeds) {
  kj::Maybe<const SpeedRecord&> last;
  uint64_t most = 0;
  for (auto& speed: speeds) {
    if (last != nullptr && speed.globalStep <= most) continue;
    most = speed.globalStep;
    last = speed;
  }
  return last;
}

// Compares the figures of one published row.
class Row {
public:
  Row(const ReportedRun& run, const PublishedFigures& published, kj::Vector<Comparison>& result)
      : record(run.record), published(published), result(result) {
    auto epochs = record.epochRecords.asPtr();
    KJ_IF_MAYBE(number, published.epoch) {
      for (auto& each: epochs) {
        if (each.epoch == *number) epoch = each;
      }
    } else KJ_IF_MAYBE(step, published.step) {
      epoch = nearestTo(*step, epochs);
      speed = nearestTo(*step, record.speeds.asPtr());
    } else if (epochs.size() > 0 && record.state == RunRecord::FINISHED) {
      epoch = epochs.back();
      // If logs count steps, published figures of training are those of a batch.
      if (run.logStyle->isBySteps()) speed = lastOf(record.speeds);
    }
  }

  void compare() {
    add(
        "train accuracy", published.trainAccuracy, 4, [](auto& e) { return e.trainAccuracy; },
        [](auto& s) { return s.batchAccuracy; });
    addOfEpoch("validation accuracy", published.validationAccuracy, 4,
        [](auto& e) { return e.validationAccuracy; });
    add(
        "train loss", published.loss, 4, [](auto& e) { return e.trainLoss; },
        [](auto& s) { return s.batchLoss; });
    bool atEnd = published.epoch == nullptr && published.step == nullptr;
    addOfEpoch("s per epoch", published.epoch_s, 1,
        [&](auto& e) { return atEnd ? meanEpoch_s(record) : kj::Maybe<double>(e.epoch_s); });
    addOfEpoch("images/s", published.images_per_s, 0, [&](auto& e) {
      return atEnd ? meanImages_per_s(record) : kj::Maybe<double>(e.images_per_s);
    });
  }

private:
  // Adds a figure of training. Uses the logged step if the row is about a step.
  template <typename OfEpoch, typename OfSpeed>
  void add(kj::StringPtr figure, kj::Maybe<double> value, uint decimals, OfEpoch&& ofEpoch,
      OfSpeed&& ofSpeed) {
    KJ_IF_MAYBE(s, speed) {
      KJ_IF_MAYBE(v, value) {
        result.add(Comparison{figure, at(), nullptr, s->globalStep, ofSpeed(*s), *v, decimals});
      }
      return;
    }
    addOfEpoch(figure, value, decimals,
        [&](const EpochRecord& e) { return kj::Maybe<double>(ofEpoch(e)); });
  }

  template <typename OfEpoch>
  void addOfEpoch(kj::StringPtr figure, kj::Maybe<double> value, uint decimals, OfEpoch&& ofEpoch) {
    KJ_IF_MAYBE(v, value) {
      Comparison comparison{figure, at(), nullptr, 0, nullptr, *v, decimals};
      KJ_IF_MAYBE(e, epoch) {
        comparison.epoch = e->epoch;
        comparison.step = e->globalStep;
        comparison.ours = ofEpoch(*e);
      }
      result.add(kj::mv(comparison));
    }
  }

  kj::String at() const {
    KJ_IF_MAYBE(number, published.epoch) return kj::str("epoch ", *number);
    KJ_IF_MAYBE(step, published.step) return kj::str("step ", *step);
    return kj::str("the end");
  }

  const RunRecord& record;
  const PublishedFigures& published;
  kj::Vector<Comparison>& result;
  kj::Maybe<const EpochRecord&> epoch;
  kj::Maybe<const SpeedRecord&> speed;
};

// Reads the text of an experiment.toml into the run.
void readExperimentOf(ReportedRun& run, kj::StringPtr path, kj::String resolved) {
  run.resolved = kj::mv(resolved);
  configs::Diagnostics diagnostics;
  // A run's file extends nothing. The path of its data does not matter here.
  auto loaded = readExperiment(configs::parse(path, run.resolved, diagnostics), diagnostics);
  if (diagnostics.count() > 0) {
    auto errors = diagnostics.format(path);
    configs::fail(errors.slice(0, errors.findFirst('\n').orDefault(errors.size())));
  }
  KJ_IF_MAYBE(experiment, loaded.experiment) {
    run.logStyle = experiment->log.style;
    run.topK = experiment->log.topK;
    run.published = kj::mv(experiment->published);
    run.expectations = kj::mv(experiment->expectations);
  }
}

// Calls `read`, which reads a part of the run's folder. If it throws, adds a sentence to `unread`:
// `what` is left out.
template <typename Func>
void orLeaveOut(ReportedRun& run, kj::StringPtr what, Func&& read) {
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(read)) {
    run.unread.add(kj::str(what, " left out: ", reasonOf(*e)));
  }
}

// Returns the path that names the folder around `folder`, even if the user gave `.`, a name alone
// or a link. Returns `folder` if there is no such path.
kj::String realPathOf(kj::StringPtr folder) {
  auto real = ::realpath(folder.cStr(), nullptr);
  KJ_DEFER(free(real));
  return kj::str(real == nullptr ? folder.cStr() : real);
}

// The sweep that began last in a folder.
struct Sweep {
  kj::HashSet<kj::String> names;  // of the folders of its runs
  RunRecord first;
};

Sweep readSweepIn(kj::StringPtr parent) {
  Sweep sweep;
  auto names = latestSweepIn(parent);
  if (names.size() == 0) return sweep;
  auto folder = kj::str(parent, "/", names[0]);
  // A run that has not begun has no events, and has not finished.
  kj::runCatchingExceptions([&]() { sweep.first = readRunRecord(folder); });
  bool isOver = sweep.first.state != RunRecord::UNFINISHED;
  if (!isOver && isHeld({kj::str(folder)})) sweep.first.state = RunRecord::RUNNING;
  sweep.first.folder = kj::mv(folder);
  for (auto& name: names) sweep.names.upsert(kj::mv(name), [](auto&, auto&&) {});
  return sweep;
}

}  // namespace

ReportedRun readReportedRun(kj::StringPtr folder, kj::StringPtr label) {
  return reportedRun(readRunRecord(folder), kj::str(label));
}

ReportedRun reportedRun(RunRecord record, kj::String label, kj::Maybe<kj::String> resolved) {
  ReportedRun run;
  run.record = kj::mv(record);
  run.label = kj::mv(label);
  auto path = RunFolder{kj::str(run.record.folder)}.experiment();
  if (resolved == nullptr && ::access(path.cStr(), R_OK) != 0) return run;
  orLeaveOut(run, "[expect] and [published] of the run are", [&]() {
    KJ_IF_MAYBE(text, resolved) {
      readExperimentOf(run, path, kj::mv(*text));
    } else {
      readExperimentOf(run, path, readRegular(path, EXPERIMENT_BYTES_MAX));
    }
  });
  return run;
}

void readTable(ReportedRun& run) {
  auto& record = run.record;
  bool bySteps = run.logStyle->isBySteps();
  if (bySteps ? record.speeds.size() == 0 : record.epochRecords.size() == 0) return;
  run.table = readRunTable({kj::str(record.folder)}, *run.logStyle, run.topK);
}

void readConfusion(ReportedRun& run) {
  // A resumed run may have this file from an end that it has yet to reach again.
  if (run.record.state != RunRecord::FINISHED) return;
  auto path = RunFolder{kj::str(run.record.folder)}.confusion();
  if (::access(path.cStr(), F_OK) != 0) return;
  orLeaveOut(run, "the accuracy of each class is", [&]() { run.confusion = readConfusion(path); });
  auto classes = RunFolder{kj::str(run.record.folder)}.classes();
  if (::access(classes.cStr(), F_OK) != 0) return;
  orLeaveOut(run, "the name of each class is", [&]() { run.classNames = readClasses(classes); });
}

void tellApart(kj::ArrayPtr<ReportedRun> runs) {
  auto texts = KJ_MAP(run, runs)->kj::StringPtr {
    return run.resolved;
  };
  auto differences = differencesOf(texts);
  auto order = orderIn(runs.size() > 0 ? kj::StringPtr(runs[0].label) : nullptr, differences.keys);
  kj::HashSet<kj::String> labels;
  bool allKnown = true;
  for (size_t r: kj::indices(runs)) {
    bool known = differences.values[r].size() == differences.keys.size();
    allKnown = allKnown && known;
    kj::Vector<ReportedRun::Setting> settings;
    for (size_t k: order) {
      auto value = known ? kj::mv(differences.values[r][k]) : kj::String();
      settings.add(ReportedRun::Setting{kj::str(differences.keys[k]), kj::mv(value)});
    }
    runs[r].settings = settings.releaseAsArray();
    auto label = settingsOf(runs[r]);
    if (!labels.contains(label)) labels.insert(kj::mv(label));
  }
  if (!allKnown || runs.size() < 2 || labels.size() < runs.size()) return;
  for (auto& label: labels) {
    if (label.size() > LABEL_BYTES_MAX) return;
  }
  for (auto& run: runs) run.label = settingsOf(run);
}

kj::String settingsOf(const ReportedRun& run) {
  auto words = KJ_MAP(setting, run.settings) {
    return kj::str(setting.key, "=", setting.value);
  };
  return kj::strArray(words, ",");
}

bool areNamedBySettings(kj::ArrayPtr<const ReportedRun> runs) {
  for (auto& run: runs) {
    if (run.label != settingsOf(run)) return false;
  }
  return true;
}

void judgeAll(kj::ArrayPtr<ReportedRun> runs) {
  kj::Maybe<const RunRecord&> first;
  if (runs.size() > 1) first = runs[0].record;
  for (auto& run: runs) {
    if (run.record.state != RunRecord::FINISHED) continue;
    run.verdicts = judge(run.expectations, run.record, run.topK, first);
  }
}

void judgeBySweeps(kj::ArrayPtr<ReportedRun> runs) {
  kj::HashMap<kj::String, Sweep> sweeps;  // by the folder around their runs
  for (auto& run: runs) {
    auto& record = run.record;
    if (record.state != RunRecord::FINISHED) continue;
    kj::Maybe<const RunRecord&> first;
    auto folder = realPathOf(record.folder);
    KJ_IF_MAYBE(slash, folder.findLast('/')) {
      auto parent = kj::heapString(folder.slice(0, *slash));
      auto& sweep = sweeps.findOrCreate(parent, [&]() {
        return kj::HashMap<kj::String, Sweep>::Entry{kj::str(parent), readSweepIn(parent)};
      });
      // judge() knows the first run itself by its folder, which may have another path here.
      bool isFirst = sweep.first.folder == folder;
      if (!isFirst && sweep.names.contains(folder.slice(*slash + 1))) first = sweep.first;
    }
    run.verdicts = judge(run.expectations, record, run.topK, first);
  }
}

kj::Array<kj::String> missedOf(kj::ArrayPtr<const ReportedRun> runs) {
  kj::Vector<kj::String> result;
  for (auto& run: runs) {
    auto which = runs.size() == 1 ? kj::str() : kj::str(run.label, ": ");
    for (auto& verdict: run.verdicts) {
      if (!verdict.met) result.add(kj::str("expectation missed: ", which, verdict.sentence));
    }
  }
  return result.releaseAsArray();
}

kj::Array<Comparison> compare(const ReportedRun& run) {
  kj::Vector<Comparison> result;
  KJ_IF_MAYBE(published, run.published) {
    for (auto& row: published->rows) Row(run, row, result).compare();
  }
  return result.releaseAsArray();
}

kj::Maybe<double> meanEpoch_s(const RunRecord& record) {
  auto epochs = warmEpochs(record);
  if (epochs.size() == 0) return nullptr;
  double sum = 0;
  for (auto& epoch: epochs) sum += epoch.epoch_s;
  return sum / epochs.size();
}

kj::Maybe<double> meanImages_per_s(const RunRecord& record) {
  auto epochs = warmEpochs(record);
  if (epochs.size() == 0) return nullptr;
  double sum = 0;
  for (auto& epoch: epochs) sum += epoch.images_per_s;
  return sum / epochs.size();
}

kj::Maybe<VerbTimes> meanStep(const RunRecord& record) {
  auto epochs = warmEpochs(record);
  auto& all = record.epochRecords;
  if (epochs.size() == 0) return nullptr;
  uint64_t before = all.size() > 1 ? all[0].step : 0;
  uint64_t after = epochs.back().step;
  if (after <= before) return nullptr;
  double factor = 1.0 / (after - before);
  VerbTimes mean;
  for (auto& epoch: epochs) {
    mean.read_s += epoch.verbs.read_s * factor;
    mean.forward_s += epoch.verbs.forward_s * factor;
    mean.backward_s += epoch.verbs.backward_s * factor;
    mean.push_s += epoch.verbs.push_s * factor;
    mean.pull_s += epoch.verbs.pull_s * factor;
  }
  return mean;
}

kj::Maybe<kj::String> readerHint(const RunRecord& record) {
  constexpr double WAITED_S_MIN = 10;
  double waited_s = 0;
  for (auto& epoch: warmEpochs(record)) waited_s += epoch.verbs.read_s;
  KJ_IF_MAYBE(mean, meanStep(record)) {
    double share = mean->read_s / mean->all_s();
    if (!(share >= READER_BOUND_MIN) || waited_s < WAITED_S_MIN) return nullptr;
    return kj::str("hint: the run was reader-bound: workers waited for records during ",
        fixedPoint(100 * share, 0),
        " % of their step time. If data.reader_threads is set and cores are free, raise it. Images "
        "in data.encoding = \"raw\" need no decoding, if their pixels fit into memory. Smaller "
        "images (data.resize_short_side) always help");
  }
  return nullptr;
}

kj::Maybe<kj::String> lossHint(const RunRecord& record, uint classes) {
  if (record.epochRecords.size() < 2) return nullptr;
  // A network that has learned anything has a smaller loss, or a larger accuracy.
  constexpr double LOSS_MIN = 0.998, ACCURACY_MAX = 1.2;
  auto& last = record.epochRecords.back();
  double guessing = ::log(classes);
  bool isGuessing =
      last.trainLoss > LOSS_MIN * guessing && last.trainAccuracy < ACCURACY_MAX / classes;
  if (!isGuessing) return nullptr;
  return kj::str("hint: the network has learned nothing. In the last epoch, its training accuracy ",
      "is ", fixedPoint(last.trainAccuracy, 3), ", and its training loss ",
      figureText(last.trainLoss, 2), ". Guessing among ", classes, " classes gives ",
      fixedPoint(1.0 / classes, 3), " and ", figureText(guessing, 2), ". Often the learning rate ",
      "is too large, or the pixels are not scaled (data.augment.scale, or mean and deviation)");
}

}  // namespace runner
