#include "io/batches/chunk_order.h"

#include <kj/debug.h>

namespace io {

ChunkOrder::ChunkOrder(uint64_t n, Chunks chunks, uint64_t seed, uint64_t a, uint64_t b)
    : ChunkOrder(n, chunks, configs::Random(seed, configs::Purpose::CHUNKS, a, b)) {}

ChunkOrder::ChunkOrder(uint64_t n, Chunks chunks, configs::Random random)
    : n(n),
      chunkRecords(chunks.records),
      windowRecords(uint64_t(chunks.records) * chunks.window),
      first(random.below(n)),
      seed(random.next()),
      wholeChunks(n / chunkRecords),
      chunkOf(kj::max(wholeChunks, 1u), seed, 0, 0) {
  KJ_REQUIRE(n > 0 && n < uint64_t(1) << 32 && windowRecords > 0, n, windowRecords);
}

uint64_t ChunkOrder::at(uint64_t place) {
  KJ_IREQUIRE(place < n);
  uint64_t wanted = place / windowRecords, begin = wanted * windowRecords;
  if (wanted != window || inWindow == nullptr) {
    inWindow.emplace(kj::min(windowRecords, n - begin), seed, 1 + wanted, 0);
    window = wanted;
  }
  uint64_t shuffled = begin + KJ_ASSERT_NONNULL(inWindow).at(place - begin);
  uint64_t chunk = shuffled / chunkRecords;
  if (chunk < wholeChunks) chunk = chunkOf.at(chunk);
  return (first + chunk * chunkRecords + shuffled % chunkRecords) % n;
}

}  // namespace io
