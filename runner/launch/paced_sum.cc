#include "runner/launch/paced_sum.h"

#include <kj/encoding.h>

#include "io/checksum.h"

namespace runner {

namespace {

constexpr size_t PIECE_BYTES = 8 << 20;  // 5 ms

class Summing {
public:
  Summing(const io::PackedFiles& files, kj::Timer& timer): files(files), timer(timer) {}

  kj::Promise<void> goOn() {
    if (offset == files.size_bytes()) return kj::READY_NOW;
    auto bytes = piece.slice(0, kj::min(PIECE_BYTES, files.size_bytes() - offset));
    files.read(offset, bytes);
    sum.update(bytes);
    offset += bytes.size();
    // Unlike evalLater(), the timer lets the loop look at its sockets.
    return timer.afterDelay(0 * kj::NANOSECONDS).then([this]() { return goOn(); });
  }

  io::Sha256 sum;

private:
  const io::PackedFiles& files;
  kj::Timer& timer;
  kj::Array<kj::byte> piece = kj::heapArray<kj::byte>(PIECE_BYTES);
  uint64_t offset = 0;
};

}  // namespace

kj::Promise<kj::String> pacedSum(const io::PackedFiles& files, kj::Timer& timer) {
  auto summing = kj::heap<Summing>(files, timer);
  auto all = kj::evalNow([&]() { return summing->goOn(); });
  return all.then([&summing = *summing]() { return kj::encodeHex(summing.sum.finish()); })
      .attach(kj::mv(summing));
}

}  // namespace runner
