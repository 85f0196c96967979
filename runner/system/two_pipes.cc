#include "runner/system/two_pipes.h"

#include <kj/debug.h>

namespace runner {

namespace {

class TwoPipes final: public kj::AsyncIoStream {
public:
  TwoPipes(kj::Own<kj::AsyncInputStream> input, kj::Own<kj::AsyncOutputStream> output)
      : input(kj::mv(input)), output(kj::mv(output)) {}

  kj::Promise<size_t> tryRead(void* buffer, size_t least_bytes, size_t most_bytes) override {
    return input->tryRead(buffer, least_bytes, most_bytes);
  }
  kj::Promise<void> write(const void* buffer, size_t size_bytes) override {
    return KJ_ASSERT_NONNULL(output)->write(buffer, size_bytes);
  }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    return KJ_ASSERT_NONNULL(output)->write(pieces);
  }
  kj::Promise<void> whenWriteDisconnected() override {
    return KJ_ASSERT_NONNULL(output)->whenWriteDisconnected();
  }
  void shutdownWrite() override { output = nullptr; }

private:
  kj::Own<kj::AsyncInputStream> input;
  kj::Maybe<kj::Own<kj::AsyncOutputStream>> output;  // null: closed
};

}  // namespace

kj::Own<kj::AsyncIoStream> joinPipes(
    kj::Own<kj::AsyncInputStream> input, kj::Own<kj::AsyncOutputStream> output) {
  return kj::heap<TwoPipes>(kj::mv(input), kj::mv(output));
}

}  // namespace runner
