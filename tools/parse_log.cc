// tools/parse_log.cc: prints tables from logs of every style, and makes those of the results page.

#include <kj/debug.h>
#include <kj/exception.h>
#include <kj/main.h>
#include <kj/vector.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "runner/system/command_line.h"
#include "runner/system/files.h"
#include "runner/text/numbers.h"
#include "tools/logs/log_table.h"
#include "tools/logs/unreadable_lines.h"
#include "tools/results/folder.h"
#include "tools/results/index.h"

namespace tools {
namespace {

using kj::uint;

// A day's log of 100 workers that each write one line per second has 0.9 GB. A larger file was
// given by mistake.
constexpr uint64_t LOG_BYTES_MAX = 1ull << 30;

constexpr kj::StringPtr DESCRIPTION =
    "Prints the result table of each log FILE (`-` is standard input). The lines of a file decide "
    "which table it gives. They must all have one style.\n"
    "\n"
    "Logs with lines per epoch are ours and MXNet's: `Epoch[..]` and `Iteration[..]` lines, with "
    "or without `Node[r]`, also quoted in a notebook or on a Markdown page. Their table has one "
    "row per epoch, counted from 1. It shows the accuracy on training and validation images and "
    "the training time in seconds, over all workers whose lines the file holds. With lines such "
    "as `Epoch[0] Validation-top_k_accuracy_5=0.9` it has a column valid-top-5. --metric-names "
    "chooses other metrics.\n"
    "\n"
    "Logs with only speed lines (`Epoch[0] Batch [50]`, `Speed: 820.11 samples/sec`) give the "
    "images/s of each worker: mean, minimum, maximum and count.\n"
    "\n"
    "Logs with one line per step have the styles tf_replica, tf_aws and schlag, and may be edited "
    "by hand. Their table has one row per line, in the order of the file, because lines of tf_aws "
    "and schlag do not name their worker. Its columns are step (of the worker), global step (of "
    "the job), loss, accuracy and s/batch. A cell is empty where the line has no such figure. "
    "s/batch is the time since the start divided by the global step in tf_aws, the mean over the "
    "last batches in schlag, and the time since the previous line of the same worker in "
    "tf_replica. (Original schlag logs always divide by 100. At an epoch's end, after 50 batches, "
    "they show half of the mean.) The last rows, without s/batch, show the end of the run. In "
    "tf_replica, their loss is the validation cross entropy, a sum over all records. In schlag, "
    "their loss is the final cost, and their accuracy is that on the test images.\n"
    "\n"
    "With --update it rewrites the tables of a results page from the logs kept beside it.\n"
    "\n"
    "Examples:\n"
    "  parse_log runs/cifar10/1/log.txt\n"
    "  parse_log log.txt --every 5 --op max\n"
    "  parse_log log.txt --columns page --every 10\n"
    "  parse_log log.txt --metric-names accuracy top_k_accuracy_5\n"
    "  parse_log steps.log --columns step,accuracy --every 500\n"
    "  parse_log a.log b.log --format csv > both.csv\n"
    "  grep 'Node.0.' log.txt | parse_log - --epochs 10,20\n"
    "  grep 'Worker 1:' steps.log | parse_log -\n"
    "  parse_log --update RESULTS.md\n"
    "\n"
    "Exit code: 0; 1 if --check finds a table that is out of date; 2 if the command or a file is "
    "wrong.\n"_kj;

// The value of --columns for the form of MXNet's results page.
constexpr kj::StringPtr PAGE = "page"_kj;

// The option that may have several words.
constexpr const char* METRIC_NAMES = "metric-names";

template <typename T>
struct Word {
  kj::StringPtr word;
  T meaning;
};

constexpr Word<runner::TableFormat> FORMATS[] = {
    {"markdown"_kj, runner::TableFormat::MARKDOWN},
    {"none"_kj, runner::TableFormat::NONE},
    {"csv"_kj, runner::TableFormat::CSV},
};

constexpr Word<Combine> OPS[] = {
    {"mean"_kj, Combine::MEAN},
    {"avg"_kj, Combine::MEAN},
    {"max"_kj, Combine::MAX},
};

template <typename T, size_t n>
kj::MainBuilder::Validity choose(const Word<T> (&words)[n], kj::StringPtr given, T& choice) {
  for (auto& row: words) {
    if (row.word == given) {
      choice = row.meaning;
      return true;
    }
  }
  auto known = KJ_MAP(row, words) {
    return row.word;
  };
  return kj::str("`", given, "` is not one of: ", kj::strArray(known, ", "));
}

// Reads a whole number from 1 to 999,999,999.
kj::Maybe<uint> readCount(kj::StringPtr text) {
  uint count = runner::parseWhole(text, 999'999'999).orDefault(0);
  if (count == 0) return nullptr;
  return count;
}

kj::MainBuilder::Validity takeCount(kj::StringPtr given, uint& count) {
  KJ_IF_MAYBE(c, readCount(given)) {
    count = *c;
    return true;
  }
  return kj::str("`", given, "` is not a whole number of at least 1");
}

class ParseLog {
public:
  explicit ParseLog(runner::CommandLine& commandLine): commandLine(commandLine) {}

  kj::MainFunc getMain() {
    return kj::MainBuilder(commandLine, "parse_log", DESCRIPTION)
        .addOptionWithArg({"columns"}, KJ_BIND_METHOD(*this, setColumns), "page|NAME,NAME",
            "Prints only these columns, in this order: epoch, train-accuracy, valid-accuracy, "
            "time; or step, global-step, loss, accuracy, s/batch. `page` stands for epoch, train "
            "accuracy and valid accuracy, the columns of MXNet's results page.")
        .addOptionWithArg({METRIC_NAMES}, KJ_BIND_METHOD(*this, setMetrics), "NAME NAME",
            "The metrics that get columns instead of accuracy. A line `Train-cross-entropy=…` has "
            "the metric cross-entropy. Separate several names by spaces, as for MXNet's tool, or "
            "by commas. The names end at the next option, or at a file that exists. Upper and "
            "lower case are the same.")
        .addOptionWithArg({"format"}, KJ_BIND_METHOD(*this, setFormat), "markdown|none|csv",
            "The format of the table: markdown (the default), none (columns separated by tabs) or "
            "csv (one table for several files, with a first column `file`).")
        .addOptionWithArg({"op"}, KJ_BIND_METHOD(*this, setOp), "mean|avg|max",
            "How the figures of several workers in one epoch are combined: by their mean (the "
            "default; avg is the same) or, for accuracies, by their maximum. The time is always "
            "the mean. One worker's nan makes the mean nan. The maximum is nan only if all are.")
        .addOptionWithArg({"every"}, KJ_BIND_METHOD(*this, setEvery), "N",
            "Prints only the epochs or steps that are multiples of N: 5 gives 5, 10, 15. The rows "
            "at the end of a run are always printed. It is an error if no epoch or step is left.")
        .addOptionWithArg({"epochs"}, KJ_BIND_METHOD(*this, setEpochs), "10,20",
            "Prints only these epochs. It is an error if the log has none of them. A warning names "
            "those that are missing.")
        .addOptionWithArg({"run"}, KJ_BIND_METHOD(*this, setRun), "N",
            "Reads the N-th run of a file that holds several runs, one after the other. Only for "
            "logs with lines per epoch. Without this option, such a file is refused. A file of "
            "several runs with one line per step is always refused. Some runs cannot be told "
            "apart: without `Node[r]`, runs of one or two epochs look like the workers of one run. "
            "In tf_aws and schlag, a new run shows only if the global step falls below half of its "
            "value.")
        .addOption({"summary"}, KJ_BIND_METHOD(*this, setSummary),
            "Adds the file's mean epoch time, without the first epoch, below a Markdown table of "
            "epochs.")
        .addOptionWithArg({"update"}, KJ_BIND_METHOD(*this, setPage), "PAGE",
            "Rewrites the tables of the page (RESULTS.md) from results/index.toml and "
            "results/*.log.xz beside it. Takes no FILE. Prints which tables have changed.")
        .addOption({"check"}, KJ_BIND_METHOD(*this, setCheck),
            "With --update: changes nothing, but prints which tables are out of date or were "
            "edited by hand. The exit code is 1 if there are any.")
        .addOption({"index-reference"}, KJ_BIND_METHOD(*this, printIndexReference),
            "Prints the reference of results/index.toml and exits.")
        .expectZeroOrMoreArgs("FILE", KJ_BIND_METHOD(*this, addFile))
        .callAfterParsing(KJ_BIND_METHOD(*this, print))
        .build();
  }

private:
  using Validity = kj::MainBuilder::Validity;

  runner::CommandLine& commandLine;
  kj::Vector<kj::StringPtr> files;
  runner::TableFormat format = runner::TableFormat::MARKDOWN;
  TableOptions options;
  kj::Array<kj::String> columns;  // empty: all
  bool summary = false;
  kj::Maybe<kj::StringPtr> page;
  PageAction pageAction = PageAction::UPDATE;

  Validity setFormat(kj::StringPtr word) { return choose(FORMATS, word, format); }
  Validity setOp(kj::StringPtr word) { return choose(OPS, word, options.combine); }
  Validity setEvery(kj::StringPtr number) { return takeCount(number, options.every); }

  Validity setRun(kj::StringPtr number) {
    uint run = 0;
    auto validity = takeCount(number, run);
    options.run = run;
    return validity;
  }

  // Returns the words between the commas.
  static kj::Array<kj::String> split(kj::StringPtr list) {
    kj::Vector<kj::String> words;
    for (size_t begin = 0; begin <= list.size();) {
      size_t end = begin;
      while (end < list.size() && list[end] != ',') ++end;
      words.add(kj::str(list.slice(begin, end)));
      begin = end + 1;
    }
    return words.releaseAsArray();
  }

  Validity setEpochs(kj::StringPtr list) {
    kj::Vector<uint> epochs;
    for (auto& word: split(list)) {
      KJ_IF_MAYBE(epoch, readCount(word)) {
        epochs.add(*epoch);
      } else {
        return kj::str("`", list, "` is not a list of epochs such as 10,20");
      }
    }
    options.epochs = epochs.releaseAsArray();
    return true;
  }

  Validity setColumns(kj::StringPtr list) {
    columns = split(list);
    return true;
  }

  Validity setMetrics(kj::StringPtr list) {
    options.metrics = split(list);
    for (auto& metric: options.metrics) {
      if (metric.size() == 0) return kj::str("`", list, "` is not a list of metrics such as a,b");
      for (auto& other: options.metrics) {
        if (&other == &metric) break;
        if (other == metric) return kj::str(metric, " is named twice");
      }
    }
    return true;
  }

  Validity setSummary() {
    summary = true;
    return true;
  }

  Validity addFile(kj::StringPtr name) {
    files.add(name);
    return true;
  }

  // Prints how many lines of a log are left out because they cannot be read.
  void tellUnreadable(kj::StringPtr log, kj::StringPtr name) {
    auto unreadable = unreadableLinesIn(log);
    if (unreadable.count == 0) return;
    commandLine.warning(kj::str(name, ": left out ", describe(unreadable)));
  }

  // Prints which parts of a log's table are missing.
  void tellMissing(const LogTable& table, kj::StringPtr name) {
    KJ_SWITCH_ONEOF(table) {
      KJ_CASE_ONEOF(epochs, EpochLogTable) {
        if (epochs.absent.size() > 0) commandLine.warning(epochs.absent);
      }
      KJ_CASE_ONEOF(steps, StepLogTable) {
      }
      KJ_CASE_ONEOF(speeds, SpeedTable) {
        if (speeds.withoutSpeed > 0) {
          commandLine.warning(kj::str(name, ": left out ", speeds.withoutSpeed,
              speeds.withoutSpeed == 1 ? " line" : " lines", " whose speed is infinite or nan"));
        }
      }
    }
  }

  // Returns the table of the log of `name` as it is printed.
  runner::TextTable tableOf(kj::StringPtr log, kj::StringPtr name) {
    char last = log.size() == 0 ? '\n' : log[log.size() - 1];
    if ((last >= '0' && last <= '9') || last == '.') {
      commandLine.warning(
          kj::str(name, " ends in the middle of a line. Its last number may be cut off"));
    }
    tellUnreadable(log, name);
    auto table = readLogTable(log, name, options);
    tellMissing(table, name);
    auto text = textOf(table);
    if (columns.size() == 1 && columns[0] == PAGE) {
      if (!table.is<EpochLogTable>()) {
        configs::fail(
            name, " has no lines per epoch: --columns page is only for logs with such lines");
      }
      text = pageTable(text, name);
    } else if (columns.size() > 0) {
      text = runner::selectColumns(text, name, columns);
    }
    if (summary && table.is<EpochLogTable>()) {
      text.foot = epochTimes(table.get<EpochLogTable>());
    }
    return text;
  }

  Validity setPage(kj::StringPtr path) {
    page = path;
    return true;
  }
  Validity setCheck() {
    pageAction = PageAction::CHECK;
    return true;
  }
  Validity printIndexReference() {
    runner::print(indexReference());
    commandLine.endWith(runner::OK);
  }

  Validity makeResultsPage(kj::StringPtr path) {
    if (files.size() > 0)
      return kj::str("--update takes its logs from the folder results. Leave FILE out");
    if (options.run != nullptr || columns.size() > 0 || options.metrics.size() > 0 ||
        options.epochs.size() > 0 || options.every != 1 || summary ||
        options.combine != Combine::MEAN || format != runner::TableFormat::MARKDOWN) {
      return kj::str(
          "--update takes no other option than --check: results/index.toml says how its tables are "
          "made");
    }
    PageOutcome outcome;
    KJ_IF_MAYBE(exception,
        kj::runCatchingExceptions([&]() { outcome = makePage(path, pageAction); })) {
      commandLine.error(exception->getDescription());
      commandLine.endWith(runner::WRONG_INPUT);
    }
    if (outcome.errors.size() > 0) commandLine.exitError(outcome.errors);
    for (auto& line: outcome.lines) runner::print(kj::str(line, "\n"));
    bool wrong = pageAction == PageAction::CHECK && outcome.lines.size() > 0;
    commandLine.endWith(wrong ? runner::RUN_FAILED : runner::OK);
  }

  // The last name after --metric-names may have been meant as FILE. Only a file that exists ends
  // the names.
  kj::String mistakenForMetric() const {
    if (options.metrics.size() < 2) return kj::str();
    auto& last = options.metrics.back();
    return kj::str("; there is no file `", last, "`, so it counts as one of --metric-names");
  }

  // Prints the tables of all files that can be read, and the errors of the others.
  Validity print() {
    KJ_IF_MAYBE(path, page) return makeResultsPage(*path);
    if (pageAction == PageAction::CHECK) return kj::str("--check needs --update");
    if (files.size() == 0) return kj::str("missing argument FILE", mistakenForMetric());
    if (options.every != 1 && options.epochs.size() > 0) {
      return kj::str("--every and --epochs cannot both be given");
    }
    if (summary && format != runner::TableFormat::MARKDOWN) {
      return kj::str("--summary needs --format markdown");
    }
    kj::Vector<runner::NamedTable> tables;
    bool wrong = false;
    for (auto file: files) {
      auto name = file == "-" ? "standard input"_kj : file;
      auto failure = kj::runCatchingExceptions([&]() {
        auto log = file == "-" ? runner::readWhole(STDIN_FILENO, name, LOG_BYTES_MAX)
                               : runner::readWhole(file, LOG_BYTES_MAX);
        tables.add(runner::NamedTable{kj::str(name), tableOf(log, name)});
      });
      KJ_IF_MAYBE(exception, failure) {
        commandLine.error(exception->getDescription());
        wrong = true;
      }
    }
    // If there were several files, the names are printed even if only one could be read, to say
    // which one.
    kj::String text;
    auto failure = kj::runCatchingExceptions([&]() {
      text = files.size() > 1     ? runner::formatTables(tables, format)
             : tables.size() == 1 ? runner::formatTable(tables[0].table, format)
                                  : kj::String();
    });
    KJ_IF_MAYBE(exception, failure) {
      commandLine.error(exception->getDescription());
      wrong = true;
    }
    runner::print(text);
    commandLine.endWith(wrong ? runner::WRONG_INPUT : runner::OK);
  }
};

// Returns the words of the command line with the names of --metric-names joined by commas into one
// word. MXNet's tool takes `--metric-names accuracy top_k_accuracy_5`.
kj::Array<kj::String> joinedMetricNames(kj::ArrayPtr<char* const> words) {
  kj::Vector<kj::String> joined;
  for (size_t i = 0; i < words.size();) {
    kj::StringPtr word = words[i++];
    joined.add(kj::str(word));
    if (word != kj::str("--", METRIC_NAMES)) continue;
    kj::Vector<kj::StringPtr> names;
    auto isName = [&](kj::StringPtr next) {
      return !next.startsWith("-") && (names.empty() || ::access(next.cStr(), F_OK) != 0);
    };
    while (i < words.size() && isName(words[i])) names.add(words[i++]);
    if (names.size() > 0) joined.add(kj::strArray(names, ","));
  }
  return joined.releaseAsArray();
}

}  // namespace
}  // namespace tools

int main(int argc, char* argv[]) {
  runner::openStandardStreams();
  runner::CommandLine commandLine("parse_log");
  tools::ParseLog parseLog(commandLine);
  auto words = tools::joinedMetricNames(kj::arrayPtr(argv, argc));
  auto pointers = KJ_MAP(word, words) {
    return word.begin();
  };
  commandLine.run(parseLog.getMain(), pointers.size(), pointers.begin());
}
