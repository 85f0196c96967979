#include "runner/log_styles.h"

#include <kj/vector.h>

#include "runner/log_lines.h"

namespace runner {
namespace {

// MXNet's from December 2015 to 0.9.3, with the prefix that says who speaks.
class MxnetWriter final: public LineWriter {
public:
  kj::Array<kj::String> lines(Event::Reader event) override {
    auto time = kj::UNIX_EPOCH + int64_t(event.getTimeS() * 1e6) * kj::MICROSECONDS;
    auto prefix = logPrefix(time, event.getIndex());
    kj::Vector<kj::String> result;
    auto add = [&](kj::String line) { result.add(kj::str(prefix, line)); };
    switch (event.which()) {
      case Event::SPEED: {
        auto speed = event.getSpeed();
        if (speed.getPartial()) break;
        add(speedLine(speed.getEpoch() - 1, speed.getBatch(), speed.getImagesPerS(), "accuracy",
            speed.getAccuracy()));
        break;
      }
      case Event::TRAINED: {
        auto trained = event.getTrained();
        uint epoch = trained.getEpoch() - 1;
        add(trainLine(epoch, "accuracy", trained.getAccuracy()));
        add(timeLine(epoch, trained.getTimeS()));
        break;
      }
      case Event::VALIDATED: {
        auto validated = event.getValidated();
        add(validationLine(validated.getEpoch() - 1, "accuracy", validated.getAccuracy()));
        break;
      }
      default:
        break;
    }
    return result.releaseAsArray();
  }
};

template <typename Writer>
kj::Own<LineWriter> make() {
  return kj::heap<Writer>();
}

constexpr LogStyle ROWS[] = {
    {"mxnet",
        "`2016-01-22 14:22:03,897 Node[0] Epoch[4] Train-accuracy=0.449129` and its sisters: MXNet "
        "of 2016.",
        50, LogStyle::IN_EPOCH, make<MxnetWriter>},
};

}  // namespace

constinit const kj::ArrayPtr<const LogStyle> LOG_STYLES = ROWS;

}  // namespace runner
