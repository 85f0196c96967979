#include "tools/results/tables.h"

#include <kj/debug.h>
#include <kj/map.h>
#include <kj/vector.h>

#include "runner/text/numbers.h"
#include "runner/text/text_table.h"
#include "tools/results/step_figures.h"

namespace tools {

namespace {

using runner::figureCell;
using runner::PublishedFigures;

// Collects rows of cells.
class Rows {
public:
  explicit Rows(kj::ArrayPtr<const kj::StringPtr> columns) {
    table.header = KJ_MAP(column, columns) {
      return kj::str(column);
    };
  }

  void add(kj::ArrayPtr<kj::String> cells) {
    rows.add(KJ_MAP(cell, cells) { return kj::mv(cell); });
  }
  size_t size() const { return rows.size(); }

  // Returns the table as Markdown, without columns that are empty in all rows.
  kj::String finish() {
    if (rows.size() == 0) return runner::formatTable(table, runner::TableFormat::MARKDOWN);
    runner::TextTable result;
    result.header = withoutEmpty(table.header);
    result.rows = KJ_MAP(row, rows) {
      return withoutEmpty(row);
    };
    return runner::formatTable(result, runner::TableFormat::MARKDOWN);
  }

private:
  kj::Array<kj::String> withoutEmpty(kj::ArrayPtr<const kj::String> cells) const {
    kj::Vector<kj::String> kept;
    for (size_t i: kj::indices(cells)) {
      bool empty = true;
      for (auto& row: rows) empty = empty && row[i].size() == 0;
      if (!empty) kept.add(kj::str(cells[i]));
    }
    return kept.releaseAsArray();
  }

  runner::TextTable table;
  kj::Vector<kj::Array<kj::String>> rows;
};

// More images/s than any machine has.
constexpr double COUNT_END = 1e15;

// Returns the number without decimals.
kj::String rounded(kj::Maybe<double> value) {
  KJ_IF_MAYBE(v, value) {
    // A time of 0 gives no speed.
    if (*v < COUNT_END) return runner::grouped(uint64_t(*v + 0.5));
  }
  return nullptr;
}

// A row of the table by epochs.
struct EpochFigures {
  const runner::ResultRow* ours = nullptr;
  kj::Maybe<double> publishedTrain;
  kj::Maybe<double> publishedValidation;
};

// Whether `row` has figures of the place that it names, not only the run's speed.
bool isOfPlace(const PublishedFigures& row) {
  return row.trainAccuracy != nullptr || row.validationAccuracy != nullptr || row.loss != nullptr;
}

bool isChosen(const IndexedExperiment& experiment, uint epoch) {
  if (experiment.epochs.size() == 0) return true;
  for (uint chosen: experiment.epochs) {
    if (chosen == epoch) return true;
  }
  return false;
}

kj::TreeMap<uint, EpochFigures> epochRows(
    const IndexedExperiment& experiment, const IndexedRun& run, const EpochLogTable& table) {
  kj::TreeMap<uint, EpochFigures> rows;
  auto at = [&](uint epoch) -> EpochFigures& {
    return rows.findOrCreate(epoch, [&]() {
      return kj::TreeMap<uint, EpochFigures>::Entry{epoch, {}};
    });
  };
  KJ_IF_MAYBE(published, run.published) {
    for (auto& row: published->rows) {
      if (!isOfPlace(row)) continue;
      auto& figures = at(row.epoch.orDefault(table.rows.back().epoch));
      if (row.trainAccuracy != nullptr) figures.publishedTrain = row.trainAccuracy;
      if (row.validationAccuracy != nullptr) figures.publishedValidation = row.validationAccuracy;
    }
  }
  for (auto& row: table.rows) {
    if (isChosen(experiment, row.epoch) || rows.find(row.epoch) != nullptr) {
      at(row.epoch).ours = &row;
    }
  }
  return rows;
}

kj::String epochsTable(const ExperimentFigures& figures) {
  Rows table(
      {"run", "epoch", "train accuracy", "valid accuracy", "published train", "published valid"});
  for (auto& each: figures.runs) {
    if (!each.table.is<EpochLogTable>()) continue;
    auto& ours = each.table.get<EpochLogTable>();
    for (auto& row: epochRows(figures.experiment, each.run, ours)) {
      kj::String cells[] = {figures.runs.size() > 1 ? kj::str(each.run.name) : kj::String(),
          kj::str(row.key), nullptr, nullptr, nullptr, nullptr};
      if (row.value.ours != nullptr) {
        cells[2] = figureCell(row.value.ours->metrics[0].train, 6);
        cells[3] = figureCell(row.value.ours->metrics[0].validation, 6);
      }
      cells[4] = figureCell(row.value.publishedTrain, 6);
      cells[5] = figureCell(row.value.publishedValidation, 6);
      table.add(cells);
    }
  }
  return table.size() == 0 ? kj::String() : table.finish();
}

// Returns the published speed of a run: of the last row that has the figure.
kj::Maybe<double> publishedSpeed(
    const IndexedRun& run, kj::Maybe<double> PublishedFigures::*figure) {
  kj::Maybe<double> found;
  KJ_IF_MAYBE(published, run.published) {
    for (auto& row: published->rows) {
      if (row.*figure != nullptr) found = row.*figure;
    }
  }
  return found;
}

kj::Array<kj::String> stepCells(kj::StringPtr run, const StepFigures& figures) {
  auto count = [](const kj::Maybe<uint64_t>& n) {
    KJ_IF_MAYBE(value, n) return runner::grouped(*value);
    return kj::String();
  };
  return kj::arr(kj::str(run), count(figures.steps), count(figures.globalSteps),
      figureCell(figures.loss, 4), figureCell(figures.crossEntropySum, 4),
      figureCell(figures.accuracy, 4), figureCell(figures.batch_s, 6),
      rounded(figures.images_per_s), kj::String(), kj::String(), kj::String());
}

// Writes the published figures of a row's place into its last cells.
void addPublished(kj::ArrayPtr<kj::String> cells, const PublishedFigures& row) {
  auto accuracy = row.validationAccuracy == nullptr ? row.trainAccuracy : row.validationAccuracy;
  if (row.loss != nullptr) cells[8] = figureCell(row.loss, 4);
  if (accuracy != nullptr) cells[9] = figureCell(accuracy, 4);
}

kj::String stepsTable(const ExperimentFigures& figures) {
  Rows table({"run", "steps", "global steps", "loss", "validation cross entropy (sum)", "accuracy",
      "s/batch", "images/s", "published loss", "published accuracy", "published images/s"});
  for (auto& each: figures.runs) {
    if (!each.table.is<StepLogTable>()) continue;
    auto& ours = each.table.get<StepLogTable>();
    auto end = stepCells(each.run.name, endOf(ours, each.stepImages()));
    KJ_IF_MAYBE(published, each.run.published) {
      for (auto& row: published->rows) {
        KJ_IF_MAYBE(step, row.step) {
          if (!isOfPlace(row)) continue;
          StepFigures none;
          none.globalSteps = *step;
          auto cells = stepCells(each.run.name, atStep(ours, *step).orDefault(none));
          addPublished(cells, row);
          table.add(cells);
        } else {
          addPublished(end, row);
        }
      }
    }
    end[10] = rounded(publishedSpeed(each.run, &PublishedFigures::images_per_s));
    table.add(end);
  }
  return table.size() == 0 ? kj::String() : table.finish();
}

// Returns a line about a run: its file, the source of the published figures, why ours differ.
kj::String noteOn(const IndexedRun& run, bool several) {
  kj::Vector<kj::String> sentences;
  KJ_IF_MAYBE(config, run.config) sentences.add(kj::str("`", *config, "`."));
  KJ_IF_MAYBE(published, run.published) {
    sentences.add(kj::str("Published: ", published->source, "."));
  }
  KJ_IF_MAYBE(difference, run.difference) sentences.add(kj::str(*difference));
  if (sentences.size() == 0) return nullptr;
  return kj::str(
      "- ", several ? kj::str(run.name, ": ") : kj::String(), kj::strArray(sentences, " "), "\n");
}

struct Speed {
  kj::Maybe<double> epoch_s;
  kj::Maybe<double> images_per_s;
};

Speed speedOf(const RunFigures& figures, const IndexedExperiment& experiment) {
  double images = figures.run.epochImages;
  auto byOther = [&](double figure) { return images / figure; };
  Speed speed;
  KJ_SWITCH_ONEOF(figures.table) {
    KJ_CASE_ONEOF(epochs, EpochLogTable) {
      speed.epoch_s =
          epochs.laterEpochs_s == nullptr ? epochs.rows[0].time_s : epochs.laterEpochs_s;
      speed.images_per_s = speed.epoch_s.map(byOther);
    }
    KJ_CASE_ONEOF(steps, StepLogTable) {
      speed.images_per_s = endOf(steps, figures.stepImages()).images_per_s;
      speed.epoch_s = speed.images_per_s.map(byOther);
    }
    KJ_CASE_ONEOF(speeds, SpeedTable) {
      KJ_FAIL_REQUIRE("readFigures() refuses a log of nothing but speeds");
    }
  }
  return speed;
}

// Seconds with one digit after the point, and with milliseconds if there is less than one second.
kj::String secondsCell(kj::Maybe<double> seconds) {
  return figureCell(seconds, seconds.orDefault(1) < 1 ? 3 : 1);
}

}  // namespace

kj::String machinesTable(kj::ArrayPtr<const Machines> machines) {
  Rows table({"cluster", "processor", "cores", "memory", "network", "software"});
  for (auto& row: machines) {
    kj::String cells[] = {kj::str(row.cluster), kj::str(row.processor), kj::str(row.cores),
        kj::str(row.memory), kj::str(row.network), kj::str(row.software)};
    table.add(cells);
  }
  return table.finish();
}

kj::String datasetsTable(kj::ArrayPtr<const Dataset> datasets) {
  Rows table({"data set", "classes", "image", "training images", "validation images"});
  for (auto& row: datasets) {
    kj::String cells[] = {kj::str(row.name), runner::grouped(row.classes), kj::str(row.image),
        runner::grouped(row.training), runner::grouped(row.validation)};
    table.add(cells);
  }
  return table.finish();
}

kj::String figuresTable(const ExperimentFigures& figures) {
  kj::Vector<kj::String> parts;
  for (auto& table: {epochsTable, stepsTable}) {
    auto text = table(figures);
    if (text.size() > 0) parts.add(kj::mv(text));
  }
  auto notes = KJ_MAP(each, figures.runs) {
    return noteOn(each.run, figures.runs.size() > 1);
  };
  auto text = kj::strArray(notes, "");
  if (text.size() > 0) parts.add(kj::mv(text));
  return kj::strArray(parts, "\n");
}

kj::String performanceTable(kj::ArrayPtr<const ExperimentFigures> experiments) {
  Rows table({"run", "cluster", "machines", "devices", "batch size / device", "kvstore",
      "epoch time (s)", "images/s", "published epoch time (s)", "published images/s"});
  for (auto& figures: experiments) {
    for (auto& each: figures.runs) {
      auto& run = each.run;
      auto speed = speedOf(each, figures.experiment);
      kj::String cells[] = {kj::str(run.name), kj::str(run.cluster), kj::str(run.machines),
          kj::str(run.devices), kj::str(run.batchSize), kj::str(run.kvstore),
          secondsCell(speed.epoch_s), rounded(speed.images_per_s),
          secondsCell(publishedSpeed(run, &PublishedFigures::epoch_s)),
          rounded(publishedSpeed(run, &PublishedFigures::images_per_s))};
      table.add(cells);
    }
  }
  return table.finish();
}

}  // namespace tools
