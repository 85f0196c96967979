// runner/logs/log_style_tf_aws.cc: the lines of a TensorFlow trainer between GPU servers.
#include <kj/vector.h>

#include "runner/logs/log_writers.h"
#include "runner/text/numbers.h"

namespace runner {
namespace {

// The trainer's own rule: the time since the start over the updates of the whole job. In dist_async
// it therefore shrinks with the number of workers.
double batchTime_s(Event::Speed::Reader speed) {
  return speed.getTrainingS() / kj::max(1u, speed.getGlobalStep());
}

constexpr uint TIME_DECIMALS = 3;

class TfAwsWriter final: public LineWriter {
public:
  kj::Array<kj::String> lines(Event::Reader event) override {
    kj::Vector<kj::String> result;
    switch (event.which()) {
      case Event::PLACED:
        placements.add(placementLine(event.getPlaced()));
        break;
      case Event::BEGUN:
        if (event.getIndex() == 0) result = kj::mv(placements);
        result.add(kj::str("session started"));
        break;
      case Event::SPEED: {
        auto speed = event.getSpeed();
        result.add(kj::str("After ", speed.getStep(), " training steps (", speed.getGlobalStep(),
            " global steps), loss on training batch is ", sixDigits(speed.getBatchLoss()),
            ", accuracy is ", sixDigits(speed.getBatchAccuracy()), ". (",
            fixedPoint(batchTime_s(speed), TIME_DECIMALS), " sec/batch)"));
        break;
      }
      case Event::ENDED: {
        auto ended = event.getEnded();
        result.add(
            kj::str("total step: ", ended.getStep(), ", global_step: ", ended.getGlobalStep()));
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

class TfAwsRows final: public RowWriter {
public:
  void write(Event::Reader event, kj::Vector<StepRow>& rows) override {
    if (event.isSpeed()) {
      auto speed = event.getSpeed();
      rows.add(StepRow{.step = speed.getStep(),
          .globalStep = speed.getGlobalStep(),
          .loss = speed.getBatchLoss(),
          .accuracy = speed.getBatchAccuracy(),
          .batch_s = roundedTo(batchTime_s(speed), TIME_DECIMALS)});
    } else if (event.isEnded()) {
      auto ended = event.getEnded();
      rows.add(StepRow{.step = ended.getStep(), .globalStep = ended.getGlobalStep(), .end = true});
    }
  }
};

}  // namespace

kj::Own<LineWriter> newTfAwsWriter() {
  return kj::heap<TfAwsWriter>();
}

kj::Own<RowWriter> newTfAwsRows() {
  return kj::heap<TfAwsRows>();
}

}  // namespace runner
