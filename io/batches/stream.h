// io/batches/stream.h: which record comes when: the one order for everybody.
#pragma once

#include <kj/array.h>
#include <kj/common.h>

#include <cstdint>

#include "io/data_config.h"

namespace io {

using kj::uint;

// The training order of one worker, over the N records that are not held out. How they are ordered
// and dealt is said by [data]:
//
//   part = "split"  pass e is the permutation given by (seed, e); the passes one after another are
//                   one stream; step t takes the next W·b of it, worker r the r-th b of these
//   part = "whole"  worker r has a stream of its own: pass e is the permutation given by (seed, e,
//                   r), and step t takes the next b
//   part = "same"   the same, but every worker has worker 0's stream: that of "split" with W = 1
//   order = "stored"  every permutation is the identity
class Stream {
public:
  // `records` are those of the database, of which config.heldOut < records are left out; records <
  // 2^32, rank < workers.
  Stream(const DataConfig& config, uint64_t records, uint64_t seed, uint workers, uint rank);

  // A record and the pass it is read in: what its augmentation is drawn from.
  struct Place {
    uint64_t record;
    uint64_t pass;

    bool operator==(const Place&) const = default;
  };
  // Records of this worker's batch of step `step` (from 0), in order; `out` has batchSize places.
  // Keeps the permutations of the last two passes; not thread-safe.
  void places(uint64_t step, kj::ArrayPtr<Place> out);

  // Steps of a worker in all before and in epoch `epoch` (from 1), for N = `trained` records:
  // floor(epoch · N / (W · b)), or floor(epoch · N / b) where every worker reads all records.
  static uint64_t stepsUntilEndOf(
      uint64_t epoch, const DataConfig& config, uint64_t trained, uint workers);

private:
  // The records of a pass in their order, counted from the first that is trained on; shuffled by
  // Fisher and Yates.
  kj::ArrayPtr<const uint32_t> permutation(uint64_t pass);

  struct Permutation {
    uint64_t pass = 0;
    kj::Array<uint32_t> records;  // empty: none was made here yet
  };

  uint64_t first;    // the first record that is trained on
  uint64_t records;  // N
  uint64_t seed;
  bool shuffled;
  uint64_t drawnFor;  // the rank whose permutations these are
  uint64_t begin;     // where this worker's first batch begins in its stream
  uint64_t stride;    // from there to the next
  uint batchSize;
  Permutation permutations[2];  // that of pass e at e mod 2
};

}  // namespace io
