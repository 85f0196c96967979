// rpc/wire/payload.h: how payloads lie in a message: where that pays, they are sent from where they
// are, several slices as one entry.
#pragma once

#include <capnp/message.h>
#include <capnp/orphan.h>
#include <kj/array.h>
#include <kj/vector.h>

#include <cstdint>

#include "rpc/codec/encoding.h"
#include "rpc/placement.h"

namespace rpc {

// Below this, a copy costs no more than a segment of its own. What is copied makes a message long,
// and that is cleared first: at 8 KiB, slices of 5 KB take 1.4 times as long to go and come back
// (`bench kvstore --bytes 318040`).
constexpr uint64_t REFERENCE_BYTES_MIN = 1024;

// Whether a payload stays as it is until its message is sent and gone.
enum class Payload { STAYS, CHANGES };

// Whether bytes lie in whole words of 8 bytes.
inline bool isWhole(codec::Bytes bytes) {
  return bytes.size() % sizeof(capnp::word) == 0 &&
         reinterpret_cast<uintptr_t>(bytes.begin()) % sizeof(capnp::word) == 0;
}

// Whether a message refers to these bytes. It is sent in whole words, so what begins or ends
// between two is copied.
inline bool isReferred(codec::Bytes bytes, Payload payload) {
  return payload == Payload::STAYS && bytes.size() >= REFERENCE_BYTES_MIN && isWhole(bytes);
}

// What a message says of a slice, or of several at once: floats that lie one after the other, if
// the slices follow one another, too. An entry of its own costs both ends some microseconds.
struct Entry {
  SliceId id;       // the first
  uint64_t number;  // the same for all
  codec::Bytes bytes;
  uint slices = 1;
};

// The entries of a message. Keeps its memory from message to message.
class Entries {
public:
  // Of slices in this encoding.
  void begin(const codec::Encoding& encoding) {
    entries.clear();
    areFloats = encoding.isFloats();
  }

  // One more slice: ids ascend.
  void add(SliceId id, uint64_t number, codec::Bytes bytes) {
    if (areFloats && entries.size() > 0) {
      auto& last = entries.back();
      bool follows = id == last.id + last.slices && bytes.begin() == last.bytes.end();
      if (follows && number == last.number && isWhole(last.bytes) && isWhole(bytes)) {
        last.bytes = kj::arrayPtr(last.bytes.begin(), bytes.end());
        last.slices++;
        return;
      }
    }
    entries.add(Entry{id, number, bytes});
  }

  kj::ArrayPtr<const Entry> all() const { return entries; }

private:
  kj::Vector<Entry> entries;
  bool areFloats = true;
};

// The size of a message with one list of entries, so that it is built in one piece of memory.
class SizeOfList {
public:
  SizeOfList(kj::ArrayPtr<const Entry> entries, Payload payload) {
    for (auto& entry: entries) {
      words += ENTRY_WORDS;
      words += isReferred(entry.bytes, payload)
                   ? REFERENCE_WORDS
                   : (entry.bytes.size() + sizeof(capnp::word) - 1) / sizeof(capnp::word);
    }
  }

  capnp::MessageSize size() const { return {words, 0}; }

private:
  static constexpr uint64_t ENTRY_WORDS = 2;      // a number and a pointer
  static constexpr uint64_t REFERENCE_WORDS = 2;  // on the way to another segment
  uint64_t words = 4;                             // parameters or results, and the list's tag
};

// Sets the field `floats` of a list's entry.
template <typename Builder>
void setFloats(Builder&& entry, codec::Bytes bytes, Payload payload) {
  if (isReferred(bytes, payload)) {
    auto orphanage = capnp::Orphanage::getForMessageContaining(entry);
    entry.adoptFloats(orphanage.referenceExternalData(bytes));
  } else {
    entry.setFloats(bytes);
  }
}

}  // namespace rpc
