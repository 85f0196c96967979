#include "tools/results/page.h"

#include <kj/map.h>
#include <kj/vector.h>

#include "configs/language/failure.h"
#include "tools/logs/unreadable_lines.h"
#include "tools/results/tables.h"

namespace tools {

namespace {

constexpr kj::StringPtr MARK = "<!-- results: "_kj;

// A line that is a marker.
struct Marker {
  kj::String name;
  enum Side { BEGIN, END } side;
};

kj::Maybe<Marker> readMarker(kj::StringPtr line, kj::StringPtr place) {
  if (!line.startsWith(MARK)) return nullptr;
  for (auto side: {Marker::BEGIN, Marker::END}) {
    auto tail = side == Marker::BEGIN ? " begin -->"_kj : " end -->"_kj;
    if (line.size() > MARK.size() + tail.size() && line.endsWith(tail)) {
      return Marker{kj::heapString(line.slice(MARK.size(), line.size() - tail.size())), side};
    }
  }
  configs::fail(place, " is not a marker. Write `<!-- results: NAME begin -->` or `… end -->`");
}

// Cuts a page at its markers.
class Cutter {
public:
  explicit Cutter(kj::StringPtr page): page(page) {}

  // Returns the pieces, with the tables as they are now.
  ResultsPage cut(kj::StringPtr pageName) {
    uint number = 1;
    for (size_t place = 0; place < page.size(); number++) {
      kj::StringPtr rest = page.slice(place);
      size_t length = rest.findFirst('\n').orDefault(rest.size());
      size_t next = kj::min(place + length + 1, page.size());
      auto where = kj::str(pageName, ":", number);
      auto line = kj::heapString(rest.slice(0, length));
      KJ_IF_MAYBE(marker, readMarker(line, where)) take(*marker, where, number, place, next);
      place = next;
    }
    KJ_IF_MAYBE(table, open) {
      configs::fail(pageName, ":", table->line, ": the table `", table->name,
          "` has no end. Write ", MARK, table->name, " end --> after it");
    }
    texts.add(kj::heapString(page.slice(begin)));
    return {texts.releaseAsArray(), tables.releaseAsArray()};
  }

private:
  // The marker's line is page[place, next).
  void take(Marker& marker, kj::StringPtr where, uint number, size_t place, size_t next) {
    KJ_IF_MAYBE(table, open) {
      if (marker.side == Marker::BEGIN || marker.name != table->name) {
        configs::fail(where, ": the table `", table->name, "`, begun at line ", table->line,
            ", has not ended here. Write ", MARK, table->name, " end --> before");
      }
      table->current = kj::heapString(page.slice(begin, place));
      tables.add(kj::mv(*table));
      open = nullptr;
      begin = place;
      return;
    }
    if (marker.side == Marker::END) {
      configs::fail(where, ": the table `", marker.name, "` has not begun. Write ", MARK,
          marker.name, " begin --> before it");
    }
    for (auto& table: tables) {
      if (table.name == marker.name) {
        configs::fail(where, ": the table `", marker.name, "` is at line ", table.line,
            " already. Remove one of the two");
      }
    }
    texts.add(kj::heapString(page.slice(begin, next)));
    open = PageTable{kj::mv(marker.name), number, {}, {}};
    begin = next;
  }

  kj::StringPtr page;
  kj::Vector<kj::String> texts;
  kj::Vector<PageTable> tables;
  kj::Maybe<PageTable> open;
  size_t begin = 0;  // where the present piece begins
};

// Throws if a figure was published that no table from such a log shows.
void requireShown(const IndexedRun& run, const LogTable& table) {
  kj::HashSet<kj::String> shown;
  KJ_IF_MAYBE(published, run.published) {
    for (auto& row: published->rows) {
      auto place = kj::str("the end");
      if (table.is<EpochLogTable>()) {
        place = kj::str("epoch ", table.get<EpochLogTable>().rows.back().epoch);
      }
      KJ_IF_MAYBE(epoch, row.epoch) place = kj::str("epoch ", *epoch);
      KJ_IF_MAYBE(step, row.step) place = kj::str("step ", *step);
      auto refuse = [&](kj::StringPtr why) {
        configs::fail("results/index.toml: the run `", run.name, "` has published figures for ",
            place, " that no table shows: ", why);
      };
      bool accuracy = row.trainAccuracy != nullptr || row.validationAccuracy != nullptr;
      if (table.is<StepLogTable>()) {
        if (row.epoch != nullptr && (accuracy || row.loss != nullptr)) {
          refuse(
              "its log has one line per step. Say `step`, or neither `step` nor `epoch` for the "
              "end");
        }
        if (row.trainAccuracy != nullptr && row.validationAccuracy != nullptr) {
          refuse("a log with one line per step has one accuracy. Leave the other one out");
        }
      } else {
        if (row.step != nullptr && accuracy) {
          refuse(
              "its log has one line per epoch. Say `epoch`, or neither `step` nor `epoch` for the "
              "end");
        }
        if (row.loss != nullptr) refuse("a log with one line per epoch has no loss. Leave it out");
      }
      auto show = [&](kj::StringPtr figure, bool is) {
        if (!is) return;
        auto name = kj::str(figure, " ", place);
        if (shown.contains(name)) {
          refuse(kj::str("another row also has its ", figure, ". Leave one out"));
        }
        shown.insert(kj::mv(name));
      };
      if (table.is<StepLogTable>()) {
        show("accuracy", accuracy);
      } else {
        show("train accuracy", row.trainAccuracy != nullptr);
        show("validation accuracy", row.validationAccuracy != nullptr);
      }
      show("loss", row.loss != nullptr);
      place = kj::str("the whole run");
      show("epoch time", row.epoch_s != nullptr);
      show("speed", row.images_per_s != nullptr);
    }
  }
}

RunFigures readFigures(const IndexedRun& run, Combine combine, kj::ArrayPtr<const KeptLog> logs) {
  for (auto& log: logs) {
    if (log.name != run.log) continue;
    TableOptions options;
    options.combine = combine;
    options.otherRuns = "Keep each run in a separate log";
    auto unreadable = unreadableLinesIn(log.text);
    if (unreadable.count > 0) {
      configs::fail(log.name, " has ", describe(unreadable), ". Keep a log without such lines.");
    }
    RunFigures figures{run, readLogTable(log.text, log.name, options)};
    if (figures.table.is<SpeedTable>()) {
      configs::fail(log.name, " has only speed lines, and the page has no table for them.");
    }
    requireShown(run, figures.table);
    return figures;
  }
  KJ_FAIL_REQUIRE("a run without a log", run.log);
}

kj::Array<ExperimentFigures> readFigures(
    const ResultsIndex& index, kj::ArrayPtr<const KeptLog> logs) {
  kj::Vector<ExperimentFigures> all;
  for (auto& experiment: index.experiments) {
    kj::Vector<RunFigures> runs;
    for (auto& run: experiment.runs) runs.add(readFigures(run, experiment.combine, logs));
    all.add(ExperimentFigures{experiment, runs.releaseAsArray()});
  }
  return all.releaseAsArray();
}

// Returns the table of this name, or null.
kj::Maybe<kj::String> tableOf(
    kj::StringPtr name, const ResultsIndex& index, kj::ArrayPtr<const ExperimentFigures> figures) {
  if (name == MACHINES_TABLE) return machinesTable(index.machines);
  if (name == DATASETS_TABLE) return datasetsTable(index.datasets);
  if (name == PERFORMANCE_TABLE) return performanceTable(figures);
  for (auto& each: figures) {
    if (each.experiment.name == name) return figuresTable(each);
  }
  return nullptr;
}

kj::Array<kj::ArrayPtr<const char>> linesOf(kj::StringPtr text) {
  kj::Vector<kj::ArrayPtr<const char>> lines;
  for (;;) {
    KJ_IF_MAYBE(end, text.findFirst('\n')) {
      lines.add(text.slice(0, *end));
      text = text.slice(*end + 1);
    } else {
      lines.add(text);
      return lines.releaseAsArray();
    }
  }
}

// Returns the first line in which a table differs from the right one.
kj::String complaint(kj::StringPtr page, const PageTable& table) {
  auto current = linesOf(table.current), fresh = linesOf(table.fresh);
  auto lineOf = [](kj::ArrayPtr<const kj::ArrayPtr<const char>> lines, size_t i) {
    return i < lines.size() ? lines[i] : kj::ArrayPtr<const char>();
  };
  size_t i = 0;
  while (lineOf(current, i) == lineOf(fresh, i) && i < fresh.size()) i++;
  // If all lines agree, the error is at the end of the present table.
  size_t line = table.line + 1 + kj::min(i, current.size() - 1);
  return kj::str(page, ":", line, ": the table `", table.name,
      "` is out of date or was edited by hand. It has `", lineOf(current, i),
      "` but its logs give `", lineOf(fresh, i), "`");
}

}  // namespace

kj::String ResultsPage::updated() const {
  kj::Vector<kj::StringPtr> pieces;
  for (size_t i: kj::indices(tables)) {
    pieces.add(texts[i]);
    pieces.add(tables[i].fresh);
  }
  pieces.add(texts.back());
  return kj::strArray(pieces, "");
}

kj::Array<kj::String> ResultsPage::complaints(kj::StringPtr name) const {
  kj::Vector<kj::String> result;
  for (auto& table: tables) {
    if (table.current == table.fresh) continue;
    result.add(complaint(name, table));
  }
  return result.releaseAsArray();
}

ResultsPage readPage(kj::StringPtr name, kj::StringPtr page, const ResultsIndex& index,
    kj::ArrayPtr<const KeptLog> logs) {
  auto result = Cutter(page).cut(name);
  auto figures = readFigures(index, logs);
  for (auto& table: result.tables) {
    KJ_IF_MAYBE(fresh, tableOf(table.name, index, figures)) {
      // Markdown needs empty lines around a table.
      table.fresh = kj::str("\n", *fresh, "\n");
    } else {
      auto known = KJ_MAP(each, figures)->kj::StringPtr {
        return each.experiment.name;
      };
      configs::fail(name, ":", table.line, ": there is no table `", table.name, "`. There are ",
          MACHINES_TABLE, ", ", DATASETS_TABLE, ", ", PERFORMANCE_TABLE, ", ",
          kj::strArray(known, ", "));
    }
  }
  for (auto& experiment: index.experiments) {
    bool there = false;
    for (auto& table: result.tables) there = there || table.name == experiment.name;
    if (!there) {
      configs::fail(name, " has no place for the experiment `", experiment.name, "`. Write ", MARK,
          experiment.name, " begin --> and ", MARK, experiment.name, " end --> on two lines");
    }
  }
  return result;
}

}  // namespace tools
