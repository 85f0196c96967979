// rpc/codec/codec.h: how a job encodes floats in messages: kvstore.wire and kvstore.compression.
#pragma once

#include "rpc/codec/compression.h"

namespace configs {
class Reader;
}

namespace rpc::codec {

// How values and gradients are encoded in messages. All ends of a job use the same codec. First
// values and pulled values are always sent as float32: they are sent rarely, and all workers must
// begin and validate with the same bits.
struct Codec {
  Number wire = Number::FLOAT32;  // for values, and for numbers that are not compressed
  kj::Own<const Compression> compression = kj::atomicRefcounted<Compression>();
  // Whether pushes are answered by the sums of their rounds, because workers make the update.
  bool answersSums = false;

  Codec() = default;
  Codec(Codec&&) = default;
  Codec(const Codec& other)
      : wire(other.wire),
        compression(kj::atomicAddRef(*other.compression)),
        answersSums(other.answersSums) {}
  Codec& operator=(Codec&&) = default;
  Codec& operator=(const Codec& other) { return *this = Codec(other); }

  // Whether all messages use float32.
  bool isPlain() const { return pushes().isFloats(); }
  Encoding pushes() const { return compression->pushes(wire); }
  // The encoding of answers to pushes: of values, or of sums of at most `pushes` pushes.
  Encoding answers(uint pushes) const {
    return answersSums ? compression->sums(wire, pushes) : Encoding{.numbers = wire};
  }

  // Reads the keys `compression` and `wire` of [kvstore].
  static Codec read(configs::Reader& reader);
};

// The words that `compression.kind` may be.
kj::Array<kj::StringPtr> compressionKinds();

// Returns the text that must be the same at both ends, and that follows the name of the mode. Empty
// if all messages use float32.
kj::String KJ_STRINGIFY(const Codec& codec);

}  // namespace rpc::codec
