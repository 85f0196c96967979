#include "rpc/wire/proof.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <string.h>

namespace rpc {
namespace {

// The two ends of a connection, and the identities with which each of them is called.
struct Pair {
  kj::EventLoop loop;
  kj::WaitScope scope{loop};
  kj::TwoWayPipe pipe = kj::newTwoWayPipe();
  kj::AsyncIoStream& caller = *pipe.ends[0];
  kj::AsyncIoStream& listener = *pipe.ends[1];
  Secret secret = Secret::random();
  Identity worker{kj::str("worker 3"), secret};
  Identity server{kj::str("server 1"), secret};

  // Why `promise` rejects; empty if it does not.
  template <typename Promise>
  kj::String failure(Promise&& promise) {
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { promise.wait(scope); })) {
      return kj::str(e->getDescription());
    }
    return kj::str();
  }

  kj::Array<kj::byte> read(kj::AsyncIoStream& stream, size_t size) {
    auto bytes = kj::heapArray<kj::byte>(size);
    stream.read(bytes.begin(), size).wait(scope);
    return bytes;
  }
};

TEST_CASE(
    "Proof: two ends with the same secret accept each other, and read nothing beyond the proof") {
  Pair pair;
  auto called = proveAsCaller(pair.caller, pair.worker, "server 1");
  auto heard = proveAsListener(pair.listener, pair.server);
  auto key = called.wait(pair.scope);
  auto written = pair.caller.write("next", 4);
  CHECK(heard.wait(pair.scope).digits() == key.digits());
  CHECK(memcmp(pair.read(pair.listener, 4).begin(), "next", 4) == 0);
  written.wait(pair.scope);
}

TEST_CASE("Proof: a caller recognizes a wrong secret, and does not answer the listener") {
  Pair pair;
  pair.worker.secret = Secret::random();
  auto heard = proveAsListener(pair.listener, pair.server).eagerlyEvaluate(nullptr);
  auto called = proveAsCaller(pair.caller, pair.worker, "server 1");
  CHECK(pair.failure(called) == WRONG_SECRET);
  CHECK_FALSE(heard.poll(pair.scope));
}

TEST_CASE("Proof: a listener refuses a caller that only pretends to know the secret") {
  Pair pair;
  auto heard = proveAsListener(pair.listener, pair.server);
  kj::byte call[64] = {'r', 'u', 'n', 'n', 'e', 'r', 0, 2, 'w'};
  pair.caller.write(call, sizeof(call)).wait(pair.scope);
  auto answer = pair.read(pair.caller, 96);
  // The listener's own code, sent back to it.
  pair.caller.write(answer.end() - Secret::BYTES, Secret::BYTES).wait(pair.scope);
  CHECK(pair.failure(heard) == WRONG_SECRET);
}

TEST_CASE("Proof: a listener refuses a replay of a caller's earlier messages") {
  Pair pair;
  // A relay between the two ends records all that the caller sends.
  auto relay = kj::newTwoWayPipe();
  auto heard = proveAsListener(*relay.ends[1], pair.server);
  auto called = proveAsCaller(pair.caller, pair.worker, "server 1");
  auto call = pair.read(pair.listener, 64);
  relay.ends[0]->write(call.begin(), call.size()).wait(pair.scope);
  auto answer = pair.read(*relay.ends[0], 96);
  pair.listener.write(answer.begin(), answer.size()).wait(pair.scope);
  auto reply = pair.read(pair.listener, 32);
  relay.ends[0]->write(reply.begin(), reply.size()).wait(pair.scope);
  heard.wait(pair.scope);
  called.wait(pair.scope);

  auto second = kj::newTwoWayPipe();
  auto again = proveAsListener(*second.ends[1], pair.server);
  second.ends[0]->write(call.begin(), call.size()).wait(pair.scope);
  pair.read(*second.ends[0], 96);
  second.ends[0]->write(reply.begin(), reply.size()).wait(pair.scope);
  CHECK(pair.failure(again) == WRONG_SECRET);
}

TEST_CASE("Proof: a caller notices that another role of the job answers") {
  Pair pair;
  auto heard = proveAsListener(pair.listener, pair.server).eagerlyEvaluate(nullptr);
  auto called = proveAsCaller(pair.caller, pair.worker, "server 2");
  CHECK(pair.failure(called) == "it is another role of this job than server 2");
}

TEST_CASE("Proof: every connection has a different key") {
  Pair pair;
  auto prove = [&]() {
    auto heard = proveAsListener(pair.listener, pair.server);
    auto called = proveAsCaller(pair.caller, pair.worker, "server 1");
    auto key = called.wait(pair.scope);
    heard.wait(pair.scope);
    return key.digits();
  };
  auto first = prove();
  CHECK(prove() != first);
}

TEST_CASE("Proof: if only one end uses TLS, both ends report which one") {
  for (bool callerUsesTls: {false, true}) {
    Pair pair;
    pair.worker.tls = callerUsesTls;
    pair.server.tls = !callerUsesTls;
    auto heard = proveAsListener(pair.listener, pair.server);
    auto called = proveAsCaller(pair.caller, pair.worker, "server 1");
    CHECK(pair.failure(called) == (callerUsesTls ? TLS_ONLY_HERE : TLS_ONLY_THERE));
    CHECK(pair.failure(heard) == (callerUsesTls ? TLS_ONLY_THERE : TLS_ONLY_HERE));
  }
}

TEST_CASE("Proof: nobody between two ends can make them leave TLS out") {
  Pair pair;
  pair.worker.tls = pair.server.tls = true;
  auto called = proveAsCaller(pair.caller, pair.worker, "server 1");
  // A relay tells the server that the worker does not use TLS, and the reverse.
  auto relay = kj::newTwoWayPipe();
  auto heard = proveAsListener(*relay.ends[1], pair.server);
  auto call = pair.read(pair.listener, 64);
  constexpr size_t TLS_AT = 8 + NAME_BYTES_MAX;
  REQUIRE(call[TLS_AT] == 1);
  call[TLS_AT] = 0;
  relay.ends[0]->write(call.begin(), call.size()).wait(pair.scope);
  auto answer = pair.read(*relay.ends[0], 96);
  answer[TLS_AT] = 0;
  pair.listener.write(answer.begin(), answer.size()).wait(pair.scope);
  CHECK(pair.failure(called) == WRONG_SECRET);
}

TEST_CASE("Proof: both ends recognize another program by its first bytes") {
  constexpr kj::StringPtr OTHER = "SSH-2.0-OpenSSH_9.2p1\r\n"_kj;
  for (bool isListener: {false, true}) {
    Pair pair;
    auto& other = isListener ? pair.caller : pair.listener;
    auto proof = isListener ? proveAsListener(pair.listener, pair.server)
                            : proveAsCaller(pair.caller, pair.worker, "server 1");
    auto written = other.write(OTHER.begin(), OTHER.size()).eagerlyEvaluate(nullptr);
    if (!isListener) pair.read(pair.listener, 64);
    CHECK(pair.failure(proof) == "it is another program, or another version of this one");
  }
}

TEST_CASE("Proof: an end that closes the connection is a lost connection") {
  Pair pair;
  auto heard = proveAsListener(pair.listener, pair.server);
  pair.caller.write("runner", 6).wait(pair.scope);
  pair.pipe.ends[0] = nullptr;
  auto failure = kj::runCatchingExceptions([&]() { heard.wait(pair.scope); });
  CHECK(KJ_ASSERT_NONNULL(failure).getType() == kj::Exception::Type::DISCONNECTED);
}

TEST_CASE("Secret: reads what it writes, and nothing else") {
  auto secret = Secret::random();
  auto digits = secret.digits();
  CHECK(digits.size() == 64);
  CHECK(KJ_ASSERT_NONNULL(Secret::parse(digits)).digits() == digits);
  CHECK(secret.isSet());
  CHECK_FALSE(Secret().isSet());
  CHECK(Secret::parse(digits.slice(1)) == nullptr);
  CHECK(Secret::parse(kj::str(digits.slice(1), "x")) == nullptr);
}

TEST_CASE("Secret: signs like RFC 4231's test case with a key of 32 bytes padded by zeros") {
  // Test case 2: HMAC pads a short key with zeros, so "Jefe" and the same with 28 zeros agree.
  auto key = kj::str("4a656665", kj::repeat('0', 56));
  auto secret = KJ_ASSERT_NONNULL(Secret::parse(key));
  auto code = secret.sign({"what do ya want "_kj.asBytes(), "for nothing?"_kj.asBytes()});
  constexpr kj::byte EXPECTED[] = {0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e};
  CHECK(memcmp(code.begin(), EXPECTED, sizeof(EXPECTED)) == 0);
}

TEST_CASE("Secret: a derived secret depends on the purpose and on the original secret") {
  auto secret = Secret::random();
  auto derived = secret.derive("a"_kj.asBytes()).digits();
  CHECK(derived == secret.derive("a"_kj.asBytes()).digits());
  CHECK(derived != secret.derive("b"_kj.asBytes()).digits());
  CHECK(derived != Secret::random().derive("a"_kj.asBytes()).digits());
}

}  // namespace
}  // namespace rpc
