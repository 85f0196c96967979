// rpc/codec/positions.h: encodes the positions of the few values of a slice that are sent, in as
// few bytes as possible. Pure.
#pragma once

#include <kj/array.h>
#include <kj/common.h>

#include <cstdint>
#include <cstring>

#include "rpc/codec/encoding.h"

namespace rpc::codec {

// How ascending positions are encoded.
enum class Form : uint8_t {
  ALL,     // not written: every position has a value
  BITMAP,  // one bit per position, from the lowest bit of the first byte on, in whole 8 bytes
  GAPS8,   // one byte per value: how many positions are skipped before it; 255 skips 255 positions
           // without a value
  GAPS16,  // the same with two bytes, little-endian, and 65535
};
constexpr kj::byte FORMS = 4;

// The form that takes the fewest bytes for some positions, and the number of these bytes.
// smallestForm() computes it for ascending `positions` below `size`. The form is ALL if every
// position has a value.
struct PositionsSize {
  Form form;
  uint64_t bytes;
};
PositionsSize smallestForm(kj::ArrayPtr<const uint32_t> positions, uint64_t size);

// Writes ascending positions below `size`. `target` must have the size that the form needs for
// them.
void writePositions(Form form, kj::ArrayPtr<const uint32_t> positions, uint64_t size,
    kj::ArrayPtr<kj::byte> target);

// Throws FAILED unless `bytes` hold `count` positions below `size` in this form, and nothing else.
void checkPositions(Form form, Bytes bytes, uint64_t count, uint64_t size);

// Calls visit(i, position) for the i-th position, from 0. Whatever the bytes hold, i stays below
// `count` and the position below `size`.
template <typename Visit>
void forEachPosition(Form form, Bytes bytes, uint64_t count, uint64_t size, Visit&& visit);

// -------------------------------------------------------------------------------------------------
// Inline details.

template <typename Gap, typename Visit>
void forEachGap(Bytes bytes, uint64_t count, uint64_t size, Visit&& visit) {
  constexpr Gap SKIP = kj::maxValue;
  uint64_t position = 0, i = 0;
  for (size_t at = 0; at + sizeof(Gap) <= bytes.size() && i < count; at += sizeof(Gap)) {
    Gap gap;
    memcpy(&gap, bytes.begin() + at, sizeof(Gap));
    position += gap;
    if (gap == SKIP) continue;
    if (position >= size) return;
    visit(i++, position++);
  }
}

template <typename Visit>
void forEachPosition(Form form, Bytes bytes, uint64_t count, uint64_t size, Visit&& visit) {
  switch (form) {
    case Form::ALL:
      for (uint64_t i = 0; i < kj::min(count, size); i++) visit(i, i);
      return;
    case Form::BITMAP: {
      uint64_t i = 0;
      for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes.begin() + at, sizeof(word));
        for (; word != 0; word &= word - 1) {
          uint64_t position = 8 * at + __builtin_ctzll(word);
          if (i >= count || position >= size) return;
          visit(i++, position);
        }
      }
      return;
    }
    case Form::GAPS8:
      return forEachGap<uint8_t>(bytes, count, size, visit);
    case Form::GAPS16:
      return forEachGap<uint16_t>(bytes, count, size, visit);
  }
}

}  // namespace rpc::codec
