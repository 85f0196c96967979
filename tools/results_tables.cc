#include "tools/results_tables.h"

#include <kj/map.h>
#include <kj/vector.h>

#include <algorithm>

#include "runner/log_lines.h"
#include "runner/progress.h"

namespace tools {

namespace {

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

  // As Markdown, without the columns that are empty in all rows.
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

// Words of the index as a cell.
kj::String words(kj::StringPtr text) {
  kj::Vector<char> escaped;
  for (char c: text) {
    if (c == '|') escaped.add('\\');
    escaped.add(c);
  }
  return kj::heapString(escaped);
}

kj::String cell(kj::Maybe<double> value, uint decimals) {
  KJ_IF_MAYBE(v, value) {
    return runner::fixedPoint(*v, decimals);
  }
  return nullptr;
}

// Without decimals.
kj::String rounded(kj::Maybe<double> value) {
  KJ_IF_MAYBE(v, value) {
    return runner::grouped(uint64_t(*v + 0.5));
  }
  return nullptr;
}

// A row of the table by epochs.
struct EpochFigures {
  const runner::ResultRow* ours = nullptr;
  const PublishedFigures* published = nullptr;
};

bool isChosen(const IndexedExperiment& experiment, uint epoch) {
  if (experiment.epochs.size() == 0) return true;
  for (uint chosen: experiment.epochs) {
    if (chosen == epoch) return true;
  }
  return false;
}

kj::TreeMap<uint, EpochFigures> epochRows(
    const IndexedExperiment& experiment, const IndexedRun& run, const runner::ResultTable& table) {
  kj::TreeMap<uint, EpochFigures> rows;
  auto at = [&](uint epoch) -> EpochFigures& {
    return rows.findOrCreate(epoch, [&]() {
      return kj::TreeMap<uint, EpochFigures>::Entry{epoch, {}};
    });
  };
  KJ_IF_MAYBE(published, run.published) {
    for (auto& row: published->rows) {
      if (row.trainAccuracy == nullptr && row.validationAccuracy == nullptr) continue;
      if (row.step != nullptr) continue;
      at(row.epoch.orDefault(table.rows.back().epoch)).published = &row;
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
    if (!each.table.is<runner::ResultTable>()) continue;
    auto& ours = each.table.get<runner::ResultTable>();
    for (auto& row: epochRows(figures.experiment, each.run, ours)) {
      kj::String cells[] = {figures.runs.size() > 1 ? words(each.run.name) : kj::String(),
          kj::str(row.key), nullptr, nullptr, nullptr, nullptr};
      if (row.value.ours != nullptr) {
        cells[2] = cell(row.value.ours->train, 6);
        cells[3] = cell(row.value.ours->validation, 6);
      }
      if (row.value.published != nullptr) {
        cells[4] = cell(row.value.published->trainAccuracy, 6);
        cells[5] = cell(row.value.published->validationAccuracy, 6);
      }
      table.add(cells);
    }
  }
  return table.size() == 0 ? kj::String() : table.finish();
}

// How a run with steps ended.
struct EndFigures {
  uint64_t steps = 0;
  uint64_t globalSteps = 0;
  kj::Maybe<double> loss;
  kj::Maybe<double> accuracy;
  kj::Maybe<double> batch_s;
};

// One figure of the end: over the workers that wrote it, or else the last one of a batch.
kj::Maybe<double> endFigure(const runner::StepTable& table,
    kj::Maybe<double> runner::StepRow::*figure, runner::Combine combine) {
  const double* last = nullptr;
  double sum = 0, greatest = 0;
  uint count = 0;
  for (auto& row: table.rows) {
    KJ_IF_MAYBE(value, row.*figure) {
      if (!row.end) {
        last = value;
        continue;
      }
      greatest = count == 0 ? *value : kj::max(greatest, *value);
      sum += *value;
      count++;
    }
  }
  if (count > 0) return combine == runner::Combine::MAX ? greatest : sum / count;
  if (last != nullptr) return *last;
  return nullptr;
}

EndFigures endOf(const runner::StepTable& table, runner::Combine combine) {
  EndFigures end;
  kj::Vector<double> batches_s;
  for (auto& row: table.rows) {
    end.steps = kj::max(end.steps, row.step.orDefault(0));
    end.globalSteps = kj::max(end.globalSteps, uint64_t(row.globalStep.orDefault(0)));
    KJ_IF_MAYBE(batch_s, row.batch_s) batches_s.add(*batch_s);
  }
  // A greatest loss is nobody's best.
  end.loss = endFigure(table, &runner::StepRow::loss, runner::Combine::MEAN);
  end.accuracy = endFigure(table, &runner::StepRow::accuracy, combine);
  if (batches_s.size() > 0) {
    // Some systems divide the shorter interval at the end of an epoch by the wrong count.
    auto middle = batches_s.begin() + batches_s.size() / 2;
    std::nth_element(batches_s.begin(), middle, batches_s.end());
    end.batch_s = *middle;
  }
  return end;
}

kj::String stepsTable(const ExperimentFigures& figures) {
  Rows table({"run", "steps", "global steps", "loss", "accuracy", "s/batch", "published loss",
      "published accuracy"});
  auto count = [](uint64_t n) { return n == 0 ? kj::String() : runner::grouped(n); };
  for (auto& each: figures.runs) {
    if (!each.table.is<runner::StepTable>()) continue;
    auto end = endOf(each.table.get<runner::StepTable>(), figures.experiment.combine);
    kj::String cells[] = {words(each.run.name), count(end.steps), count(end.globalSteps),
        cell(end.loss, 4), cell(end.accuracy, 4), cell(end.batch_s, 6), nullptr, nullptr};
    KJ_IF_MAYBE(published, each.run.published) {
      for (auto& row: published->rows) {
        auto accuracy =
            row.validationAccuracy == nullptr ? row.trainAccuracy : row.validationAccuracy;
        if (row.loss != nullptr) cells[6] = cell(row.loss, 4);
        if (accuracy != nullptr) cells[7] = cell(accuracy, 4);
      }
    }
    table.add(cells);
  }
  return table.size() == 0 ? kj::String() : table.finish();
}

// A line about a run: its file, where the published figures come from, why ours differ.
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

// What was published of a run's speed: the last row that has the figure.
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

}  // namespace

kj::String machinesTable(kj::ArrayPtr<const Machines> machines) {
  Rows table({"cluster", "processor", "cores", "memory", "network"});
  for (auto& row: machines) {
    kj::String cells[] = {words(row.cluster), words(row.processor), kj::str(row.cores),
        words(row.memory), words(row.network)};
    table.add(cells);
  }
  return table.finish();
}

kj::String datasetsTable(kj::ArrayPtr<const Dataset> datasets) {
  Rows table({"data set", "classes", "image", "training images", "validation images"});
  for (auto& row: datasets) {
    kj::String cells[] = {words(row.name), runner::grouped(row.classes), words(row.image),
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
      if (!each.table.is<runner::ResultTable>()) continue;
      auto& run = each.run;
      auto& result = each.table.get<runner::ResultTable>();
      auto& seconds =
          result.laterEpochs_s == nullptr ? result.rows[0].time_s : result.laterEpochs_s;
      auto speed = seconds.map([&](double s) { return run.epochImages / s; });
      kj::String cells[] = {words(run.name), words(run.cluster), kj::str(run.machines),
          kj::str(run.devices), kj::str(run.batchSize), words(run.kvstore), cell(seconds, 1),
          rounded(speed), cell(publishedSpeed(run, &PublishedFigures::epoch_s), 1),
          rounded(publishedSpeed(run, &PublishedFigures::images_per_s))};
      table.add(cells);
    }
  }
  return table.finish();
}

}  // namespace tools
