#include "rpc/wire/encryption.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <kj/thread.h>
#include <kj/vector.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>

namespace rpc {
namespace {

using Stream = kj::Own<kj::AsyncIoStream>;

kj::Exception failureOf(kj::Promise<Stream> promise, kj::WaitScope& scope) {
  auto failure = kj::runCatchingExceptions([&]() { promise.wait(scope); });
  return kj::mv(KJ_REQUIRE_NONNULL(failure));
}

// Two ends with one key.
struct Pair {
  kj::EventLoop loop;
  kj::WaitScope scope{loop};
  kj::TwoWayPipe pipe = kj::newTwoWayPipe();
  Secret key = Secret::random();
  Stream caller, listener;

  // Encrypts the pipe.
  Pair() {
    auto called = encrypt(kj::mv(pipe.ends[0]), key, End::CALLER);
    auto heard = encrypt(kj::mv(pipe.ends[1]), key, End::LISTENER).eagerlyEvaluate(nullptr);
    caller = called.wait(scope);
    listener = heard.wait(scope);
  }
};

struct Sockets {
  kj::AutoCloseFd a, b;
};

Sockets newSockets() {
  int sockets[2];
  KJ_SYSCALL(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets));
  return {kj::AutoCloseFd(sockets[0]), kj::AutoCloseFd(sockets[1])};
}

kj::Array<kj::byte> bytesOfMany(size_t size) {
  auto bytes = kj::heapArray<kj::byte>(size);
  for (auto i: kj::indices(bytes)) bytes[i] = kj::byte(i * 2654435761u >> 13);
  return bytes;
}

TEST_CASE("encrypt: each end reads the bytes that the other writes, in any pieces") {
  Pair pair;
  auto bytes = bytesOfMany(1 << 20);
  for (bool isThere: {true, false}) {
    auto& from = isThere ? pair.caller : pair.listener;
    auto& to = isThere ? pair.listener : pair.caller;
    kj::ArrayPtr<const kj::byte> pieces[] = {bytes.slice(0, 8), bytes.slice(8, 8),
        bytes.slice(8, 100'000), bytes.slice(100'000, 1 << 20)};
    auto written = from->write(kj::arrayPtr(pieces, kj::size(pieces)));
    auto received = kj::heapArray<kj::byte>(bytes.size());
    to->read(received.begin(), 5).wait(pair.scope);
    to->read(received.begin() + 5, received.size() - 5).wait(pair.scope);
    written.wait(pair.scope);
    CHECK(received.asPtr() == bytes.asPtr());
  }
}

TEST_CASE("encrypt: an end that closes the connection ends the other's stream") {
  Pair pair;
  auto written = pair.caller->write("last", 4).then([&]() { pair.caller->shutdownWrite(); });
  char bytes[8];
  CHECK(pair.listener->tryRead(bytes, 1, sizeof(bytes)).wait(pair.scope) == 4);
  written.wait(pair.scope);
  CHECK(pair.listener->tryRead(bytes, 1, sizeof(bytes)).wait(pair.scope) == 0);
  // The other direction stays open.
  auto back = pair.listener->write("back", 4);
  pair.caller->read(bytes, 4).wait(pair.scope);
  back.wait(pair.scope);
}

TEST_CASE("encrypt: ends with different keys refuse each other") {
  kj::EventLoop loop;
  kj::WaitScope scope(loop);
  auto pipe = kj::newTwoWayPipe();
  auto called =
      encrypt(kj::mv(pipe.ends[0]), Secret::random(), End::CALLER).eagerlyEvaluate(nullptr);
  auto heard = encrypt(kj::mv(pipe.ends[1]), Secret::random(), End::LISTENER);
  CHECK(failureOf(kj::mv(heard), scope).getDescription() == RELAYED);
  CHECK(failureOf(kj::mv(called), scope).getDescription() == RELAYED);
}

// Two encrypted ends with a third party between them, who sees and passes on what they send.
struct Relay {
  kj::EventLoop loop;
  kj::WaitScope scope{loop};
  kj::TwoWayPipe near = kj::newTwoWayPipe(), far = kj::newTwoWayPipe();
  kj::Vector<kj::byte> seen;
  kj::byte change = 0;  // is added to the last byte that the caller sends
  kj::Promise<void> there = pass(*near.ends[1], *far.ends[0], true).eagerlyEvaluate(nullptr);
  kj::Promise<void> back = pass(*far.ends[0], *near.ends[1], false).eagerlyEvaluate(nullptr);
  kj::byte bytes[2][4096];

  kj::Promise<void> pass(kj::AsyncIoStream& from, kj::AsyncIoStream& to, bool isThere) {
    auto& buffer = bytes[isThere];
    return from.tryRead(buffer, 1, sizeof(buffer))
        .then([this, &from, &to, &buffer, isThere](size_t n) -> kj::Promise<void> {
          if (n == 0) return kj::READY_NOW;
          if (isThere) buffer[n - 1] += change;
          seen.addAll(kj::arrayPtr(buffer, n));
          return to.write(buffer, n).then(
              [this, &from, &to, isThere]() { return pass(from, to, isThere); });
        });
  }
};

TEST_CASE("encrypt: a relay can neither read the bytes nor change them unnoticed") {
  constexpr kj::StringPtr TEXT = "the gradients of the first layer"_kj;
  Relay relay;
  auto key = Secret::random();
  auto called = encrypt(kj::mv(relay.near.ends[0]), key, End::CALLER);
  auto heard = encrypt(kj::mv(relay.far.ends[1]), key, End::LISTENER).eagerlyEvaluate(nullptr);
  auto caller = called.wait(relay.scope);
  auto listener = heard.wait(relay.scope);
  char bytes[64];
  auto write = [&]() { caller->write(TEXT.begin(), TEXT.size()).wait(relay.scope); };
  write();
  CHECK(listener->tryRead(bytes, TEXT.size(), sizeof(bytes)).wait(relay.scope) == TEXT.size());
  CHECK(memcmp(bytes, TEXT.begin(), TEXT.size()) == 0);
  auto& seen = relay.seen;
  CHECK(::memmem(seen.begin(), seen.size(), TEXT.begin(), TEXT.size()) == nullptr);
  relay.change = 1;
  write();
  auto failure = kj::runCatchingExceptions(
      [&]() { listener->tryRead(bytes, 1, sizeof(bytes)).wait(relay.scope); });
  CHECK(KJ_REQUIRE_NONNULL(failure).getType() == kj::Exception::Type::DISCONNECTED);
}

// Accepts a TLS connection on `socket` with a new certificate. Returns whether the caller agrees.
bool acceptWithCertificate(int socket) {
  auto context = SSL_CTX_new(TLS_server_method());
  auto key = EVP_EC_gen("P-256");
  auto certificate = X509_new();
  X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  KJ_REQUIRE(X509_sign(certificate, key, EVP_sha256()) > 0);
  KJ_REQUIRE(SSL_CTX_use_certificate(context, certificate) == 1);
  KJ_REQUIRE(SSL_CTX_use_PrivateKey(context, key) == 1);
  auto ssl = SSL_new(context);
  SSL_set_fd(ssl, socket);
  bool isAccepted = SSL_accept(ssl) == 1;
  SSL_free(ssl);
  X509_free(certificate);
  EVP_PKEY_free(key);
  SSL_CTX_free(context);
  return isAccepted;
}

TEST_CASE("encrypt: a caller refuses a peer that shows a certificate instead of knowing the key") {
  auto io = kj::setupAsyncIo();
  auto ends = newSockets();
  bool isAccepted = true;
  {
    kj::Thread other([&]() { isAccepted = acceptWithCertificate(ends.b); });
    auto stream = io.lowLevelProvider->wrapSocketFd(kj::mv(ends.a));
    auto called = encrypt(kj::mv(stream), Secret::random(), End::CALLER);
    CHECK(failureOf(kj::mv(called), io.waitScope).getDescription() == RELAYED);
  }
  CHECK_FALSE(isAccepted);
}

TEST_CASE("encrypt: an end that goes away during the handshake is a lost connection") {
  kj::EventLoop loop;
  kj::WaitScope scope(loop);
  auto pipe = kj::newTwoWayPipe();
  auto called = encrypt(kj::mv(pipe.ends[0]), Secret::random(), End::CALLER);
  pipe.ends[1]->write("", 0).wait(scope);
  pipe.ends[1]->shutdownWrite();
  auto drained = pipe.ends[1]->readAllBytes().eagerlyEvaluate(nullptr);
  CHECK(failureOf(kj::mv(called), scope).getType() == kj::Exception::Type::DISCONNECTED);
}

TEST_CASE("encrypt: more records arrive than one key may encrypt") {
  constexpr kj::uint RECORDS = (1 << 16) + 10;
  Pair pair;
  auto bytes = bytesOfMany(RECORDS);
  auto received = kj::heapArray<kj::byte>(RECORDS);
  auto read = pair.listener->read(received.begin(), received.size()).eagerlyEvaluate(nullptr);
  for (auto& byte: bytes) pair.caller->write(&byte, 1).wait(pair.scope);
  read.wait(pair.scope);
  CHECK(received.asPtr() == bytes.asPtr());
}

TEST_CASE("encrypt: the encrypted stream has the file descriptor of its socket") {
  auto io = kj::setupAsyncIo();
  auto ends = newSockets();
  int socket = ends.a;
  auto key = Secret::random();
  auto called = encrypt(io.lowLevelProvider->wrapSocketFd(kj::mv(ends.a)), key, End::CALLER);
  auto heard = encrypt(io.lowLevelProvider->wrapSocketFd(kj::mv(ends.b)), key, End::LISTENER)
                   .eagerlyEvaluate(nullptr);
  auto stream = called.wait(io.waitScope);
  heard.wait(io.waitScope);
  CHECK(KJ_REQUIRE_NONNULL(stream->getFd()) == socket);
}

}  // namespace
}  // namespace rpc
