#include "tools/results_tables.h"

#include <kj/map.h>
#include <kj/vector.h>

#include "runner/log_lines.h"
#include "runner/progress.h"

namespace tools {

namespace {

using Cells = kj::Vector<kj::String>;

// A Markdown table in the making.
class Markdown {
public:
  explicit Markdown(kj::ArrayPtr<const kj::StringPtr> columns) {
    Cells head, rule;
    for (auto column: columns) {
      head.add(kj::str(column));
      rule.add(kj::str("---"));
    }
    add(head);
    add(rule);
  }

  void add(const Cells& cells) {
    for (auto& cell: cells) {
      text.addAll("| "_kj);
      for (char c: cell) {
        if (c == '|') text.add('\\');
        text.add(c);
      }
      text.add(' ');
    }
    text.addAll("|\n"_kj);
  }
  kj::String finish() { return kj::heapString(text); }

private:
  kj::Vector<char> text;
};

kj::String cell(kj::Maybe<double> value, uint decimals) {
  KJ_IF_MAYBE(v, value) {
    return runner::fixedPoint(*v, decimals);
  }
  return nullptr;
}

kj::String roundCell(kj::Maybe<double> value) {
  KJ_IF_MAYBE(v, value) {
    return runner::grouped(uint64_t(*v + 0.5));
  }
  return nullptr;
}

// A row of the accuracy table.
struct AccuracyRow {
  const runner::ResultRow* ours = nullptr;
  const runner::PublishedFigures* published = nullptr;
};

bool isChosen(const IndexedExperiment& experiment, uint epoch) {
  if (experiment.epochs.size() == 0) return true;
  for (uint chosen: experiment.epochs) {
    if (chosen == epoch) return true;
  }
  return false;
}

// By epoch. A row published for the end stands beside our last.
kj::TreeMap<uint, AccuracyRow> accuracyRows(
    const IndexedExperiment& experiment, const RunFigures& figures) {
  kj::TreeMap<uint, AccuracyRow> rows;
  auto at = [&](uint epoch) -> AccuracyRow& {
    return rows.findOrCreate(epoch, [&]() {
      return kj::TreeMap<uint, AccuracyRow>::Entry{epoch, {}};
    });
  };
  KJ_IF_MAYBE(published, figures.run.published) {
    for (auto& row: published->rows) {
      if (row.trainAccuracy == nullptr && row.validationAccuracy == nullptr) continue;
      if (row.step != nullptr) continue;
      auto epoch =
          row.epoch.orDefault(figures.table.rows.size() == 0 ? 0 : figures.table.rows.back().epoch);
      at(epoch).published = &row;
    }
  }
  for (auto& row: figures.table.rows) {
    if (isChosen(experiment, row.epoch) || rows.find(row.epoch) != nullptr)
      at(row.epoch).ours = &row;
  }
  return rows;
}

bool isPublished(const ExperimentFigures& figures) {
  for (auto& run: figures.runs) {
    for (auto& row: accuracyRows(figures.experiment, run)) {
      if (row.value.published != nullptr) return true;
    }
  }
  return false;
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

kj::String notesOn(const ExperimentFigures& figures) {
  bool several = figures.runs.size() > 1;
  auto notes = KJ_MAP(run, figures.runs) {
    return noteOn(run.run, several);
  };
  auto text = kj::strArray(notes, "");
  return text.size() == 0 ? kj::mv(text) : kj::str("\n", text);
}

// Seconds of training an epoch: the first one warms up caches, so it counts only if it is alone.
kj::Maybe<double> epochSeconds(const runner::ResultTable& table) {
  double first = 0, sum = 0;
  uint count = 0;
  for (auto& row: table.rows) {
    KJ_IF_MAYBE(time_s, row.time_s) {
      if (row.epoch == 1) {
        first = *time_s;
      } else {
        sum += *time_s;
        count++;
      }
    }
  }
  if (count > 0) return sum / count;
  if (first > 0) return first;
  return nullptr;
}

// What was published of a run's speed: the last row that has the figure.
kj::Maybe<double> publishedSpeed(
    const IndexedRun& run, kj::Maybe<double> runner::PublishedFigures::*figure) {
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
  Markdown table({"cluster", "processor", "cores", "memory", "network"});
  for (auto& row: machines) {
    Cells cells;
    cells.add(kj::str(row.cluster));
    cells.add(kj::str(row.processor));
    cells.add(kj::str(row.cores));
    cells.add(kj::str(row.memory));
    cells.add(kj::str(row.network));
    table.add(cells);
  }
  return table.finish();
}

kj::String datasetsTable(kj::ArrayPtr<const Dataset> datasets) {
  Markdown table({"data set", "classes", "image", "training images", "validation images"});
  for (auto& row: datasets) {
    Cells cells;
    cells.add(kj::str(row.name));
    cells.add(runner::grouped(row.classes));
    cells.add(kj::str(row.image));
    cells.add(runner::grouped(row.training));
    cells.add(runner::grouped(row.validation));
    table.add(cells);
  }
  return table.finish();
}

kj::String accuracyTable(const ExperimentFigures& figures) {
  bool several = figures.runs.size() > 1;
  bool published = isPublished(figures);
  kj::Vector<kj::StringPtr> columns;
  if (several) columns.add("run");
  columns.addAll(kj::ArrayPtr<const kj::StringPtr>({"epoch", "train accuracy", "valid accuracy"}));
  if (published) {
    columns.add("published train");
    columns.add("published valid");
  }
  Markdown table(columns);
  for (auto& run: figures.runs) {
    for (auto& row: accuracyRows(figures.experiment, run)) {
      Cells cells;
      if (several) cells.add(kj::str(run.run.name));
      cells.add(kj::str(row.key));
      auto ours = row.value.ours;
      cells.add(ours == nullptr ? kj::String() : cell(ours->train, 6));
      cells.add(ours == nullptr ? kj::String() : cell(ours->validation, 6));
      if (published) {
        auto theirs = row.value.published;
        cells.add(theirs == nullptr ? kj::String() : cell(theirs->trainAccuracy, 6));
        cells.add(theirs == nullptr ? kj::String() : cell(theirs->validationAccuracy, 6));
      }
      table.add(cells);
    }
  }
  return kj::str(table.finish(), notesOn(figures));
}

kj::String performanceTable(kj::ArrayPtr<const ExperimentFigures> experiments) {
  bool published = false;
  for (auto& figures: experiments) {
    for (auto& run: figures.runs) {
      published = published ||
                  publishedSpeed(run.run, &runner::PublishedFigures::epoch_s) != nullptr ||
                  publishedSpeed(run.run, &runner::PublishedFigures::images_per_s) != nullptr;
    }
  }
  kj::Vector<kj::StringPtr> columns;
  columns.addAll(kj::ArrayPtr<const kj::StringPtr>({"run", "cluster", "machines", "devices",
      "batch size / device", "kvstore", "epoch time (s)", "images/s"}));
  if (published) {
    columns.add("published epoch time (s)");
    columns.add("published images/s");
  }
  Markdown table(columns);
  for (auto& figures: experiments) {
    for (auto& [run, result]: figures.runs) {
      auto seconds = epochSeconds(result);
      Cells cells;
      cells.add(kj::str(run.name));
      cells.add(kj::str(run.cluster));
      cells.add(kj::str(run.machines));
      cells.add(kj::str(run.devices));
      cells.add(kj::str(run.batchSize));
      cells.add(kj::str(run.kvstore));
      cells.add(cell(seconds, 1));
      cells.add(roundCell(seconds.map([&](double s) { return run.epochImages / s; })));
      if (published) {
        cells.add(cell(publishedSpeed(run, &runner::PublishedFigures::epoch_s), 1));
        cells.add(roundCell(publishedSpeed(run, &runner::PublishedFigures::images_per_s)));
      }
      table.add(cells);
    }
  }
  return table.finish();
}

}  // namespace tools
