// io/batches/chunk_order.h: a random order of records that reads a file chunk by chunk.
#pragma once

#include <kj/common.h>

#include "configs/language/random.h"
#include "io/batches/permutation.h"
#include "io/data_config.h"

namespace io {

// An order of the records 0 … n-1, drawn from a seed and two more numbers, that takes no memory per
// record. A chunk is `chunks.records` records that follow one another. A window is `chunks.window`
// chunks that were drawn at random. Its records are read in random order before those of the next
// window. The same on every machine. For one thread.
//
// Chunks begin at a random record, and the last record is followed by the first one. So the borders
// between chunks differ from order to order: records that share a chunk in one order may be in
// different chunks in another. Records after the last whole chunk are read in the last window.
class ChunkOrder {
public:
  ChunkOrder(uint64_t n, Chunks chunks, uint64_t seed, uint64_t a, uint64_t b);

  // Returns the record at `place`, which is below n. Places may come in any order. It is fastest to
  // ask for all places of one window before those of the next.
  uint64_t at(uint64_t place);

private:
  uint64_t n;
  uint64_t chunkRecords;
  uint64_t windowRecords;
  uint64_t first = 0;  // the record with which the first chunk begins
  uint64_t seed = 0;
  uint64_t wholeChunks;
  Permutation chunkOf;
  // The window that was requested last.
  uint64_t window = kj::maxValue;
  kj::Maybe<Permutation> inWindow;

  ChunkOrder(uint64_t n, Chunks chunks, configs::Random random);
};

}  // namespace io
