// rpc/modes/easgd_mode.h: easgd.
#pragma once

#include "rpc/modes/mode.h"

namespace rpc {

// Every worker trains values of its own. After each `period_steps` steps an elastic force draws
// them and the servers' values, the centre, together (Zhang, Choromanska and LeCun 2015,
// arXiv 1412.6651, algorithm 1).
kj::Own<const Mode> readEasgdMode(const ModeRow& row, configs::Reader& reader);

// What shards do with a push of easgd. The push says how far the worker's values x lie from the
// values `seen` that it was answered last: sum = seen - x. With c the centre:
//   c ← c + movingRate · (x - c)
// For any thread; immutable.
class CentreUpdater final: public Updater {
public:
  explicit CentreUpdater(float movingRate): movingRate(movingRate) {}

  uint stateArrays(const Slice&) const override { return 0; }
  void update(const Slice& slice, const Round& round, kj::ArrayPtr<const float> current,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) override;

private:
  const float movingRate;
};

}  // namespace rpc
