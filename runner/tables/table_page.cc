#include "runner/tables/table_page.h"

#include <kj/map.h>
#include <kj/vector.h>

#include "runner/tables/run_tables.h"
#include "runner/tables/store_table.h"
#include "runner/tables/terminal_table.h"
#include "runner/text/fitted_text.h"
#include "runner/text/numbers.h"

namespace runner {
namespace {

using Runs = kj::ArrayPtr<const ReportedRun>;

// Decimals of accuracies and losses of several runs. In files they are as in the classic lines.
constexpr uint DECIMALS = 6, TERMINAL_DECIMALS = 4;

// Returns the table of a single run. Null if it has none, or if there are several runs.
kj::Maybe<TextTable> singleTableOf(Runs runs, uint stepRowsMax) {
  if (runs.size() != 1) return nullptr;
  KJ_IF_MAYBE(table, runs[0].table) {
    if (table->is<ResultTable>()) return textOf(table->get<ResultTable>());
    auto& steps = table->get<StepTable>();
    if (steps.rows.size() <= stepRowsMax) return textOf(steps);
    auto few = textOf(thinned(steps, stepRowsMax));
    // thinned() does not count the final rows.
    if (few.rows.size() == steps.rows.size()) return kj::mv(few);
    few.foot = kj::str(few.rows.size(), " of ", steps.rows.size(), " rows; table.md has all.");
    return kj::mv(few);
  }
  return nullptr;
}

constexpr kj::StringPtr IMPORTANT_PUBLISHED_COLUMNS[] = {
    "run"_kj, "figure"_kj, "ours"_kj, "published"_kj};

// Writes tables, and the lines between them, for a terminal or as Markdown.
class Form {
public:
  Form() = default;
  explicit Form(uint columns): columns(columns) {}

  // `important` is as for fittedTable().
  kj::String table(const TextTable& table, kj::ArrayPtr<const kj::StringPtr> important) const {
    KJ_IF_MAYBE(c, columns) {
      auto foot = table.foot.size() == 0 ? kj::str() : kj::str("\n", line(table.foot));
      return kj::str(fittedTable(table, important, *c), foot);
    }
    return formatTable(table, TableFormat::MARKDOWN);
  }
  kj::String line(kj::StringPtr text) const {
    KJ_IF_MAYBE(c, columns) return kj::str(wrapped(text, *c), "\n");
    return kj::str(text, "\n");
  }

private:
  kj::Maybe<uint> columns;  // of the terminal; null for Markdown
};

kj::String reasonsOf(Runs runs, const Form& form) {
  kj::Vector<kj::String> lines;
  for (auto& run: runs) {
    auto& record = run.record;
    if (record.reason.size() == 0) continue;
    lines.add(
        form.line(kj::str("- ", run.label, " ", stateWord(record.state), ": ", record.reason)));
  }
  return lines.empty() ? kj::str() : kj::str("\n", kj::strArray(lines, ""));
}

// Returns how often checkpoints, or the best weights, could not be written.
kj::String unsavedOf(Runs runs, const Form& form) {
  kj::Vector<kj::String> lines;
  for (auto& run: runs) {
    auto& record = run.record;
    if (record.unsaved == 0) continue;
    lines.add(form.line(kj::str("- ", run.label, ": saving failed ",
        counted(record.unsaved, "time"), ". The last time: ", record.unsavedText)));
  }
  return lines.empty() ? kj::str() : kj::str("\n", kj::strArray(lines, ""));
}

// Returns sentences about the epochs after which the numbers of workers and servers have changed.
kj::String resizesOf(Runs runs, const Form& form) {
  kj::Vector<kj::String> lines;
  for (auto& run: runs) {
    for (auto& note: resizeNotes(run.record)) {
      lines.add(form.line(kj::str("- ", run.label, ": ", note)));
    }
  }
  return lines.empty() ? kj::str() : kj::str("\n", kj::strArray(lines, ""));
}

// Returns what the imports of the runs' data sets left out, each sentence once.
kj::String leftOutOf(Runs runs, const Form& form) {
  kj::HashSet<kj::String> known;
  kj::Vector<kj::String> lines;
  for (auto& run: runs) {
    for (auto& sentence: run.record.leftOut) {
      if (known.contains(sentence)) continue;
      known.insert(kj::str(sentence));
      lines.add(form.line(kj::str("- ", sentence)));
    }
  }
  if (lines.empty()) return kj::str();
  return kj::str("\n", form.line("The import of the data set:"), "\n", kj::strArray(lines, ""));
}

// Returns `results`, followed by notes, reasons, published figures and the traffic of the store.
kj::String pageOf(Runs runs, kj::String results, const Form& form) {
  kj::Vector<kj::String> parts;
  parts.add(kj::mv(results));
  if (runs.size() == 1) {
    auto note = viewsNote(runs[0].record);
    if (note.size() > 0) parts.add(kj::str("\n", form.line(note)));
    KJ_IF_MAYBE(best, runs[0].record.best) {
      parts.add(kj::str(
          "\n", form.line(kj::str("Kept in best.safetensors: the weights of epoch ", best->epoch,
                    ", with validation accuracy ", figureText(best->accuracy, DECIMALS)))));
    }
  }
  if (runs.size() == 1) {
    KJ_IF_MAYBE(why, runs[0].record.endedEarly) {
      parts.add(kj::str("\n", form.line(kj::str("Ended early: ", *why))));
    }
    KJ_IF_MAYBE(averaged, runs[0].record.averaged) {
      parts.add(kj::str("\n",
          form.line(
              kj::str("Kept in ema.safetensors: the moving average of the weights after epoch ",
                  averaged->epoch, ", with validation accuracy ",
                  figureText(averaged->accuracy, DECIMALS)))));
    }
  }
  parts.add(resizesOf(runs, form));
  parts.add(reasonsOf(runs, form));
  parts.add(unsavedOf(runs, form));
  parts.add(leftOutOf(runs, form));
  auto published = publishedTable(runs);
  if (published.rows.size() > 0) {
    auto sources = kj::str("Published: ", kj::strArray(sourcesOf(runs), "; "));
    parts.add(kj::str(
        "\n", form.line(sources), "\n", form.table(published, IMPORTANT_PUBLISHED_COLUMNS)));
  }
  if (runs.size() == 1) {
    auto store = storeTable(runs[0].record);
    if (store.rows.size() > 0) {
      parts.add(kj::str("\nStore:\n\n", form.table(store, IMPORTANT_STORE_COLUMNS)));
    }
  }
  return kj::strArray(parts, "");
}

// The most important columns after the names of the runs. A setting has a column only if the runs
// differ in it.
constexpr kj::StringPtr IMPORTANT_RESULT_COLUMNS[] = {"valid-accuracy"_kj, "state"_kj,
    "expected"_kj, "epochs done"_kj, "mode"_kj, "batch_size"_kj, "learning_rate"_kj, "workers"_kj,
    "train-accuracy"_kj, "s/epoch"_kj, "images/s"_kj};

// Returns resultsTable() for a terminal. The labels always distinguish the runs, however narrow the
// terminal is. Settings that the labels name have columns only if all results have room.
kj::String resultsForTerminal(Runs runs, uint columns) {
  auto labels = KJ_MAP(run, runs)->kj::StringPtr {
    return run.label;
  };
  bool bySettings = areNamedBySettings(runs);
  auto isInLabel = [&](kj::StringPtr title) {
    for (auto& setting: runs[0].settings) {
      if (bySettings && setting.key == title) return true;
    }
    return false;
  };
  kj::Vector<kj::StringPtr> important;
  important.add("run"_kj);
  for (auto title: IMPORTANT_RESULT_COLUMNS) {
    if (!isInLabel(title)) important.add(title);
  }
  return fittedTable(resultsTable(runs, TERMINAL_DECIMALS, labels), important, columns);
}

}  // namespace

kj::String tableMarkdown(Runs runs, uint stepRowsMax) {
  Form form;
  KJ_IF_MAYBE(table, singleTableOf(runs, stepRowsMax)) {
    return pageOf(runs, form.table(*table, nullptr), form);
  }
  return pageOf(runs, form.table(resultsTable(runs, DECIMALS), nullptr), form);
}

kj::String tableForTerminal(Runs runs, uint columns, uint stepRowsMax) {
  Form form(columns);
  KJ_IF_MAYBE(table, singleTableOf(runs, stepRowsMax)) {
    return pageOf(runs, form.table(*table, nullptr), form);
  }
  return pageOf(runs, resultsForTerminal(runs, columns), form);
}

kj::String tableCsv(Runs runs) {
  auto text = [](const TextTable& table) { return formatTable(table, TableFormat::CSV); };
  if (runs.size() > 1) return text(resultsTable(runs, DECIMALS));
  KJ_IF_MAYBE(table, singleTableOf(runs, kj::maxValue)) return text(*table);
  // A run without such a table has the same columns and no rows.
  if (runs[0].logStyle->isBySteps()) return text(textOf(StepTable()));
  return text(textOf(ResultTable{.topK = runs[0].topK}));
}

}  // namespace runner
