#include "io/batches/reader_balance.h"

namespace io {

bool ReaderBalance::needsMore(uint64_t waited_ns, uint64_t now_ns) {
  if (isSettled || threads >= threadsMax) return false;
  if (begin_ns == 0) {
    // The time before the first batch does not belong to a step.
    begin_ns = now_ns;
    return false;
  }
  this->waited_ns += waited_ns;
  ++batches;
  if (now_ns - begin_ns < SPAN_NS || batches < BATCHES_MIN) return false;
  double share = double(this->waited_ns) / (now_ns - begin_ns);
  double perBatch_ns = double(this->waited_ns) / batches;
  begin_ns = now_ns;
  this->waited_ns = batches = 0;
  if (share < SHARE_MIN) return false;
  if (waitedBefore_ns >= 0 && perBatch_ns > HELPS_BELOW * waitedBefore_ns) {
    isSettled = true;
    return false;
  }
  waitedBefore_ns = perBatch_ns;
  ++threads;
  return true;
}

}  // namespace io
