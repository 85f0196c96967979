#include "rpc/codec/compression.h"

#include <cstring>

#include "configs/language/failure.h"

namespace rpc::codec {

namespace {

class NoCompressor final: public Compressor {
public:
  explicit NoCompressor(const Encoding& encoding): Compressor(0), encoding(encoding) {}

  void encode(uint64_t, uint64_t, Floats gradient, Buffer& payload) override {
    encoder.encode(encoding, gradient, payload);
  }

private:
  const Encoding encoding;
  Encoder encoder;
};

}  // namespace

kj::Array<float> Compressor::zeros(uint64_t size) {
  auto values = kj::heapArray<float>(size);
  memset(values.begin(), 0, size * sizeof(float));
  return values;
}

void Compressor::failNotFinite() {
  configs::fail(
      "a gradient is not a finite number: training diverged. Lower train.optimizer.learning_rate");
}

kj::Own<Compressor> Compression::newCompressor(Number wire, uint64_t, uint) const {
  return kj::heap<NoCompressor>(pushes(wire));
}

}  // namespace rpc::codec
