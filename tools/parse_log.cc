// tools/parse_log.cc: prints tables from logs of every style, and makes those of the results page.

#include <kj/debug.h>
#include <kj/exception.h>
#include <kj/main.h>
#include <kj/vector.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "runner/system/command_line.h"
#include "runner/system/files.h"
#include "runner/tables/log_table.h"
#include "tools/results/folder.h"
#include "tools/results/index.h"

namespace tools {
namespace {

using kj::uint;

// A day's log of 100 workers that each write one line per second has 0.9 GB. A larger file was
// given by mistake.
constexpr uint64_t LOG_BYTES_MAX = 1ull << 30;

constexpr kj::StringPtr DESCRIPTION =
    "Prints the result table of each log FILE (`-` is standard input). What is found in a file "
    "decides which; it must be of one style.\n"
    "\n"
    "Logs with lines per epoch (ours and MXNet's: `Epoch[..]` and `Iteration[..]` lines, with and "
    "without `Node[r]`, also quoted in a notebook or on a Markdown page) give, for each epoch, "
    "counted from 1, the accuracy on training and validation images and the training time in "
    "seconds, over all workers whose lines the file holds. --metric-names chooses other metrics.\n"
    "\n"
    "Logs with nothing but speed lines (`Epoch[0] Batch [50]`, `Speed: 820.11 samples/sec`) give "
    "the images/s of each worker: their mean, minimum, maximum and count.\n"
    "\n"
    "Logs with one line per step (styles tf_replica, tf_aws and schlag, also edited by hand) give "
    "the columns step (of the worker), global step (of the job), loss, accuracy and s/batch, one "
    "row per line, in the order of the file: tf_aws and schlag do not say which worker wrote a "
    "line. A cell is empty where the line does not tell. s/batch is the time since the start over "
    "the "
    "global step in tf_aws, the mean over the last batches in schlag (original logs divide by 100 "
    "always: at an epoch's end, "
    "after 50 batches, they say half of it), and the time since the same worker's line before in "
    "tf_replica. The last rows, without s/batch, are the end: in "
    "tf_replica the loss is the validation cross entropy, a sum over all records; in schlag the "
    "loss is the final cost, and the accuracy that on the test images.\n"
    "\n"
    "With --update it makes the tables of a results page anew, from the kept logs beside it.\n"
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
    "Exit code: 0, 1 if --check finds a table that is out of date, or 2 if the command or a file "
    "is wrong.\n"_kj;

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

constexpr Word<runner::Combine> OPS[] = {
    {"mean"_kj, runner::Combine::MEAN},
    {"avg"_kj, runner::Combine::MEAN},
    {"max"_kj, runner::Combine::MAX},
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
  return kj::str("`", given, "` is none of: ", kj::strArray(known, ", "));
}

// Reads an integer from 1 to 999,999,999.
kj::Maybe<uint> readCount(kj::StringPtr text) {
  if (text.size() < 1 || text.size() > 9) return nullptr;
  uint count = 0;
  for (char c: text) {
    if (c < '0' || c > '9') return nullptr;
    count = count * 10 + (c - '0');
  }
  if (count == 0) return nullptr;
  return count;
}

kj::MainBuilder::Validity takeCount(kj::StringPtr given, uint& count) {
  KJ_IF_MAYBE(c, readCount(given)) {
    count = *c;
    return true;
  }
  return kj::str("`", given, "` is not a whole number from 1 on");
}

class ParseLog {
public:
  explicit ParseLog(runner::CommandLine& commandLine): commandLine(commandLine) {}

  kj::MainFunc getMain() {
    return kj::MainBuilder(commandLine, "parse_log", DESCRIPTION)
        .addOptionWithArg({"columns"}, KJ_BIND_METHOD(*this, setColumns), "page|NAME,NAME",
            "Prints only these columns, in this order: epoch, train-accuracy, valid-accuracy, "
            "time; or step, global-step, loss, accuracy, s/batch. `page` is epoch, train accuracy "
            "and valid accuracy as MXNet's results page has them.")
        .addOptionWithArg({METRIC_NAMES}, KJ_BIND_METHOD(*this, setMetrics), "NAME NAME",
            "The metrics that have columns, in place of accuracy: `Train-cross-entropy=…` is a "
            "line of cross-entropy. Separate several by spaces, as for MXNet's tool, or by commas. "
            "The names end at the next option, or at a file that exists. Capital and small letters "
            "are the same.")
        .addOptionWithArg({"format"}, KJ_BIND_METHOD(*this, setFormat), "markdown|none|csv",
            "How the table is written: markdown (the default), none (columns with tabs between "
            "them) or csv (several files: one table, with a first column `file`).")
        .addOptionWithArg({"op"}, KJ_BIND_METHOD(*this, setOp), "mean|avg|max",
            "How the workers' figures of one epoch become one: their mean (the default; avg is the "
            "same) or, for the accuracies, their maximum. The time is the mean in any case. A "
            "worker's nan makes "
            "the mean nan; the maximum is nan only if all are.")
        .addOptionWithArg({"every"}, KJ_BIND_METHOD(*this, setEvery), "N",
            "Prints only the epochs or steps that N divides: 5 gives 5, 10, 15. The end stays. It "
            "is an error if none is left.")
        .addOptionWithArg({"epochs"}, KJ_BIND_METHOD(*this, setEpochs), "10,20",
            "Prints only these epochs. It is an error if the log has none of them, and a warning "
            "names those that are missing.")
        .addOptionWithArg({"run"}, KJ_BIND_METHOD(*this, setRun), "N",
            "Takes the N-th run of a file that holds several, one behind the other; for logs with "
            "lines per epoch. Without it such a file is refused, and one of several runs with one "
            "line per step is in any case. Some cannot be told: without `Node[r]`, runs of one or "
            "two "
            "epochs look like workers of one run, and in tf_aws and schlag only a fall to less "
            "than half of the global step shows another.")
        .addOption({"summary"}, KJ_BIND_METHOD(*this, setSummary),
            "Adds below a Markdown table by epochs the mean epoch time of its file, without the "
            "first epoch.")
        .addOptionWithArg({"update"}, KJ_BIND_METHOD(*this, setPage), "PAGE",
            "Makes the tables of the page (RESULTS.md) anew from results/index.toml and "
            "results/*.log.xz beside it; takes no FILE. Says which tables have changed.")
        .addOption({"check"}, KJ_BIND_METHOD(*this, setCheck),
            "With --update: changes nothing, but says which tables are out of date or were edited "
            "by hand, and ends with 1 if there are such.")
        .addOption({"index-reference"}, KJ_BIND_METHOD(*this, printIndexReference),
            "Prints the reference of results/index.toml, and exits.")
        .expectZeroOrMoreArgs("FILE", KJ_BIND_METHOD(*this, addFile))
        .callAfterParsing(KJ_BIND_METHOD(*this, print))
        .build();
  }

private:
  using Validity = kj::MainBuilder::Validity;

  runner::CommandLine& commandLine;
  kj::Vector<kj::StringPtr> files;
  runner::TableFormat format = runner::TableFormat::MARKDOWN;
  runner::TableOptions options;
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
        if (other == metric) return kj::str(metric, " stands there twice");
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

  // Prints which parts of a log's table are missing.
  void tellMissing(const runner::LogTable& table, kj::StringPtr name) {
    KJ_SWITCH_ONEOF(table) {
      KJ_CASE_ONEOF(epochs, runner::ResultTable) {
        if (epochs.absent.size() > 0) commandLine.warning(epochs.absent);
      }
      KJ_CASE_ONEOF(steps, runner::StepTable) {
      }
      KJ_CASE_ONEOF(speeds, runner::SpeedTable) {
        if (speeds.withoutSpeed > 0) {
          commandLine.warning(kj::str(name, ": left out ", speeds.withoutSpeed,
              speeds.withoutSpeed == 1 ? " line" : " lines", " whose speed is infinite or nan"));
        }
      }
    }
  }

  // Returns the table of the log of `name` as it is printed.
  runner::TextTable tableOf(kj::StringPtr log, kj::StringPtr name) {
    auto table = runner::readLogTable(log, name, options);
    tellMissing(table, name);
    auto text = runner::textOf(table);
    if (columns.size() == 1 && columns[0] == PAGE) {
      if (!table.is<runner::ResultTable>()) {
        configs::fail(name, " has no lines per epoch: --columns page is for logs that have them");
      }
      text = runner::pageTable(text, name);
    } else if (columns.size() > 0) {
      text = runner::selectColumns(text, name, columns);
    }
    if (summary && table.is<runner::ResultTable>()) {
      text.foot = runner::epochTimes(table.get<runner::ResultTable>());
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
    if (files.size() > 0) return kj::str("--update takes its logs from the folder results");
    if (options.run != nullptr || columns.size() > 0 || options.metrics.size() > 0 ||
        options.epochs.size() > 0 || options.every != 1 || summary) {
      return kj::str(
          "--update takes no other option than --check: results/index.toml says what "
          "its tables are made of");
    }
    PageOutcome outcome;
    KJ_IF_MAYBE(exception,
        kj::runCatchingExceptions([&]() { outcome = makePage(path, pageAction); })) {
      commandLine.error(exception->getDescription());
      commandLine.endWith(runner::WRONG_INPUT);
    }
    if (outcome.errors.size() > 0) {
      runner::writeQuietly(STDERR_FILENO, outcome.errors);
      commandLine.endWith(runner::WRONG_INPUT);
    }
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
    if (pageAction == PageAction::CHECK) return kj::str("--check belongs to --update");
    if (files.size() == 0) return kj::str("missing argument FILE", mistakenForMetric());
    if (options.every != 1 && options.epochs.size() > 0) {
      return kj::str("--every and --epochs exclude each other");
    }
    if (summary && format != runner::TableFormat::MARKDOWN) {
      return kj::str("--summary goes with --format markdown only");
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
