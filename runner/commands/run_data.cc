#include "runner/commands/run_data.h"

#include <kj/debug.h>
#include <kj/map.h>
#include <string.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "io/datasets/datasets.h"
#include "runner/experiment/model_facts.h"
#include "runner/launch/progress.h"
#include "runner/sweep/run_errors.h"
#include "runner/system/interrupts.h"
#include "runner/system/reason.h"
#include "runner/system/terminal.h"
#include "runner/weights/start.h"

namespace runner {

namespace {

// Fetches and imports a data set, with progress and warnings. Ends the program at an interrupt.
void prepare(const io::DataConfig& config, kj::FunctionParam<void(kj::StringPtr)> warn) {
  ProgressLine line(STDERR_FILENO);
  WorkProgress pace;
  KJ_DEFER(line.clear());
  bool warned = false;
  kj::Own<io::Dataset> dataset;
  auto show = [&](kj::StringPtr what, uint64_t done, uint64_t total) {
    if (isInterrupted()) configs::fail("interrupted");
    line.show(pace.text(what, done, total));
  };
  auto tell = [&](kj::StringPtr sentence) {
    if (isInterrupted()) configs::fail("interrupted");
    line.clear();
    warn(sentence);
  };
  auto problem = kj::runCatchingExceptions([&]() {
    io::lookForChanges(config, show, tell);
    dataset = io::openDataset(config, show, [&](kj::StringPtr sentence) {
      warned = true;
      tell(sentence);
    });
  });
  line.clear();
  if (isInterrupted()) endInterrupted();
  KJ_IF_MAYBE(e, problem) kj::throwFatalException(kj::mv(*e));
  // An earlier command imported the data.
  if (!warned) {
    for (auto& sentence: dataset->leftOut()) warn(sentence);
  }
  if (!config.validatesOnHeldOut() && dataset->validation().count() == 0) {
    warn(kj::str("the data set has no validation records, so its runs have no ",
        "validation accuracy: every tenth image of an image folder is for validation, and it has ",
        "fewer than ten. Set data.validation_source. If the records are packed, pack them again ",
        "with it"));
  }
}

// Returns the lines of [data] in a resolved experiment. For runs with the same lines, the data are
// prepared once.
kj::String dataSection(kj::StringPtr resolved) {
  kj::StringPtr rest = strstr(resolved.cStr(), "\n[data]\n");
  auto end = strstr(rest.cStr() + 1, "\n[");
  return kj::heapString(rest.begin(), end == nullptr ? rest.size() : end - rest.begin());
}

}  // namespace

void requireSources(
    const LoadedRuns& all, kj::StringPtr file, CommandLine& commandLine, bool areThere) {
  configs::Diagnostics diagnostics;
  for (auto& run: all.runs) {
    configs::Diagnostics own;
    auto& experiment = KJ_ASSERT_NONNULL(run.loaded.experiment);
    io::requireSource(experiment.data, own);
    if (areThere && experiment.cluster.isHere()) io::requireSourcesHere(experiment.data, own);
    diagnostics.addNew(own);
  }
  if (diagnostics.count() > 0) commandLine.exitError(diagnostics.format(file));
}

bool mustLook(const LoadedRuns& all) {
  for (auto& run: all.runs) {
    if (io::factsOf(KJ_ASSERT_NONNULL(run.loaded.experiment).data) == nullptr) return true;
  }
  return false;
}

bool isAllKnown(const LoadedRuns& all) {
  for (auto& run: all.runs) {
    auto& experiment = KJ_ASSERT_NONNULL(run.loaded.experiment);
    if (!io::areRecordsKnown(experiment.data) || experiment.start != nullptr) return false;
  }
  return true;
}

kj::Array<kj::String> checkStarts(
    const LoadedRuns& all, kj::StringPtr file, CommandLine& commandLine) {
  configs::Diagnostics diagnostics;
  kj::Vector<kj::String> lines;
  for (auto& run: all.runs) {
    auto& experiment = KJ_ASSERT_NONNULL(run.loaded.experiment);
    if (experiment.start == nullptr) continue;
    KJ_IF_MAYBE(facts, io::factsOf(experiment.data)) {
      configs::Diagnostics own;
      KJ_IF_MAYBE(line, checkStart(experiment, graphOf(experiment, *facts), own)) {
        lines.add(kj::mv(*line));
      }
      diagnostics.addNew(own);
    }
  }
  if (diagnostics.count() > 0) {
    commandLine.exitError(diagnostics.format(file, terminalColumns(STDERR_FILENO)));
  }
  return lines.releaseAsArray();
}

void prepareData(LoadedRuns& all, kj::StringPtr file, CommandLine& commandLine, bool mayFail) {
  auto runs = all.runs.asPtr();
  configs::Diagnostics diagnostics;
  // Runs may differ in [data] and have the same records. Each sentence is printed once.
  kj::HashSet<kj::String> told;
  auto warnOnce = [&](kj::StringPtr sentence) {
    if (told.contains(sentence)) return;
    commandLine.warning(sentence);
    told.insert(kj::str(sentence));
  };
  auto tellOnce = [&](kj::StringPtr line) {
    if (told.contains(line)) return;
    tell(line);
    told.insert(kj::str(line));
  };
  // The lines of [data] of each data set, and why it is not available, or null.
  kj::HashMap<kj::String, kj::Maybe<kj::String>> prepared;
  auto endIfWrong = [&]() {
    if (diagnostics.count() > 0) {
      commandLine.exitError(diagnostics.format(file, terminalColumns(STDERR_FILENO)));
    }
  };
  requireSources(all, file, commandLine, !mayFail);
  for (auto& run: runs) {
    configs::Diagnostics own;
    requireMachineFor(KJ_ASSERT_NONNULL(run.loaded.experiment), own);
    diagnostics.addNew(own);
  }
  endIfWrong();
  RunErrors errors;
  for (auto& run: runs) {
    auto& experiment = KJ_ASSERT_NONNULL(run.loaded.experiment);
    auto data = dataSection(run.loaded.resolved);
    KJ_IF_MAYBE(earlier, prepared.find(data)) {
      KJ_IF_MAYBE(why, *earlier) run.problem = kj::str(*why);
    } else {
      KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { prepare(experiment.data, warnOnce); })) {
        // A failure of one run does not end the others.
        if (!mayFail) kj::throwFatalException(kj::mv(*e));
        run.problem = reasonOf(*e);
      }
      kj::Maybe<kj::String> problem;
      KJ_IF_MAYBE(why, run.problem) problem = kj::str(*why);
      prepared.insert(kj::mv(data), kj::mv(problem));
    }
    if (run.problem != nullptr) continue;
    configs::Diagnostics own;
    auto facts = datasetFacts(experiment.data);
    checkAgainst(experiment, facts, own);
    if (experiment.start != nullptr && own.count() == 0) {
      KJ_IF_MAYBE(line, checkStart(experiment, graphOf(experiment, facts), own)) tellOnce(*line);
    }
    errors.add(run.settings, kj::mv(own));
  }
  errors.tell(all.shortKeys, diagnostics);
  endIfWrong();
  bool allFail = true;
  for (auto& run: runs) allFail = allFail && run.problem != nullptr;
  if (allFail) {
    KJ_IF_MAYBE(why, runs[0].problem) configs::fail(*why);
  }
  addRecords(all);
}

void prepareData(const io::DataConfig& config, kj::StringPtr file, CommandLine& commandLine) {
  configs::Diagnostics diagnostics;
  io::requireSource(config, diagnostics);
  io::requireSourcesHere(config, diagnostics);
  if (diagnostics.count() > 0) {
    commandLine.exitError(diagnostics.format(file, terminalColumns(STDERR_FILENO)));
  }
  prepare(config, [&](kj::StringPtr sentence) { commandLine.warning(sentence); });
}

void withProgress(kj::FunctionParam<void(io::Progress&)> work) {
  ProgressLine line(STDERR_FILENO);
  WorkProgress pace;
  auto& clock = kj::systemPreciseMonotonicClock();
  auto begin = clock.now();
  io::Progress progress = [&](kj::StringPtr what, uint64_t done, uint64_t total) {
    // Unwinds the work, so that it removes its unfinished files.
    if (isInterrupted()) configs::fail("interrupted");
    // Short work needs no line.
    if (clock.now() - begin > 1 * kj::SECONDS) line.show(pace.text(what, done, total));
  };
  auto problem = kj::runCatchingExceptions([&]() { work(progress); });
  // An error is printed on a separate line.
  line.clear();
  if (isInterrupted()) endInterrupted();
  KJ_IF_MAYBE(e, problem) kj::throwFatalException(kj::mv(*e));
}

}  // namespace runner
