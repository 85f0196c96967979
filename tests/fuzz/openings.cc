// The first bytes of a connection. A stranger sends any bytes to one end, or changes the bytes
// between two ends that know the secret.
#include <kj/async-io.h>
#include <kj/vector.h>

#include "rpc/testing/test_identity.h"
#include "rpc/wire/encryption.h"
#include "rpc/wire/opening.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

rpc::Identity identity(bool tls) {
  return {kj::str("worker 1"), rpc::testIdentity().secret, tls};
}

// Passes on the bytes from one end to the other, with some of them changed. Each change is a place
// (2 bytes) and the bits to flip.
class Relay {
public:
  Relay(kj::AsyncIoStream& from, kj::AsyncIoStream& to, Bytes changes)
      : from(from), to(to), changes(changes) {}

  kj::Promise<void> run() {
    return from.tryRead(buffer, 1, sizeof(buffer)).then([this](size_t n) -> kj::Promise<void> {
      if (n == 0) return kj::READY_NOW;
      for (size_t i = 0; i + 2 < changes.size(); i += 3) {
        size_t place = changes[i] | changes[i + 1] << 8;
        if (place >= passed && place < passed + n) buffer[place - passed] ^= changes[i + 2];
      }
      passed += n;
      return to.write(buffer, n).then([this]() { return run(); });
    });
  }

private:
  kj::AsyncIoStream& from;
  kj::AsyncIoStream& to;
  Bytes changes;
  size_t passed = 0;
  kj::byte buffer[4096];
};

template <typename Promise>
kj::Promise<void> judged(Promise&& promise) {
  return promise.then([](auto&&) {}, [](kj::Exception&& e) { judge(e); }).eagerlyEvaluate(nullptr);
}

// Sends `bytes` to one end.
void send(uint8_t choice, Bytes bytes) {
  kj::EventLoop loop;
  kj::WaitScope scope(loop);
  auto own = identity(choice & 8);
  auto pipe = kj::newTwoWayPipe();
  auto open = [&]() -> kj::Promise<void> {
    switch (choice % 4) {
      case 0:
        return judged(rpc::openAsListener(kj::mv(pipe.ends[0]), own));
      case 1:
        return judged(rpc::openAsCaller(kj::mv(pipe.ends[0]), own, "worker 1"));
      case 2:
        return judged(rpc::encrypt(kj::mv(pipe.ends[0]), own.secret, rpc::End::LISTENER));
      default:
        return judged(rpc::encrypt(kj::mv(pipe.ends[0]), own.secret, rpc::End::CALLER));
    }
  };
  auto opened = open();
  kj::byte buffer[4096];
  auto read =
      pipe.ends[1]->tryRead(buffer, sizeof(buffer), sizeof(buffer)).eagerlyEvaluate(nullptr);
  auto sent = pipe.ends[1]->write(bytes.begin(), bytes.size()).eagerlyEvaluate([](auto&&) {});
  scope.poll();
  read = nullptr;
  sent = nullptr;
  pipe.ends[1] = nullptr;
  scope.poll();
}

// Opens a connection over a relay that changes the bytes from both ends.
void change(uint8_t choice, Bytes bytes) {
  kj::EventLoop loop;
  kj::WaitScope scope(loop);
  auto own = identity(choice & 8);
  auto first = kj::newTwoWayPipe(), second = kj::newTwoWayPipe();
  size_t half = bytes.size() / 2;
  Relay there(*first.ends[1], *second.ends[1], bytes.slice(0, half));
  Relay back(*second.ends[1], *first.ends[1], bytes.slice(half, bytes.size()));
  auto relays = kj::heapArrayBuilder<kj::Promise<void>>(2);
  relays.add(there.run().eagerlyEvaluate([](auto&&) {}));
  relays.add(back.run().eagerlyEvaluate([](auto&&) {}));
  auto talk = [](kj::Own<kj::AsyncIoStream> stream) {
    auto& own = *stream;
    auto buffer = kj::heapArray<kj::byte>(16);
    auto into = buffer.asPtr();
    return own.write("0123456789abcdef", 16)
        .then([&own, into]() mutable { return own.tryRead(into.begin(), 16, 16); })
        .attach(kj::mv(buffer), kj::mv(stream));
  };
  auto caller = judged(rpc::openAsCaller(kj::mv(first.ends[0]), own, "worker 1").then(talk));
  auto listener = judged(rpc::openAsListener(kj::mv(second.ends[0]), own).then(talk));
  scope.poll();
}

}  // namespace

void feed(Bytes input) {
  Dice dice(input);
  uint8_t choice = dice.byte();
  auto rest = dice.all();
  return choice & 4 ? change(choice, rest) : send(choice, rest);
}

}  // namespace fuzz
