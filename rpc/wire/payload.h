// rpc/wire/payload.h: the values of slices in messages. Both ends encode a slice into a payload,
// put payloads into a list, and read the list of the other end.
#pragma once

#include <capnp/message.h>
#include <capnp/orphan.h>
#include <kj/array.h>
#include <kj/vector.h>

#include <cstdint>

#include "rpc/codec/codec.h"
#include "rpc/kvstore.capnp.h"
#include "rpc/placement.h"

namespace rpc {

// The most bytes of values that a worker groups in one call. Besides its bytes, a call costs both
// ends together about 40 µs of CPU time; 256 KiB there and back cost about 500 µs. Larger calls
// would save next to nothing, and their first slice would wait longer for their last one.
constexpr uint64_t CALL_BYTES_MAX = 256 << 10;

// The most slices in one call. Cap'n Proto refuses messages of more than 512 segments, and a
// payload that is sent without copying is a segment.
constexpr uint CALL_SLICES_MAX = 256;

// Payloads of at least this size are sent without copying. Copying a smaller one costs no more than
// a separate segment. Copying a larger one makes the message longer, and its memory is cleared
// first: with a limit of 8 KiB, the round trip of slices of 5 KB takes 1.4 times as long
// (`bench kvstore --bytes 318040`).
constexpr uint64_t REFERENCE_BYTES_MIN = 1024;

// Whether a payload's bytes stay unchanged until its message has been sent and freed.
enum class Payload { STAYS, CHANGES };

// Encodes the gradients that one worker pushes, and keeps the payloads to send them again. For one
// thread.
//
// Memory: none if float32 is sent. Otherwise the newest payload of each slice, and the compressor's
// state.
class PushEncoder {
public:
  // `placement` must outlive it.
  PushEncoder(const codec::Codec& codec, const Placement& placement, uint workers);

  // The encoding of its payloads.
  const codec::Encoding& encoding() const { return kind; }

  // Returns the payload of slice `id`'s gradient for `step`. Steps count from 0. Each call for a
  // slice is for its next step, or repeats the last one and returns the same bytes. The bytes stay
  // until the slice's next step. With float32 they are the gradient itself, and `step` is not
  // checked. Otherwise throws FAILED if `step` is out of turn, or if the gradient is not finite and
  // the encoding would hide that.
  codec::Bytes encode(SliceId id, uint64_t step, codec::Floats gradient);

  // The values that compression has not sent yet and will add to later pushes, in the order of the
  // flat array. Empty without compression.
  codec::Floats unsent() const { return compressor->unsent(); }

  // Visits the state that it keeps from step to step. `steps` have been encoded of each slice; a
  // restored encoder continues with the next one.
  void visitState(configs::StateVisitor& visitor, uint64_t steps);

private:
  struct Slot {
    codec::Buffer payload;
    uint64_t steps = 0;  // that were encoded
  };

  const codec::Encoding kind;
  const Placement& placement;
  kj::Own<const codec::Compression> compression;  // which the compressor refers to
  kj::Own<codec::Compressor> compressor;
  kj::Array<Slot> slots;  // one per slice of the placement; none with float32
};

// Encodes the answers of a server, once for all workers. For one thread.
//
// Memory: none if float32 is sent. Otherwise the newest payload of each slice.
class AnswerEncoder {
public:
  // `placement` must outlive the constructor only.
  AnswerEncoder(const codec::Encoding& encoding, const Placement& placement);

  const codec::Encoding& encoding() const { return kind; }
  // Whether the bytes of encode() stay valid until their message has been freed.
  Payload payload() const { return slots == nullptr ? Payload::STAYS : Payload::CHANGES; }

  // Returns the payload of slice `id`, which has these values in `version`. The bytes stay until a
  // later version of the slice is encoded. With float32 they are the values themselves.
  codec::Bytes encode(SliceId id, uint64_t version, codec::Floats values);

private:
  struct Slot {
    codec::Buffer payload;
    uint64_t version = kj::maxValue;
  };

  const codec::Encoding kind;
  kj::Array<Slot> slots;  // one per slice of the placement; none with float32
  codec::Encoder encoder;
};

// One entry of a message's list: a slice, or several consecutive slices whose floats are also
// consecutive in memory. Sharing an entry saves both ends some microseconds per slice.
struct SliceRun {
  SliceId id;       // the first slice
  uint64_t number;  // step or version, the same for all
  codec::Bytes bytes;
  uint slices = 1;
};

// Collects the entries of one message's list. Keeps its memory from message to message.
class SliceRuns {
public:
  // Begins a message whose payloads have this encoding.
  void begin(const codec::Encoding& encoding) {
    runs.clear();
    areFloats = encoding.isFloats();
  }

  // Adds a slice. Ids must ascend.
  void add(SliceId id, uint64_t number, codec::Bytes bytes);

  kj::ArrayPtr<const SliceRun> all() const { return runs; }

private:
  kj::Vector<SliceRun> runs;
  bool areFloats = true;
};

// Returns the size of a message with one list of these entries. With it, Cap'n Proto builds the
// message in one piece of memory.
capnp::MessageSize sizeOfList(kj::ArrayPtr<const SliceRun> runs, Payload payload);

// Whether a message refers to these bytes instead of copying them. Messages are sent in whole words
// of 8 bytes, so bytes that begin or end within a word are copied.
bool isReferred(codec::Bytes bytes, Payload payload);

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

// One slice of a worker's call.
struct CallSlice {
  SliceId id;
  codec::Bytes payload;  // refers to the call's message
  uint64_t due;          // initially 0; the server sets it to the progress that answers this slice
};

// Reads the slices of a worker's call, on the server. Keeps its memory from call to call, and
// refers to the memory of the call.
class CallSlices {
public:
  // `placement` must outlive it.
  explicit CallSlices(const Placement& placement): placement(placement) {}

  // Reads one call's slices, and divides entries that several slices share. Throws FAILED if ids do
  // not ascend. Otherwise, ids, sizes and payloads are unchecked: Shard checks them.
  void read(capnp::List<SliceFloats>::Reader list, const codec::Encoding& encoding);
  void read(capnp::List<uint32_t>::Reader list);

  kj::ArrayPtr<CallSlice> all() { return slices; }

private:
  void add(SliceId id, codec::Bytes payload);
  uint slicesIn(uint64_t bytes, SliceId id) const;

  const Placement& placement;
  kj::Vector<CallSlice> slices;
};

}  // namespace rpc
