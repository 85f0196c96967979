#include "runner/tables/run_tables.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include <algorithm>

#include "runner/text/numbers.h"

namespace runner {

namespace {

using Runs = kj::ArrayPtr<const ReportedRun>;

kj::String machineOf(const RunRecord& record) {
  auto memory =
      record.machine.memory_bytes == 0 ? kj::str() : bytesCell(record.machine.memory_bytes);
  return kj::str(record.machine.cpu, '\0', record.machine.cores, '\0', memory, '\0',
      record.instructionSet, '\0', record.version);
}

// Returns the cells of a row. If there are several runs, the run's label comes first.
kj::Array<kj::String> labelled(Runs runs, kj::StringPtr label, kj::Array<kj::String> cells) {
  if (runs.size() == 1) return cells;
  kj::Vector<kj::String> row;
  row.add(kj::str(label));
  for (auto& each: cells) row.add(kj::mv(each));
  return row.releaseAsArray();
}

template <typename... Cells>
kj::Array<kj::String> cells(Cells&&... texts) {
  return kj::arr(kj::str(kj::fwd<Cells>(texts))...);
}

// Returns a rate, or an empty text for null.
kj::String rateCell(kj::Maybe<double> images_per_s) {
  KJ_IF_MAYBE(rate, images_per_s) return rateText(*rate);
  return nullptr;
}

// Returns `row` with one more cell per number of `topKs` before cell number `at`.
template <typename Cell>
kj::Array<kj::String> withTopK(
    kj::Array<kj::String> row, size_t at, kj::ArrayPtr<const uint> topKs, Cell&& cell) {
  kj::Vector<kj::String> all;
  for (auto& each: row.slice(0, at)) all.add(kj::mv(each));
  for (uint k: topKs) all.add(cell(k));
  for (auto& each: row.slice(at, row.size())) all.add(kj::mv(each));
  return all.releaseAsArray();
}

TextTable tableOf(kj::Array<kj::String> header, kj::Vector<kj::Array<kj::String>> rows) {
  return {kj::mv(header), rows.releaseAsArray(), nullptr};
}

}  // namespace

kj::StringPtr stateWord(RunRecord::State state) {
  switch (state) {
    case RunRecord::FINISHED:
      return "finished"_kj;
    case RunRecord::FAILED:
      return "failed"_kj;
    case RunRecord::INTERRUPTED:
      return "interrupted"_kj;
    case RunRecord::STOPPED:
      return "stopped"_kj;
    case RunRecord::RUNNING:
      return "running"_kj;
    case RunRecord::UNFINISHED:
      return "unfinished"_kj;
  }
  KJ_UNREACHABLE;
}

kj::Array<kj::StringPtr> sourcesOf(Runs runs) {
  kj::Vector<kj::StringPtr> sources;
  for (auto& run: runs) {
    KJ_IF_MAYBE(published, run.published) {
      bool known = published->rows.size() == 0;
      for (auto source: sources) known = known || source == published->source;
      if (!known) sources.add(published->source);
    }
  }
  return sources.releaseAsArray();
}

kj::Array<uint> topKsOf(Runs runs) {
  kj::Vector<uint> all;
  for (auto& run: runs) {
    bool isKnown = run.topK == 0;
    for (uint k: all) isKnown = isKnown || k == run.topK;
    if (!isKnown) all.add(run.topK);
  }
  std::sort(all.begin(), all.end());
  return all.releaseAsArray();
}

kj::Maybe<double> finalAccuracy(const RunRecord& record) {
  if (record.epochRecords.size() == 0) return nullptr;
  return record.epochRecords.back().validationAccuracy;
}

kj::String viewsNote(const RunRecord& record) {
  if (record.epochRecords.size() == 0) return nullptr;
  uint last = record.epochRecords.back().validationViews;
  for (auto& epoch: record.epochRecords) {
    uint views = epoch.validationViews;
    if (views == 0 || last == 0 || views == last) continue;
    return kj::str(
        "The last validation uses ", last, " views of each image, earlier ones use ", views, ".");
  }
  return nullptr;
}

kj::Array<kj::String> resizeNotes(const RunRecord& record) {
  return KJ_MAP(resize, record.resizes) {
    return kj::str("From epoch ", resize.epoch + 1, " on, the run had ", numbersText(resize),
        ". The epochs before are those of run ", resize.goesOnFrom, factsText(resize), ".");
  };
}

Met metOf(const ReportedRun& run) {
  Met result;
  for (auto& verdict: run.verdicts) {
    result.all++;
    if (verdict.met) result.met++;
  }
  return result;
}

TextTable resultsTable(Runs runs, uint decimals) {
  // Two runs may have the same settings. Then labels are needed.
  if (areNamedBySettings(runs)) return resultsTable(runs, decimals, nullptr);
  auto labels = KJ_MAP(run, runs)->kj::StringPtr {
    return run.label;
  };
  return resultsTable(runs, decimals, labels);
}

TextTable resultsTable(Runs runs, uint decimals, kj::ArrayPtr<const kj::StringPtr> names) {
  // The columns of a sweep must not depend on how its runs ended.
  bool judged = false;
  for (auto& run: runs) judged = judged || run.expectations.size() > 0 || run.verdicts.size() > 0;
  auto topKs = topKsOf(runs);
  constexpr size_t TOP_K_AT = 3;  // after valid-accuracy
  auto row = [&](kj::StringPtr name, auto&& setting, kj::Array<kj::String> figures,
                 kj::StringPtr expected) {
    kj::Vector<kj::String> all;
    if (names.size() > 0) all.add(kj::str(name));
    for (size_t i: kj::indices(runs[0].settings)) all.add(kj::str(setting(i)));
    for (auto& figure: figures) all.add(kj::mv(figure));
    if (judged) all.add(kj::str(expected));
    return all.releaseAsArray();
  };
  auto header = row(
      "run", [&](size_t i) -> kj::StringPtr { return runs[0].settings[i].key; },
      withTopK(cells("epochs done", "train-accuracy", "valid-accuracy", "train-loss", "valid-loss",
                   "s/epoch", "images/s", "state"),
          TOP_K_AT, topKs, topKTitle),
      "expected");
  kj::Vector<kj::Array<kj::String>> rows;
  for (size_t r: kj::indices(runs)) {
    auto& run = runs[r];
    auto& record = run.record;
    kj::String trainAccuracy, validationAccuracy, trainLoss, validationLoss;
    if (record.epochRecords.size() > 0) {
      auto& last = record.epochRecords.back();
      trainAccuracy = figureText(last.trainAccuracy, decimals);
      trainLoss = figureText(last.trainLoss, decimals);
      validationAccuracy = figureCell(last.validationAccuracy, decimals);
      validationLoss = figureCell(last.validationLoss, decimals);
    }
    auto topKCell = [&](uint k) {
      if (record.epochRecords.size() == 0) return kj::String();
      return figureCell(record.epochRecords.back().topKAccuracy(k), decimals);
    };
    auto met = metOf(run);
    rows.add(row(
        names.size() > 0 ? names[r] : nullptr,
        [&](size_t i) -> kj::StringPtr { return run.settings[i].value; },
        withTopK(cells(record.epochRecords.size(), trainAccuracy, validationAccuracy, trainLoss,
                     validationLoss, figureCell(meanEpoch_s(record), 1),
                     rateCell(meanImages_per_s(record)), stateWord(record.state)),
            TOP_K_AT, topKs, topKCell),
        met.all == 0 ? kj::str() : kj::str(met.met, " of ", met.all)));
  }
  return tableOf(kj::mv(header), kj::mv(rows));
}

TextTable epochsTable(const ReportedRun& run) {
  kj::Vector<kj::Array<kj::String>> rows;
  auto topKs = topKsOf(kj::arrayPtr(&run, 1));
  constexpr size_t TOP_K_AT = 3;  // after valid-accuracy
  auto header = withTopK(cells("epoch", "train-accuracy", "valid-accuracy", "train-loss",
                             "valid-loss", "time s", "images/s", "learning rate"),
      TOP_K_AT, topKs, topKTitle);
  for (auto& epoch: run.record.epochRecords) {
    rows.add(withTopK(cells(epoch.epoch, figureText(epoch.trainAccuracy, 4),
                          figureCell(epoch.validationAccuracy, 4), figureText(epoch.trainLoss, 4),
                          figureCell(epoch.validationLoss, 4), figureText(epoch.epoch_s, 1),
                          rateText(epoch.images_per_s), kj::str(float(epoch.learningRate))),
        TOP_K_AT, topKs, [&](uint k) { return figureCell(epoch.topKAccuracy(k), 4); }));
  }
  return tableOf(kj::mv(header), kj::mv(rows));
}

TextTable validationsTable(const ReportedRun& run) {
  kj::Vector<kj::Array<kj::String>> rows;
  auto topKs = topKsOf(kj::arrayPtr(&run, 1));
  auto header = cells("epoch", "global step", "validation loss", "validation accuracy");
  size_t end = header.size();
  header =
      withTopK(kj::mv(header), end, topKs, [](uint k) { return kj::str("top-", k, " accuracy"); });
  for (auto& epoch: run.record.epochRecords) {
    if (epoch.validationAccuracy == nullptr) continue;
    rows.add(withTopK(cells(epoch.epoch, epoch.globalStep, figureCell(epoch.validationLoss, 4),
                          figureCell(epoch.validationAccuracy, 4)),
        end, topKs, [&](uint k) { return figureCell(epoch.topKAccuracy(k), 4); }));
  }
  return tableOf(kj::mv(header), kj::mv(rows));
}

TextTable publishedTable(Runs runs) {
  kj::Vector<kj::Array<kj::String>> rows;
  auto header = labelled(runs, "run", cells("at", "figure", "ours", "published", "difference"));
  for (auto& run: runs) {
    for (auto& each: compare(run)) {
      kj::String difference;
      KJ_IF_MAYBE(ours, each.ours) {
        double by = *ours - each.published;
        difference = kj::str(by < 0 ? "" : "+", figureText(by, each.decimals));
      }
      rows.add(labelled(runs, run.label,
          cells(each.at, each.figure, figureCell(each.ours, each.decimals),
              figureText(each.published, each.decimals), difference)));
    }
  }
  return tableOf(kj::mv(header), kj::mv(rows));
}

TextTable stepTimesTable(Runs runs) {
  kj::Vector<kj::Array<kj::String>> rows;
  auto header = labelled(runs, "run",
      cells("read", "forward", "backward", "push", "pull", "ms per step", "% read", "pushed",
          "pulled", "per step and worker"));
  for (auto& run: runs) {
    auto& record = run.record;
    KJ_IF_MAYBE(mean, meanStep(record)) {
      auto ms = [](double seconds) { return figureText(seconds * 1e3, 2); };
      double sum_s = mean->all_s();
      // Not every worker has made all steps of the run: workers may be replaced, join or leave.
      double pushed_bytes = 0, pulled_bytes = 0, steps = 0;
      for (auto& link: record.links) {
        pushed_bytes += link.pushed_bytes;
        pulled_bytes += link.pulled_bytes;
      }
      for (auto& wait: record.waits) steps += wait.steps;
      rows.add(labelled(runs, run.label,
          cells(ms(mean->read_s), ms(mean->forward_s), ms(mean->backward_s), ms(mean->push_s),
              ms(mean->pull_s), ms(sum_s), figureText(100 * mean->read_s / sum_s, 0),
              bytesCell(pushed_bytes), bytesCell(pulled_bytes),
              bytesCell((pushed_bytes + pulled_bytes) / kj::max(1.0, steps)))));
    }
  }
  return tableOf(kj::mv(header), kj::mv(rows));
}

TextTable machineTable(Runs runs) {
  bool same = true;
  for (auto& run: runs) same = same && machineOf(run.record) == machineOf(runs[0].record);
  auto shown = same ? runs.slice(0, kj::min(size_t(1), runs.size())) : runs;
  kj::Vector<kj::Array<kj::String>> rows;
  auto header =
      labelled(shown, "run", cells("CPU", "cores", "memory", "instruction set", "program"));
  for (auto& run: shown) {
    auto& record = run.record;
    auto& machine = record.machine;
    rows.add(labelled(shown, run.label,
        cells(machine.cpu, machine.cores,
            machine.memory_bytes == 0 ? kj::str() : bytesCell(machine.memory_bytes),
            record.instructionSet, record.version)));
  }
  return tableOf(kj::mv(header), kj::mv(rows));
}

TextTable weightsTable(Runs runs) {
  kj::Vector<kj::Array<kj::String>> rows;
  auto header = labelled(runs, "run", cells("weights sha256", "experiment sha256"));
  for (auto& run: runs) {
    rows.add(labelled(runs, run.label, cells(run.record.weightsSha256, run.record.digest)));
  }
  return tableOf(kj::mv(header), kj::mv(rows));
}

}  // namespace runner
