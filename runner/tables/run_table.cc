#include "runner/tables/run_table.h"

#include <kj/map.h>

#include "runner/logs/events.h"
#include "runner/text/numbers.h"

namespace runner {
namespace {

// A figure of all workers, as their mean.
class Mean {
public:
  void add(double value) {
    sum += value;
    count++;
  }
  kj::Maybe<double> get() const {
    if (count == 0) return nullptr;
    return sum / count;
  }

private:
  double sum = 0;
  uint count = 0;
};

struct Epoch {
  Mean train;
  Mean validation;
  Mean topK;
  Mean time_s;
};

ResultTable readEpochs(const RunFolder& folder, uint topK) {
  kj::TreeMap<uint, Epoch> epochs;
  auto at = [&](uint epoch) -> Epoch& {
    return epochs.findOrCreate(epoch, [&]() { return kj::TreeMap<uint, Epoch>::Entry{epoch, {}}; });
  };
  eachEvent(folder, [&](Event::Reader event) {
    if (event.isTrained()) {
      auto trained = event.getTrained();
      auto& epoch = at(trained.getEpoch());
      epoch.train.add(roundedTo(trained.getAccuracy(), 6));
      epoch.time_s.add(roundedTo(trained.getTimeS(), 3));
    } else if (event.isValidated()) {
      auto validated = event.getValidated();
      auto& epoch = at(validated.getEpoch());
      epoch.validation.add(roundedTo(validated.getAccuracy(), 6));
      if (validated.hasTopK() && validated.getTopK().getK() == topK) {
        epoch.topK.add(roundedTo(validated.getTopK().getAccuracy(), 6));
      }
    }
  });
  kj::Vector<ResultRow> rows;
  for (auto& entry: epochs) {
    auto& epoch = entry.value;
    auto figures = kj::arr(MetricFigures{epoch.train.get(), epoch.validation.get()});
    rows.add(ResultRow{entry.key, kj::mv(figures), epoch.time_s.get(), epoch.topK.get()});
  }
  return {.rows = rows.releaseAsArray(), .topK = topK};
}

}  // namespace

RunTable readRunTable(const RunFolder& folder, const LogStyle& style, uint topK) {
  if (!style.isBySteps()) return readEpochs(folder, topK);
  auto writer = style.rowWriter();
  kj::Vector<StepRow> rows;
  eachEvent(folder, [&](Event::Reader event) { writer->write(event, rows); });
  return StepTable{rows.releaseAsArray()};
}

}  // namespace runner
