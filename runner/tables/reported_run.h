// runner/tables/reported_run.h: everything that tables and reports show of one run, and the
// published figures beside it.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "nn/confusion.h"
#include "runner/experiment/expectations.h"
#include "runner/experiment/published.h"
#include "runner/logs/run_record.h"
#include "runner/tables/run_table.h"
#include "runner/tables/verdicts.h"

namespace runner {

// A run for tables and reports. reportedRun() and readReportedRun() fill in everything but the
// settings, the table, the confusion matrix, the names of the classes, and the verdicts: see
// tellApart(), readTable(), readConfusion() and judgeAll().
struct ReportedRun {
  RunRecord record;
  kj::String label;  // distinguishes the run from the others
  // The settings in which the runs differ. Empty before tellApart().
  struct Setting {
    kj::String key;
    kj::String value;
  };
  kj::Array<Setting> settings;
  kj::String resolved;  // the text of its experiment.toml; empty if there is none
  const LogStyle* logStyle = LOG_STYLES.begin();  // the first one if it is not known
  uint topK = 0;                                  // log.top_k. 0: not known, or not counted
  kj::Maybe<RunTable> table;  // null before readTable(), or if the run has no row
  // The confusion matrix of the last validation. Empty before readConfusion(), or if the run has
  // not finished or did not validate.
  kj::Array<nn::ConfusionCell> confusion;
  kj::Array<kj::String> classNames;  // of its classes, by label; empty if they are not known
  kj::Maybe<Published> published;
  kj::Array<Expectation> expectations;
  kj::Array<Verdict> verdicts;  // of a run that has finished; empty before it is judged
  // which parts of its folder are left out and why, one sentence each
  kj::Vector<kj::String> unread;
};

// Reads the events and the experiment.toml of the run in `folder`. Throws as readRunRecord() does.
// If this program no longer understands the experiment.toml, adds that to `unread`.
ReportedRun readReportedRun(kj::StringPtr folder, kj::StringPtr label);

// Does the same for a run whose record is in memory, and which may not have a folder yet.
// `resolved` is the text of its experiment; null means that of the folder. [expect] and [published]
// may have changed since the run, because a run does not depend on them.
ReportedRun reportedRun(
    RunRecord record, kj::String label, kj::Maybe<kj::String> resolved = nullptr);

// Reads the run's table from its events. Only a single run shows this table.
void readTable(ReportedRun& run);
// Reads the run's confusion.csv and classes.txt, if it has them. Only a single run shows the
// matrix. If a file cannot be read, adds that to `unread`.
void readConfusion(ReportedRun& run);

// Sets the settings of the runs, with the same keys for all, and their labels. A label is
// `batch_size=128,momentum=0` if the settings are few and distinguish the runs. Otherwise the label
// stays. If the first run's label names the settings like a sweep's folder, they get the order of
// that label.
void tellApart(kj::ArrayPtr<ReportedRun> runs);

// Returns the settings of a run: `batch_size=128,momentum=0`.
kj::String settingsOf(const ReportedRun& run);

// Whether the label of each run is its settings.
bool areNamedBySettings(kj::ArrayPtr<const ReportedRun> runs);

// Judges each run that has finished by its own expectations. The runs are those of one sweep, in
// its order. `within_of_first_run` refers to the first of them, unless there is only one.
void judgeAll(kj::ArrayPtr<ReportedRun> runs);

// Does the same for runs of any origin, in any order. `within_of_first_run` refers to the first run
// of the sweep that began last in the folder around the run. Runs that do not belong to this sweep
// are not judged by it. Throws if the order of a sweep cannot be read.
void judgeBySweeps(kj::ArrayPtr<ReportedRun> runs);

// Returns one sentence per missed expectation: "expectation missed: validation_accuracy of epoch 10
// is 0.7912, expected at least 0.82". If there are several runs, each sentence names its run.
kj::Array<kj::String> missedOf(kj::ArrayPtr<const ReportedRun> runs);

// A published figure beside ours.
struct Comparison {
  kj::StringPtr figure;    // "validation accuracy"
  kj::String at;           // "epoch 3", "step 1000", "the end"
  kj::Maybe<uint> epoch;   // the epoch of our figure
  uint64_t step = 0;       // the job's update at our figure; 0 if there is none
  kj::Maybe<double> ours;  // null if the run does not have the figure
  double published;
  uint decimals;  // how many to show
};

// Returns all published figures of a run, in the order of the file, each beside the run's own. A
// figure that was published for a step is compared with the nearest step that was logged, if the
// two differ by at most a tenth. An accuracy or loss at the end is compared with the run's last
// one. A time or speed at the end is compared with the mean over the run's warm epochs. A run that
// has not finished has no figures at the end.
kj::Array<Comparison> compare(const ReportedRun& run);

// Returns the mean time of an epoch, in seconds, and the mean speed. They are means over the warm
// epochs: all but the first, which warms up, and a last one that was cut short. An epoch was cut
// short (by `train.steps`, or because the run ended early) if it trained on fewer images than the
// one before, by more than a step. If no epoch is left, the means are over all epochs after the
// first. If there is only one epoch, the means are its figures. Null without epochs.
kj::Maybe<double> meanEpoch_s(const RunRecord& record);
kj::Maybe<double> meanImages_per_s(const RunRecord& record);

// Returns the time of a step by verbs, as means over the same epochs. Null without steps.
kj::Maybe<VerbTimes> meanStep(const RunRecord& record);
// Returns a sentence for users whose workers waited for records during at least a tenth of the time
// of these steps, and for at least ten seconds (means over workers). Otherwise null.
kj::Maybe<kj::String> readerHint(const RunRecord& record);
// Returns a sentence for users whose network has learned nothing in two epochs or more: its loss
// and its accuracy are no better than those of guessing among `classes` classes. Otherwise null.
kj::Maybe<kj::String> lossHint(const RunRecord& record, uint classes);

}  // namespace runner
