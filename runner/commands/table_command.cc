#include "runner/commands/table_command.h"

#include <sys/types.h>

#include <set>
#include <utility>

#include "runner/commands/run_results.h"
#include "runner/logs/run_folder.h"
#include "runner/logs/run_lock.h"
#include "runner/report/report.h"
#include "runner/system/files.h"
#include "runner/system/reason.h"
#include "runner/system/terminal.h"
#include "runner/system/version.h"
#include "runner/tables/find_runs.h"
#include "runner/tables/reported_run.h"

namespace runner {

namespace {

// Says where else a report may be written.
constexpr kj::StringPtr OTHER_REPORT = "choose another folder with --into"_kj;

// Returns "alpha/1" for one run, "alpha" for several with that name, else "3 runs: alpha, beta"
// with each name once.
kj::String titleOf(kj::ArrayPtr<const ReportedRun> runs) {
  if (runs.size() == 1) return kj::str(runs[0].label);
  kj::Vector<kj::StringPtr> names;
  for (auto& run: runs) {
    bool known = false;
    for (auto name: names) known = known || name == run.record.name;
    if (!known) names.add(run.record.name);
  }
  if (names.size() == 1) return kj::str(names[0]);
  return kj::str(runs.size(), " runs: ", kj::strArray(names, ", "));
}

// Returns the runs in the folders `named`: folders of runs, or folders that hold such folders. For
// each folder without runs, and for each run whose events cannot be read, adds one sentence to
// `errors` and leaves it out.
kj::Array<ReportedRun> readRuns(
    kj::ArrayPtr<const kj::String> named, kj::Vector<kj::String>& errors) {
  kj::Vector<ReportedRun> found;
  std::set<std::pair<dev_t, ino_t>> known;
  auto orLeaveOut = [&](auto&& read) {
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(read)) errors.add(reasonOf(*e));
  };
  for (auto& folder: named) {
    kj::Array<FoundRun> runs;
    auto leaveOut = [&](kj::StringPtr reason) { errors.add(kj::str(reason)); };
    orLeaveOut([&]() { runs = findRuns(folder, leaveOut); });
    for (auto& each: runs) {
      // `last` is a link to the newest run, and folders may be named twice.
      KJ_IF_MAYBE(identity, folderIdentity(each.folder)) {
        if (!known.insert(*identity).second) continue;
      }
      // A run may be found below several of the named folders.
      auto& label = named.size() > 1 ? each.folder : each.label;
      orLeaveOut([&]() {
        auto run = readReportedRun(each.folder, label);
        RunFolder held{kj::str(each.folder)};
        if (run.record.state == RunRecord::UNFINISHED && isHeld(held)) {
          run.record.state = RunRecord::RUNNING;
          run.record.reason = holderOf(held);
        }
        found.add(kj::mv(run));
      });
    }
  }
  if (found.size() == 1) found[0].label = labelOf(found[0].record.folder, found[0].record.name);
  return found.releaseAsArray();
}

// Whether one of `runs` was in progress when it was read, and has ended since.
bool hasEndedSince(kj::ArrayPtr<const ReportedRun> runs) {
  for (auto& run: runs) {
    if (run.record.state != RunRecord::RUNNING) continue;
    auto now = RunRecord::UNFINISHED;
    auto read = [&]() { now = readRunRecord(run.record.folder).state; };
    // Whoever reads the events next says why they cannot be read.
    auto ignored = kj::runCatchingExceptions(read);
    if (now != RunRecord::UNFINISHED) return true;
  }
  return false;
}

// Prints the table of `runs`. Writes its report to the folder `into`, which must exist; if `into`
// is empty, writes none. If a run ends meanwhile, writes the report of what `readAgain` returns.
// Returns MISSED, and prints why, if a run missed an expectation.
ExitCode showRuns(kj::ArrayPtr<const ReportedRun> runs, kj::StringPtr into,
    kj::Function<kj::Array<ReportedRun>()> readAgain) {
  printTables(runs);
  kj::Array<ReportedRun> newer;
  if (into.size() == 0) {
    tell(
        "the report of several RUNS is not written to files. Name a folder for it with --into DIR");
  } else {
    writeReport(into, titleOf(runs), runs, OTHER_REPORT);
    // A run that ends meanwhile writes its last report into the same folder. An older one must not
    // replace it.
    while (hasEndedSince(runs)) {
      newer = readAgain();
      runs = newer;
      writeReport(into, titleOf(runs), runs, OTHER_REPORT);
    }
    printWhereTablesAre(into);
  }
  return codeOf(runs);
}

}  // namespace

kj::MainFunc TableCommand::getMain() {
  return kj::MainBuilder(commandLine, VERSION,
      "Prints one table of all given runs. Each RUNS is the folder of one run, or a folder that "
      "contains folders of runs. Also writes table.md, table.csv and report.html to the folder of "
      "--into, or, if RUNS is only one folder, to that folder.\n"
      "\n"
      "  runner table runs/fashion_mnist_dist_sync\n"
      "  runner table runs/cifar10_dist_sync/1 runs/cifar10_dist_async/1 --into both")
      .addOptionWithArg({"into"}, folderSetter(into, "name a folder, e.g. /tmp/runs"), "DIR",
          "the folder to write to, which is created if necessary")
      .expectOneOrMoreArgs("RUNS", KJ_BIND_METHOD(*this, addRuns))
      .callAfterParsing(KJ_BIND_METHOD(*this, table))
      .build();
}

Validity TableCommand::table() {
  kj::Vector<kj::String> errors;
  auto read = [this](kj::Vector<kj::String>& unread) {
    return judged(readRuns(named, unread), &judgeBySweeps);
  };
  auto runs = read(errors);
  for (auto& each: errors) commandLine.error(each);
  if (runs.size() == 0) commandLine.endWith(WRONG_INPUT);
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() {
                if (into.size() > 0) makeFolders(into, OTHER_REPORT);
              })) {
    commandLine.exitError(kj::str("error: ", reasonOf(*e)));
  }
  if (into.size() == 0 && named.size() == 1) into = kj::str(named[0]);
  if (into.size() > 0) {
    KJ_IF_MAYBE(path, foreignReportIn(into)) {
      return kj::str(*path, " exists, and is not of a report. Choose another folder with --into, ",
          "or remove it");
    }
  }
  for (auto& each: named) {
    KJ_IF_MAYBE(sentence, notThereIn(each)) commandLine.warning(*sentence);
  }
  auto code = showRuns(runs, into, [&]() {
    kj::Vector<kj::String> ignored;  // the same sentences were printed before
    return read(ignored);
  });
  commandLine.endWith(errors.size() > 0 ? WRONG_INPUT : code);
}

Validity TableCommand::addRuns(kj::StringPtr word) {
  if (word.size() == 0) return kj::str("name a folder, e.g. runs/fashion_mnist_dist_sync");
  named.add(kj::str(word));
  return true;
}

}  // namespace runner
