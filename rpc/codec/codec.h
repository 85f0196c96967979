// rpc/codec/codec.h: what a job sends in place of floats: kvstore.wire and kvstore.compression.
#pragma once

#include "rpc/codec/compression.h"

namespace configs {
class Reader;
}

namespace rpc::codec {

// The same at all ends of a job. First values and what is pulled besides pushes are always float32:
// they are few, and all workers begin and validate with the same bits.
struct Codec {
  Number wire = Number::FLOAT32;  // of values, and of numbers that are not compressed
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

  // Whether nothing but float32 travels.
  bool isPlain() const { return pushes().isFloats(); }
  Encoding pushes() const { return compression->pushes(wire); }
  // Of what answers pushes: values, or sums of at most so many pushes.
  Encoding answers(uint pushes) const {
    return answersSums ? compression->sums(wire, pushes) : Encoding{.numbers = wire};
  }

  // The keys `compression` and `wire` of [kvstore].
  static Codec read(configs::Reader& reader);
};

// The words that `compression.kind` may be.
kj::Array<kj::StringPtr> compressionKinds();

// What must be the same at both ends, to be put behind the mode's words; empty if it is plain.
kj::String KJ_STRINGIFY(const Codec& codec);

}  // namespace rpc::codec
