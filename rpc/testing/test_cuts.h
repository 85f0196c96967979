// rpc/testing/test_cuts.h: cuts connections of workers in the middle of messages.
#pragma once

#include <kj/async-io.h>
#include <math.h>

#include "rpc/testing/test_model.h"
#include "rpc/testing/test_threads.h"

namespace rpc {

constexpr uint64_t CUT_BYTES_MIN = 200;

// Forwards bytes between two streams in both directions, and drops both streams after a given
// number of bytes.
class Forwarder {
public:
  static kj::Promise<void> run(
      kj::Own<kj::AsyncIoStream> a, kj::Own<kj::AsyncIoStream> b, uint64_t bytes) {
    auto forwarder = kj::heap<Forwarder>(kj::mv(a), kj::mv(b), bytes);
    auto ended = forwarder->forward(0, 1).exclusiveJoin(forwarder->forward(1, 0));
    return ended.attach(kj::mv(forwarder));
  }

  Forwarder(kj::Own<kj::AsyncIoStream> a, kj::Own<kj::AsyncIoStream> b, uint64_t bytes)
      : streams{kj::mv(a), kj::mv(b)}, left(bytes) {}

private:
  kj::Promise<void> forward(uint from, uint to) {
    if (left == 0) return kj::READY_NOW;
    auto& buffer = buffers[from];
    return streams[from]
        ->tryRead(buffer, 1, kj::min(sizeof(buffer), left))
        .then([this, from, to](size_t read) -> kj::Promise<void> {
          // The other direction may have used up some bytes.
          uint64_t bytes = kj::min(read, left);
          if (bytes == 0) return kj::READY_NOW;
          left -= bytes;
          return streams[to]->write(buffers[from], bytes).then([this, from, to]() {
            return forward(from, to);
          });
        });
  }

  kj::Own<kj::AsyncIoStream> streams[2];
  kj::byte buffers[2][8192];
  uint64_t left;
};

// Cuts the worker's connections after random numbers of bytes, up to `mostBytes`. Some end within
// hello, and some carry several steps.
inline Through cutting(uint seed, uint rank, uint64_t mostBytes) {
  return [seed, rank, mostBytes, connections = 0u](kj::Own<kj::AsyncIoStream> server) mutable {
    float part = (noise(seed, rank, ++connections) + 1) / 2;
    uint64_t bytes = CUT_BYTES_MIN * exp(part * log(mostBytes / CUT_BYTES_MIN));
    auto pipe = kj::newTwoWayPipe();
    auto forwarding =
        Forwarder::run(kj::mv(pipe.ends[1]), kj::mv(server), bytes).eagerlyEvaluate(nullptr);
    return pipe.ends[0].attach(kj::mv(forwarding));
  };
}

}  // namespace rpc
