// rpc/codec/codec.h: what a job sends in place of floats: kvstore.wire and kvstore.compression.
#pragma once

#include <kj/string.h>

#include "rpc/codec/encoding.h"

namespace configs {
class Reader;
}

namespace rpc::codec {

// The same at all ends of a job. First values and what is pulled besides pushes are always float32:
// they are few, and all workers begin and validate with the same bits.
struct Codec {
  // A worker pushes what `compression` makes of its gradient, and keeps the rest for later pushes.
  enum Compression { NONE, TWO_BIT, TOP_K };

  Encoding::Kind wire = Encoding::FLOAT32;  // of values, and of numbers that are not compressed
  Compression compression = NONE;
  float threshold = 0.5f;     // TWO_BIT
  double sparsity = 0;        // TOP_K: the share of each slice's values that is not sent, below 1
  float momentum = 0;         // TOP_K
  double clipNorm = 0;        // TOP_K; 0: gradients are not clipped
  uint64_t warmUp_steps = 0;  // TOP_K: of each worker
  // Whether pushes are answered by the sums of their rounds, because workers make the update.
  bool answersSums = false;

  // Whether nothing but float32 travels.
  bool isPlain() const { return wire == Encoding::FLOAT32 && compression == NONE; }
  Encoding pushes() const;
  // Of what answers pushes: values, or sums of at most so many pushes, which are exact but for
  // halves.
  Encoding answers(uint pushes) const;

  // Of a worker's push number `step`, from 0. Of the warm-up, equal parts send a quarter, a 16th,
  // a 64th, … as long as that is more than in the end (Lin et al. 2018, arXiv 1712.01887, 3.3).
  double sparsityAt(uint64_t step) const;

  // The key `compression` of [kvstore].
  static Codec read(configs::Reader& reader);
};

// The key `wire` of [kvstore].
Encoding::Kind readWire(configs::Reader& reader);

// What must be the same at both ends, to be put behind the mode's words; empty if it is plain.
kj::String KJ_STRINGIFY(const Codec& codec);

// A threshold as it is used, with 12 significant bits: so sums of up to 4096 codes are exact, and
// do not depend on their order.
float usedThreshold(double threshold);

}  // namespace rpc::codec
