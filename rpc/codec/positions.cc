#include "rpc/codec/positions.h"

#include <kj/debug.h>

namespace rpc::codec {

namespace {

uint64_t bitmapBytes(uint64_t size) {
  return (size + 63) / 64 * sizeof(uint64_t);
}

template <typename Gap>
void writeGaps(kj::ArrayPtr<const uint32_t> positions, kj::ArrayPtr<kj::byte> target) {
  constexpr Gap SKIP = kj::maxValue;
  auto at = target.begin();
  auto write = [&](Gap gap) {
    KJ_ASSERT(at + sizeof(Gap) <= target.end());
    memcpy(at, &gap, sizeof(Gap));
    at += sizeof(Gap);
  };
  uint64_t next = 0;
  for (uint64_t position: positions) {
    for (; position - next >= SKIP; next += SKIP) write(SKIP);
    write(Gap(position - next));
    next = position + 1;
  }
  KJ_ASSERT(at == target.end());
}

template <typename Gap>
void checkGaps(Bytes bytes, uint64_t count, uint64_t size) {
  constexpr Gap SKIP = kj::maxValue;
  KJ_REQUIRE(bytes.size() % sizeof(Gap) == 0, "a gap between positions is cut off");
  uint64_t position = 0, found = 0;
  bool ends = true;
  for (size_t at = 0; at < bytes.size(); at += sizeof(Gap)) {
    Gap gap;
    memcpy(&gap, bytes.begin() + at, sizeof(Gap));
    position += gap;
    ends = gap != SKIP;
    if (!ends) continue;
    found++;
    KJ_REQUIRE(position < size, "a position lies beyond the end of its slice", position, size);
    position++;
  }
  KJ_REQUIRE(ends && found == count, "the numbers of positions and values differ", found, count);
}

}  // namespace

PositionsSize smallestForm(kj::ArrayPtr<const uint32_t> positions, uint64_t size) {
  if (positions.size() == size) return {Form::ALL, 0};
  uint64_t skips8 = 0, skips16 = 0, next = 0;
  for (uint64_t position: positions) {
    uint64_t gap = position - next;
    skips8 += gap / 0xff;
    skips16 += gap / 0xffff;
    next = position + 1;
  }
  PositionsSize smallest{Form::BITMAP, bitmapBytes(size)};
  uint64_t gaps8 = positions.size() + skips8;
  if (gaps8 < smallest.bytes) smallest = {Form::GAPS8, gaps8};
  uint64_t gaps16 = 2 * (positions.size() + skips16);
  if (gaps16 < smallest.bytes) smallest = {Form::GAPS16, gaps16};
  return smallest;
}

void writePositions(Form form, kj::ArrayPtr<const uint32_t> positions, uint64_t size,
    kj::ArrayPtr<kj::byte> target) {
  switch (form) {
    case Form::ALL:
      KJ_REQUIRE(positions.size() == size && target.size() == 0);
      return;
    case Form::BITMAP:
      KJ_REQUIRE(target.size() == bitmapBytes(size));
      memset(target.begin(), 0, target.size());
      for (uint32_t position: positions) target[position / 8] |= 1 << position % 8;
      return;
    case Form::GAPS8:
      return writeGaps<uint8_t>(positions, target);
    case Form::GAPS16:
      return writeGaps<uint16_t>(positions, target);
  }
}

void checkPositions(Form form, Bytes bytes, uint64_t count, uint64_t size) {
  switch (form) {
    case Form::ALL:
      KJ_REQUIRE(count == size && bytes.size() == 0,
          "a payload without positions does not have exactly the values of its slice", count, size,
          bytes.size());
      return;
    case Form::BITMAP: {
      KJ_REQUIRE(bytes.size() == bitmapBytes(size),
          "a bitmap of positions does not have its slice's size", bytes.size(), size);
      uint64_t found = 0, last = 0;
      for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes.begin() + at, sizeof(word));
        found += __builtin_popcountll(word);
        if (word != 0) last = 8 * at + 63 - __builtin_clzll(word);
      }
      KJ_REQUIRE(
          last < size || found == 0, "a position lies beyond the end of its slice", last, size);
      KJ_REQUIRE(found == count, "the numbers of positions and values differ", found, count);
      return;
    }
    case Form::GAPS8:
      return checkGaps<uint8_t>(bytes, count, size);
    case Form::GAPS16:
      return checkGaps<uint16_t>(bytes, count, size);
  }
}

}  // namespace rpc::codec
