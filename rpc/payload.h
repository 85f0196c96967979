// rpc/payload.h: how payloads lie in a message: where that pays, they are sent from where they are.
#pragma once

#include <capnp/message.h>
#include <capnp/orphan.h>
#include <kj/array.h>

#include <cstdint>

namespace rpc {

// Below this, a copy costs no more than a segment of its own. What is copied makes a message long,
// and that is cleared first: at 8 KiB, slices of 5 KB take 1.4 times as long to go and come back
// (`bench kvstore --bytes 318040`).
constexpr uint64_t REFERENCE_BYTES_MIN = 1024;

// Whether a payload stays as it is until its message is sent and gone.
enum class Payload { STAYS, CHANGES };

// Whether a message refers to these bytes. It is sent in whole words of 8 bytes, so what begins or
// ends between two words is copied.
inline bool isReferred(kj::ArrayPtr<const kj::byte> bytes, Payload payload) {
  return payload == Payload::STAYS && bytes.size() >= REFERENCE_BYTES_MIN &&
         bytes.size() % sizeof(capnp::word) == 0 &&
         reinterpret_cast<uintptr_t>(bytes.begin()) % sizeof(capnp::word) == 0;
}

// The size of a message with one list of slices, so that it is built in one piece of memory.
class SizeOfList {
public:
  // One more slice with these bytes.
  void add(kj::ArrayPtr<const kj::byte> bytes, Payload payload) {
    words += ENTRY_WORDS;
    words += isReferred(bytes, payload)
                 ? REFERENCE_WORDS
                 : (bytes.size() + sizeof(capnp::word) - 1) / sizeof(capnp::word);
  }

  capnp::MessageSize size() const { return {words, 0}; }

private:
  static constexpr uint64_t ENTRY_WORDS = 2;      // a number and a pointer
  static constexpr uint64_t REFERENCE_WORDS = 2;  // on the way to another segment
  uint64_t words = 4;                             // parameters or results, and the list's tag
};

// Sets the field `floats` of a list's entry.
template <typename Entry>
void setFloats(Entry&& entry, kj::ArrayPtr<const kj::byte> bytes, Payload payload) {
  if (isReferred(bytes, payload)) {
    auto orphanage = capnp::Orphanage::getForMessageContaining(entry);
    entry.adoptFloats(orphanage.referenceExternalData(bytes));
  } else {
    entry.setFloats(bytes);
  }
}

}  // namespace rpc
