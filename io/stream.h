// io/stream.h: which record comes when: the one order for everybody.
#pragma once

#include <kj/array.h>
#include <kj/common.h>

#include <cstdint>

namespace io {

using kj::uint;

// The training order of one worker. Pass e over the N records is the permutation given by (seed,
// e); the passes one after another are one stream; step t takes the next W·b of it, worker r the
// r-th b of these.
class Stream {
public:
  // 0 < records < 2^32, rank < workers.
  Stream(uint64_t records, uint64_t seed, uint workers, uint rank, uint batchSize);

  // A record and the pass it is read in: what its augmentation is drawn from.
  struct Place {
    uint64_t record;
    uint64_t pass;

    bool operator==(const Place&) const = default;
  };
  // Records of this worker's batch of step `step` (from 0), in order; `out` has batchSize places.
  // Keeps the permutations of the last two passes; not thread-safe.
  void places(uint64_t step, kj::ArrayPtr<Place> out);

  // Steps in all before and in epoch `epoch` (from 1): floor(epoch · N / (W · b)).
  static uint64_t stepsUntilEndOf(uint64_t epoch, uint64_t records, uint workers, uint batchSize);

private:
  // The records of a pass in their order, by Fisher and Yates.
  kj::ArrayPtr<const uint32_t> permutation(uint64_t pass);

  struct Permutation {
    uint64_t pass = 0;
    kj::Array<uint32_t> records;  // empty: none was made here yet
  };

  uint64_t records;
  uint64_t seed;
  uint workers;
  uint rank;
  uint batchSize;
  Permutation permutations[2];  // that of pass e at e mod 2
};

}  // namespace io
