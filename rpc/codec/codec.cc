#include "rpc/codec/codec.h"

#include "configs/language/reader.h"
#include "rpc/codec/one_bit_compression.h"
#include "rpc/codec/top_k_compression.h"
#include "rpc/codec/two_bit_compression.h"

namespace rpc::codec {

namespace {

// A row of the table of `wire`.
struct Wire {
  const char* name;
  const char* doc;
  Number number;
};

constexpr Wire WIRES[] = {
    {"float32", "4 bytes per number, exact.", Number::FLOAT32},
    {"float16",
        "IEEE half precision, rounded to nearest: 11 significant bits. Values above 65504 become "
        "infinite.",
        Number::FLOAT16},
    {"bfloat16", "The upper half of a float32, rounded to nearest: 8 significant bits.",
        Number::BFLOAT16},
};

kj::Own<const Compression> readNone(configs::Reader&) {
  return kj::atomicRefcounted<Compression>();
}

constexpr configs::Kind<kj::Own<const Compression>> COMPRESSIONS[] = {
    {"none", "Gradients are not compressed.", readNone},
    {"2bit", "MXNet's compression to two bits per value: +threshold, -threshold, or 0.",
        readTwoBit},
    {"topk",
        "Deep gradient compression (Lin et al. 2018, arXiv 1712.01887): sends the largest "
        "accumulated values, with their positions.",
        readTopK},
    {"1bit",
        "One bit per value, and two means per 512 values (1-bit SGD: Seide et al. 2014, "
        "Interspeech).",
        readOneBit},
};

}  // namespace

Codec Codec::read(configs::Reader& reader) {
  Codec codec;
  codec.compression = reader.kind("compression",
      "How pushed gradients are compressed. The part of a gradient that is not sent is kept, and "
      "added to the next gradient. Not for modes `local` and `device`.",
      kj::arrayPtr(COMPRESSIONS, kj::size(COMPRESSIONS)), "none");
  auto& wire = reader.choose("wire",
      "The number format in which gradients and parameters are sent. The first parameters, and "
      "those used for validation, are always sent as float32. Not for modes `local` and `device`.",
      kj::arrayPtr(WIRES, kj::size(WIRES)), "float32");
  codec.wire = wire.number;
  return codec;
}

kj::Array<kj::StringPtr> compressionKinds() {
  return KJ_MAP(row, kj::arrayPtr(COMPRESSIONS, kj::size(COMPRESSIONS))) {
    return kj::StringPtr(row.name);
  };
}

kj::String KJ_STRINGIFY(const Codec& codec) {
  kj::Vector<kj::String> words;
  if (codec.wire != Number::FLOAT32) words.add(kj::str(nameOf(codec.wire)));
  auto compression = codec.compression->words();
  if (compression.size() > 0) words.add(kj::mv(compression));
  if (codec.answersSums) words.add(kj::str("update on the worker"));
  return kj::strArray(
      KJ_MAP(word, words) { return kj::str(", ", word); }, "");
}

}  // namespace rpc::codec
