// runner/logs/log_style_tf_replica.cc: the lines of TensorFlow's mnist_replica.py (r1.3).
#include <kj/vector.h>

#include "runner/logs/log_writers.h"
#include "runner/text/numbers.h"

namespace runner {
namespace {

// Returns a moment as these lines write it: seconds since 1970.
kj::String moment(Event::Reader event) {
  return fixedPoint(event.getTimeS(), 6);
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
        // The example logs the placement when the chief makes its session. One stream of lines
        // needs it once.
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
        // which in dist_async may be a few more. The cross entropy is the sum over all records.
        result.add(kj::str("After ", validated.getGlobalStep(),
            " training step(s), validation cross entropy = ",
            sixDigits(validated.getLoss() * validated.getImages())));
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

}  // namespace

kj::String placementLine(Event::Placed::Reader placed) {
  return kj::str(
      placed.getKey(), ": (VariableV2): /job:ps/replica:0/task:", placed.getServer(), "/cpu:0");
}

kj::Own<LineWriter> newTfReplicaWriter() {
  return kj::heap<TfReplicaWriter>();
}

}  // namespace runner
