#include "rpc/codec/codec.h"

#include <kj/debug.h>
#include <math.h>

#include "configs/language/reader.h"

namespace rpc::codec {

namespace {

// A row of the table of `wire`.
struct Wire {
  const char* name;
  const char* doc;
  Encoding::Kind kind;
};

constexpr Wire WIRES[] = {
    {"float32", "As they are.", Encoding::FLOAT32},
    {"float16",
        "IEEE half precision, rounded to nearest: 11 significant bits. Values above 65504 become "
        "infinite.",
        Encoding::FLOAT16},
    {"bfloat16", "The upper half of a float32, rounded to nearest: 8 significant bits.",
        Encoding::BFLOAT16},
};

Codec readNone(configs::Reader&) {
  return {};
}

Codec readTwoBit(configs::Reader& reader) {
  Codec codec{.compression = Codec::TWO_BIT};
  codec.threshold = usedThreshold(reader.real("threshold",
      "A value is sent as +threshold or -threshold once that much of it has accumulated. It "
      "applies to the gradient summed over the worker's batch, and is rounded to 12 significant "
      "bits.",
      {.above = 0, .atMost = 1e9}, 0.5));
  return codec;
}

Codec readTopK(configs::Reader& reader) {
  Codec codec{.compression = Codec::TOP_K};
  codec.sparsity = reader.real("sparsity",
      "Share of the values of each slice that is not sent. At least one value per slice is sent.",
      {.atLeast = 0, .below = 1}, 0.99);
  codec.momentum = float(reader.real("momentum",
      "Momentum correction: each worker applies this momentum to its gradients before they "
      "accumulate. The optimizer should have no momentum then.",
      {.atLeast = 0, .below = 1}, 0));
  codec.clipNorm = reader
                       .maybeReal("clip_norm",
                           "Before anything else, clips a worker's gradient of each slice to the "
                           "norm clip_norm / √workers. Absent: not clipped.",
                           {.above = 0})
                       .orDefault(0);
  codec.warmUp_steps = reader.integer("warmup_steps",
      "Number of steps per worker in which more is sent. They are divided into equal parts that "
      "send a quarter, a 16th, a 64th, … of the values.",
      {.atLeast = 0}, 0);
  return codec;
}

constexpr configs::Kind<Codec> COMPRESSIONS[] = {
    {"none", "All values are sent.", readNone},
    {"2bit", "MXNet's compression to two bits per value: +threshold, -threshold, or nothing yet.",
        readTwoBit},
    {"topk",
        "Deep gradient compression (Lin et al. 2018, arXiv 1712.01887): sends the largest "
        "accumulated values, with their positions.",
        readTopK},
};

}  // namespace

Encoding Codec::pushes() const {
  switch (compression) {
    case NONE:
      return {.kind = wire};
    case TWO_BIT:
      return {.kind = Encoding::TWO_BIT, .unit = threshold};
    case TOP_K:
      return {.kind = Encoding::SPARSE, .values = wire};
  }
  KJ_UNREACHABLE;
}

Encoding Codec::answers(uint pushes) const {
  if (!answersSums) return {.kind = wire};
  if (compression != TWO_BIT) return this->pushes();
  return {.kind = Encoding::MULTIPLES, .unit = threshold, .most = pushes};
}

double Codec::sparsityAt(uint64_t step) const {
  if (step >= warmUp_steps) return sparsity;
  uint64_t parts = 0;
  for (double sent = 0.25; sent > 1 - sparsity; sent /= 4) parts++;
  if (parts == 0) return sparsity;
  double sent = 0.25;
  for (uint64_t part = step * parts / warmUp_steps; part > 0; part--) sent /= 4;
  return 1 - sent;
}

Codec Codec::read(configs::Reader& reader) {
  return reader.kind<Codec>("compression",
      "What is pushed instead of the full gradient. What is not sent is kept and added to the next "
      "gradient.",
      kj::arrayPtr(COMPRESSIONS, kj::size(COMPRESSIONS)), "none");
}

Encoding::Kind readWire(configs::Reader& reader) {
  return reader
      .choose("wire",
          "The number format in which gradients and values are sent. The first values, and those "
          "used for validation, are always sent as float32.",
          kj::arrayPtr(WIRES, kj::size(WIRES)), "float32")
      .kind;
}

kj::String KJ_STRINGIFY(const Codec& codec) {
  kj::Vector<kj::String> words;
  if (codec.wire != Encoding::FLOAT32) words.add(kj::str(Encoding{.kind = codec.wire}.name()));
  if (codec.compression == Codec::TWO_BIT) words.add(kj::str("2bit of ", codec.threshold));
  if (codec.compression == Codec::TOP_K) {
    words.add(kj::str("topk of ", codec.sparsity, " with momentum ", codec.momentum, ", norm ",
        codec.clipNorm, " and ", codec.warmUp_steps, " steps of warm-up"));
  }
  if (codec.answersSums) words.add(kj::str("update on the worker"));
  return kj::strArray(
      KJ_MAP(word, words) { return kj::str(", ", word); }, "");
}

float usedThreshold(double threshold) {
  int exponent;
  double fraction = frexp(threshold, &exponent);
  return float(ldexp(round(ldexp(fraction, 12)), exponent - 12));
}

}  // namespace rpc::codec
