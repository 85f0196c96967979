// The bytes from one end of a connection after its proof: any bytes, in place of Cap'n Proto's
// messages. The other end is a server of the store.
#include "rpc/testing/test_server.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {

void feed(Bytes input) {
  static const auto PLACEMENT = rpc::placeBalanced(rpc::makeKeys({20, 3, 1}), 32, 1);
  static const auto ROUNDS = rpc::roundsOf("dist_sync", 2);
  kj::EventLoop loop;
  kj::WaitScope scope(loop);
  rpc::TestUpdater updater(1);
  auto server = rpc::newShardServer(PLACEMENT, 0, ROUNDS, updater).service;
  auto pipe = kj::newTwoWayPipe();
  auto served = rpc::serve(kj::mv(pipe.ends[0]), rpc::limitsFor(PLACEMENT), server)
                    .eagerlyEvaluate([](kj::Exception&& e) { judge(e); });
  auto sent = pipe.ends[1]->write(input.begin(), input.size()).eagerlyEvaluate([](auto&&) {});
  // Values for the server's answers, so that it never waits.
  kj::byte buffer[4096];
  for (uint i = 0; i < 100; i++) {
    auto read = pipe.ends[1]
                    ->tryRead(buffer, 1, sizeof(buffer))
                    .then([](size_t n) { return n; }, [](kj::Exception&&) -> size_t { return 0; });
    if (!read.poll(scope) || read.wait(scope) == 0) break;
  }
  pipe.ends[1] = nullptr;
  scope.poll();
}

}  // namespace fuzz
