// rpc/modes/easgd_mode.h: the mode easgd.
#pragma once

#include "rpc/modes/mode.h"

namespace rpc {

// Each worker trains its own values. After every `period_steps` steps, these and the servers'
// values, the centre, move towards each other (Zhang, Choromanska and LeCun 2015, arXiv 1412.6651,
// algorithm 1).
kj::Own<const Mode> readEasgdMode(const ModeRow& row, configs::Reader& reader);

// The updates that shards make in easgd. A push is the difference between the values `seen` that
// the worker was answered last and its values x: sum = seen - x. With the centre c:
//   c ← c + movingRate · (x - c)
// Immutable; any thread.
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
