// The payload of a slice in each encoding: check(), then the decoding by a server and a worker.
#include "rpc/codec/codec.h"

#include <kj/vector.h>

#include "rpc/testing/test_model.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

kj::Array<rpc::codec::Encoding> encodings() {
  constexpr kj::StringPtr KEYS[] = {
      ""_kj,
      "wire = 'float16'"_kj,
      "wire = 'bfloat16'"_kj,
      "compression = { kind = '1bit' }"_kj,
      "compression = { kind = '1bit' }\nwire = 'float16'"_kj,
      "compression = { kind = '2bit', threshold = 0.5 }"_kj,
      "compression = { kind = 'topk', sparsity = 0.95 }"_kj,
      "compression = { kind = 'topk', sparsity = 0.95 }\nwire = 'float16'"_kj,
  };
  kj::Vector<rpc::codec::Encoding> all;
  for (auto keys: KEYS) {
    auto codec = rpc::codecOf(keys);
    all.add(codec.pushes());
    all.add(codec.answers(3));
    codec.answersSums = true;
    all.add(codec.answers(3));
  }
  return all.releaseAsArray();
}

}  // namespace

void feed(Bytes input) {
  static const auto ENCODINGS = encodings();
  Dice dice(input);
  auto& encoding = ENCODINGS[dice.byte() % ENCODINGS.size()];
  auto values = kj::heapArray<float>(dice.number(2) % 2000);
  for (auto& value: values) value = 0;
  // Aligned, as in a message.
  auto payload = kj::heapArray(dice.all());
  encoding.check(payload, values.size());
  encoding.decode(payload, values);
  encoding.add(payload, values);
  rpc::codec::Coded coded(encoding, payload);
  coded.check(values.size());
  KJ_IF_MAYBE(floats, coded.inPlace()) must(floats->size() == values.size(), "size");
}

}  // namespace fuzz
