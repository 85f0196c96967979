// runner/logs/log_style_tf_replica.cc: the lines of TensorFlow's mnist_replica.py (r1.3).
#include <kj/map.h>
#include <kj/vector.h>

#include "configs/language/printable.h"
#include "runner/logs/log_writers.h"
#include "runner/text/numbers.h"

namespace runner {
namespace {

constexpr uint MOMENT_DECIMALS = 6;

// Returns a moment as these lines write it: seconds since 1970.
kj::String moment(Event::Reader event) {
  return fixedPoint(event.getTimeS(), MOMENT_DECIMALS);
}

// Returns the cross entropy as the sum over all records.
double crossEntropy(Event::Validated::Reader validated) {
  return validated.getLoss() * validated.getImages();
}

class TfReplicaWriter final: public LineWriter {
public:
  kj::Array<kj::String> lines(Event::Reader event) override {
    kj::Vector<kj::String> result;
    uint rank = event.getIndex();
    bool chief = rank == 0;
    switch (event.which()) {
      case Event::PLACED:
        placements.add(placementLine(event.getPlaced()));
        break;
      case Event::JOINED: {
        bool worker = event.getRole() == Role::WORKER;
        result.add(kj::str("job name = ", worker ? "worker" : "ps"));
        result.add(kj::str("task index = ", rank));
        if (!worker) break;
        result.add(kj::str("Worker ", rank,
            chief ? ": Initializing session..." : ": Waiting for session to be initialized..."));
        break;
      }
      case Event::BEGUN:
        // The example logs the placement when the chief makes its session. A single stream of lines
        // needs it only once.
        if (chief) result = kj::mv(placements);
        result.add(kj::str("Worker ", rank, ": Session initialization complete."));
        result.add(kj::str("Training begins @ ", moment(event)));
        break;
      case Event::SPEED: {
        auto speed = event.getSpeed();
        result.add(kj::str(moment(event), ": Worker ", rank, ": training step ", speed.getStep(),
            " done (global step: ", speed.getGlobalStep(), ")"));
        break;
      }
      case Event::ENDED:
        result.add(kj::str("Training ends @ ", moment(event)));
        result.add(kj::str(
            "Training elapsed time: ", fixedPoint(event.getEnded().getTrainingS(), 6), " s"));
        break;
      case Event::VALIDATED: {
        auto validated = event.getValidated();
        if (!validated.getLast()) break;
        // The example prints the number of steps that it was asked for. These are the updates made,
        // which in dist_async may be a few more.
        result.add(kj::str("After ", validated.getGlobalStep(),
            " training step(s), validation cross entropy = ", sixDigits(crossEntropy(validated))));
        break;
      }
      default:
        break;
    }
    return result.releaseAsArray();
  }

private:
  kj::Vector<kj::String> placements;  // until they are written
};

// The lines do not say how long a batch takes. Here, it is the time since the previous line of the
// same worker.
class TfReplicaRows final: public RowWriter {
public:
  void write(Event::Reader event, kj::Vector<StepRow>& rows) override {
    if (event.isSpeed()) {
      auto speed = event.getSpeed();
      rows.add(StepRow{.step = speed.getStep(),
          .globalStep = speed.getGlobalStep(),
          .batch_s = sinceLast(
              event.getIndex(), speed.getStep(), roundedTo(event.getTimeS(), MOMENT_DECIMALS))});
    } else if (event.isValidated() && event.getValidated().getLast()) {
      auto validated = event.getValidated();
      rows.add(StepRow{
          .globalStep = validated.getGlobalStep(), .loss = crossEntropy(validated), .end = true});
    }
  }

private:
  struct Last {
    uint step;
    double moment_s;
  };

  kj::Maybe<double> sinceLast(uint rank, uint step, double moment_s) {
    kj::Maybe<double> result;
    KJ_IF_MAYBE(last, lasts.find(rank)) {
      if (step > last->step) result = (moment_s - last->moment_s) / (step - last->step);
    }
    lasts.upsert(rank, Last{step, moment_s}, [](Last& old, Last&& now) { old = now; });
    return result;
  }

  kj::HashMap<uint, Last> lasts;  // of each worker
};

}  // namespace

kj::String placementLine(Event::Placed::Reader placed) {
  return kj::str(configs::printable(placed.getKey()),
      ": (VariableV2): /job:ps/replica:0/task:", placed.getServer(), "/cpu:0");
}

kj::Own<LineWriter> newTfReplicaWriter() {
  return kj::heap<TfReplicaWriter>();
}

kj::Own<RowWriter> newTfReplicaRows() {
  return kj::heap<TfReplicaRows>();
}

}  // namespace runner
