// io/batches/stream.h: which worker reads which record in which step.
#pragma once

#include <kj/array.h>
#include <kj/common.h>

#include <cstdint>

#include "io/batches/chunk_order.h"
#include "io/batches/division.h"
#include "io/batches/permutation.h"
#include "io/data_config.h"

namespace io {

using kj::uint;

// The order in which one worker reads the N training records that are not held out. The keys of
// [data] choose the order:
//
//   part = "split"  pass e is the permutation given by (seed, e); the passes one after another form
//                   one stream; step t takes the next W·b of it, worker r the r-th b of these
//   part = "whole"  worker r has its own stream: pass e is the permutation given by (seed, e, r),
//                   and step t takes the next b
//   part = "same"   every worker reads worker 0's stream, which is that of "split" with W = 1
//   order = "stored"  every permutation is the identity
//   order = "chunks"  the permutations are those of ChunkOrder
//
// With `last_batch`, each pass is as long as passLength() says. If that is less than N, the last
// records of the pass are left out. If it is more, its first records follow its last ones.
//
// Up to LISTED_MAX records, Fisher and Yates' shuffle makes a list per pass with order =
// "shuffled". More records are not listed: see Permutation.
class Stream {
public:
  static constexpr uint64_t LISTED_MAX = 1 << 20;

  // `records` is the number in the database; config.heldOut of them are left out. Requires
  // config.heldOut < records < 2^32 and rank < workers.
  Stream(const DataConfig& config, uint64_t records, uint64_t seed, uint workers, uint rank);

  // For part = "split": reads the records that `division` gives to this worker. It has passes of
  // the same length and the same batch size.
  void divideBy(kj::Own<const Division> division);

  // A record and the pass in which it is read. The draws of its augmentation depend on both.
  struct Sample {
    uint64_t record;
    uint64_t pass;

    bool operator==(const Sample&) const = default;
  };
  // Returns in `out`, which has batchSize entries, the records of this worker's batch of step
  // `step` (from 0), in order. Keeps the permutations of the last two passes. Not thread-safe.
  void samples(uint64_t step, kj::ArrayPtr<Sample> out);

  // Returns how many records a pass over `trained` records reads. By `last_batch`, that is all of
  // them, or a multiple of the records that one step of the workers takes.
  static uint64_t passLength(const DataConfig& config, uint64_t trained, uint workers);

  // Returns how many steps a worker makes until the end of epoch `epoch` (from 1), for passes of
  // `length` records: floor(epoch · length / (W · b)), or floor(epoch · length / b) if every worker
  // reads all records.
  static uint64_t stepsUntilEndOf(
      uint64_t epoch, const DataConfig& config, uint64_t length, uint workers);

private:
  // The order of a pass, counted from the first record that is trained on.
  struct Order {
    uint64_t pass;
    kj::Array<uint32_t> list;            // empty if records are not listed
    kj::Maybe<Permutation> permutation;  // null if they are, or are not shuffled
    kj::Maybe<ChunkOrder> chunks;        // null unless they are read in chunks

    uint64_t at(uint64_t index) {
      if (list.size() > 0) return list[index];
      KJ_IF_MAYBE(c, chunks) return c->at(index);
      KJ_IF_MAYBE(p, permutation) return p->at(index);
      return index;
    }
  };
  Order& orderOf(uint64_t pass);

  uint64_t first;    // the first record that is trained on
  uint64_t records;  // N
  uint64_t length;   // of a pass
  uint64_t seed;
  RecordOrder order;
  Chunks chunks;
  uint64_t drawnFor;  // the rank that permutations are drawn for
  uint64_t begin;     // where this worker's first batch begins in its stream
  uint64_t stride;    // distance between the beginnings of two batches
  uint batchSize;
  uint rank;
  kj::Maybe<kj::Own<const Division>> division;  // null: `begin` and `stride` decide
  kj::Array<uint64_t> places;                   // in the stream, of the requested batch
  kj::Maybe<Order> orders[2];                   // the order of pass e is at e mod 2
};

}  // namespace io
