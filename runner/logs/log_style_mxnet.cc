// runner/logs/log_style_mxnet.cc: MXNet's lines. The prefix names the worker.
#include <kj/vector.h>

#include "runner/logs/log_lines.h"
#include "runner/logs/log_writers.h"

namespace runner {
namespace {

class MxnetWriter final: public LineWriter {
public:
  kj::Array<kj::String> lines(Event::Reader event) override {
    auto time = momentOf(event.getTimeS());
    auto prefix = logPrefix(time, event.getIndex());
    kj::Vector<kj::String> result;
    auto add = [&](kj::String line) { result.add(kj::str(prefix, line)); };
    switch (event.which()) {
      case Event::BEGUN:
        add(startLine(event.getBegun().getDeviceNames()));
        break;
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
        uint epoch = validated.getEpoch() - 1;
        add(validationLine(epoch, "accuracy", validated.getAccuracy()));
        if (validated.hasTopK()) {
          // The name of MXNet's metric TopKAccuracy.
          auto metric = kj::str("top_k_accuracy_", validated.getTopK().getK());
          add(validationLine(epoch, metric, validated.getTopK().getAccuracy()));
        }
        break;
      }
      default:
        break;
    }
    return result.releaseAsArray();
  }

private:
  // `Start training with [cpu(0), gpu(1)]`
  static kj::String startLine(capnp::List<capnp::Text>::Reader devices) {
    auto names = KJ_MAP(device, devices) {
      kj::StringPtr word = device;
      auto colon = word.findFirst(':');
      auto number = colon.map([&](size_t at) { return word.slice(at + 1); }).orDefault("0");
      return kj::str(word.startsWith("cuda") ? "gpu(" : "cpu(", number, ')');
    };
    return kj::str("Start training with [", kj::strArray(names, ", "), ']');
  }
};

}  // namespace

kj::Own<LineWriter> newMxnetWriter() {
  return kj::heap<MxnetWriter>();
}

}  // namespace runner
