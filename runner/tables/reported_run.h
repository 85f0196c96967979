// runner/tables/reported_run.h: all that tables and reports show of one run, and what was published
// of it.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/experiment/expectations.h"
#include "runner/experiment/published.h"
#include "runner/logs/run_record.h"
#include "runner/tables/log_table.h"
#include "runner/tables/verdicts.h"

namespace runner {

struct ReportedRun {
  RunRecord record;
  kj::String label;  // what tells it from the others
  // In what its experiment differs from the others', once told apart.
  struct Setting {
    kj::String key;
    kj::String value;
  };
  kj::Array<Setting> settings;
  kj::String resolved;           // the text of its experiment.toml; empty if there is none
  bool bySteps = false;          // the style of its log tells steps, not epochs
  kj::Maybe<LogTable> logTable;  // once read, of a log that makes a table
  kj::Maybe<Published> published;
  kj::Array<Expectation> expectations;
  kj::Array<Verdict> verdicts;    // of a run that has finished, once judged
  kj::Vector<kj::String> unread;  // what of its folder is left out and why, a sentence each
};

// Reads what the run in `folder` left, but for its log. Throws as readRunRecord() does. What the
// folder's experiment.toml says of figures is `unread` if this program does not understand that
// file any more.
ReportedRun readReportedRun(kj::StringPtr folder, kj::StringPtr label);

// The same of a run whose record is at hand; it may not have come so far as to leave a folder.
// `resolved` is the text of its experiment; null means that of the folder. [expect] and [published]
// may have changed since the run, because a run does not depend on them.
ReportedRun reportedRun(
    RunRecord record, kj::String label, kj::Maybe<kj::String> resolved = nullptr);

// Reads the log of a run that is shown alone, of several no one shows it: its table, unless it has
// none yet. A log that cannot be read, or makes no table, is `unread`.
void readLog(ReportedRun& run);

// Gives the runs their settings, all the same keys, and their labels: `batch_size=128,momentum=0`
// where the settings tell them apart and are few, else what they were called before. The settings
// have the order of the first run's label, if that names them as the folder of a sweep's run does.
void tellApart(kj::ArrayPtr<ReportedRun> runs);

// `batch_size=128,momentum=0`.
kj::String settingsOf(const ReportedRun& run);

// Whether the label of each run is its settings.
bool areNamedBySettings(kj::ArrayPtr<const ReportedRun> runs);

// Judges each run that has finished by its own expectations. The runs are those of one sweep in its
// order: the first is the one that `within_of_first_run` means, unless there is only one.
void judgeAll(kj::ArrayPtr<ReportedRun> runs);

// The same for runs from anywhere, in any order. `within_of_first_run` means the first run of the
// sweep that began last in the folder around the run. It is not judged of a run that this sweep
// does not have. Throws if the order of a sweep cannot be read.
void judgeBySweeps(kj::ArrayPtr<ReportedRun> runs);

// What was missed, a sentence each: "expectation missed: validation_accuracy of epoch 10 is 0.7912,
// expected at least 0.82". Of several runs each says which.
kj::Array<kj::String> missedOf(kj::ArrayPtr<const ReportedRun> runs);

// A published figure beside ours.
struct Comparison {
  kj::StringPtr figure;    // "validation accuracy"
  kj::String at;           // "epoch 3", "step 1000", "the end"
  kj::Maybe<uint> epoch;   // of our figure
  uint64_t step = 0;       // update of the job at our figure; 0 where there is none
  kj::Maybe<double> ours;  // null where the run has none
  double published;
  uint decimals;  // that are of use
};

// All published figures of a run, in the order of the file. A figure of a step is compared with
// ours of the nearest step that was logged, if that is not a tenth of the way off; one of the end
// with our last, times and speeds of it with our mean over the warm epochs. A run that has not
// finished has no figures of the end.
kj::Array<Comparison> compare(const ReportedRun& run);

// Means over the warm epochs: those after the first, which warms up, without a last one that was
// cut short (`train.steps`, a run that ended early), which trained on fewer images than the one
// before, by more than a step. Where none is left, over all after the first; of a single epoch its
// own. Null without epochs.
kj::Maybe<double> meanEpoch_s(const RunRecord& record);
kj::Maybe<double> meanImages_per_s(const RunRecord& record);

// Where the time of a step goes, in the mean over the same epochs; null without steps.
kj::Maybe<VerbTimes> meanStep(const RunRecord& record);

}  // namespace runner
