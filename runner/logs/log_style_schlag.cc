// runner/logs/log_style_schlag.cc: the lines of I. Schlag's distributed TensorFlow example.
#include <kj/map.h>
#include <kj/vector.h>

#include "runner/logs/log_writers.h"
#include "runner/text/numbers.h"

namespace runner {
namespace {

// The example always divides by 100, also if fewer batches end an epoch, and then prints too small
// a time. This is the mean over the real number of batches.
double batchTime_ms(Event::Speed::Reader speed) {
  return speed.getIntervalS() * 1e3 / kj::max(1u, speed.getBatches());
}

constexpr uint TIME_DECIMALS = 2, COST_DECIMALS = 4, ACCURACY_DECIMALS = 2;

class SchlagWriter final: public LineWriter {
public:
  kj::Array<kj::String> lines(Event::Reader event) override {
    kj::Vector<kj::String> result;
    uint rank = event.getIndex();
    switch (event.which()) {
      case Event::SPEED:
        result.add(stepLine(event.getSpeed()));
        break;
      case Event::ENDED:
        workerOf(rank) = {event.getEnded().getTrainingS(), event.getEnded().getBatchLoss()};
        if (!event.getEnded().getValidates()) addEnd(event, result);
        break;
      case Event::VALIDATED: {
        auto validated = event.getValidated();
        if (!validated.getLast()) break;
        result.add(
            kj::str("Test-Accuracy: ", fixedPoint(validated.getAccuracy(), ACCURACY_DECIMALS)));
        addEnd(event, result);
        break;
      }
      default:
        break;
    }
    return result.releaseAsArray();
  }

private:
  struct Worker {
    // A difference between moments would include the pause before a resumed run. A worker that
    // joined later has not reported when it began.
    double training_s = 0;
    double finalCost = 0;  // of its last batch
  };

  Worker& workerOf(uint rank) {
    return workers.findOrCreate(rank, [&]() { return kj::HashMap<uint, Worker>::Entry{rank, {}}; });
  }

  // Adds the last lines of the worker that `event` belongs to.
  void addEnd(Event::Reader event, kj::Vector<kj::String>& lines) {
    auto& worker = workerOf(event.getIndex());
    lines.add(kj::str("Total Time: ", fixedPoint(worker.training_s, 2), "s"));
    lines.add(kj::str("Final Cost: ", fixedPoint(worker.finalCost, COST_DECIMALS)));
    lines.add(kj::str("done"));
  }

  static kj::String stepLine(Event::Speed::Reader speed) {
    return kj::str("Step: ", speed.getGlobalStep(),
        ",  Epoch: ", alignedRight(kj::str(speed.getEpoch()), 2),
        ",  Batch: ", alignedRight(kj::str(speed.getBatch()), 3), " of ",
        alignedRight(kj::str(speed.getEpochBatches()), 3),
        ",  Cost: ", fixedPoint(speed.getBatchLoss(), COST_DECIMALS),
        ",  AvgTime: ", fixedPoint(batchTime_ms(speed), TIME_DECIMALS), "ms");
  }

  kj::HashMap<uint, Worker> workers;
};

class SchlagRows final: public RowWriter {
public:
  void write(Event::Reader event, kj::Vector<StepRow>& rows) override {
    if (event.isSpeed()) {
      auto speed = event.getSpeed();
      rows.add(StepRow{.step = speed.getStep(),
          .globalStep = speed.getGlobalStep(),
          .loss = roundedTo(speed.getBatchLoss(), COST_DECIMALS),
          .batch_s = roundedTo(batchTime_ms(speed), TIME_DECIMALS) / 1e3});
    } else if (event.isEnded()) {
      double cost = roundedTo(event.getEnded().getBatchLoss(), COST_DECIMALS);
      costs.upsert(event.getIndex(), cost, [](double& old, double&& now) { old = now; });
      if (!event.getEnded().getValidates()) rows.add(StepRow{.loss = cost, .end = true});
    } else if (event.isValidated() && event.getValidated().getLast()) {
      rows.add(StepRow{.loss = costs.find(event.getIndex()).map([](double& cost) { return cost; }),
          .accuracy = roundedTo(event.getValidated().getAccuracy(), ACCURACY_DECIMALS),
          .end = true});
    }
  }

private:
  kj::HashMap<uint, double> costs;  // of each worker's last batch
};

}  // namespace

kj::Own<LineWriter> newSchlagWriter() {
  return kj::heap<SchlagWriter>();
}

kj::Own<RowWriter> newSchlagRows() {
  return kj::heap<SchlagRows>();
}

}  // namespace runner
