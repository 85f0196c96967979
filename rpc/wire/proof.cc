#include "rpc/wire/proof.h"

#include <kj/debug.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/random.h>

namespace rpc {

namespace {

using Bytes = kj::ArrayPtr<const kj::byte>;

// The first bytes that both ends send, with the version of the proof.
constexpr char PROGRAM[] = {'r', 'u', 'n', 'n', 'e', 'r', '\0', '\2'};

// How an end introduces itself. The name ends with zeros.
struct Introduction {
  char program[sizeof(PROGRAM)];
  char name[NAME_BYTES_MAX];
  kj::byte tls;  // 1 if it encrypts the following bytes
  kj::byte challenge[32];
};

// The messages in the form in which they are sent.
using Call = Introduction;
struct Answer {
  Introduction introduction;
  kj::byte code[Secret::BYTES];
};
struct Reply {
  kj::byte code[Secret::BYTES];
};
static_assert(sizeof(Call) + sizeof(Answer) + sizeof(Reply) == 192);

template <typename T>
Bytes bytesOf(const T& value) {
  return kj::arrayPtr(reinterpret_cast<const kj::byte*>(&value), sizeof(value));
}

void setName(char (&field)[NAME_BYTES_MAX], kj::StringPtr name) {
  KJ_REQUIRE(name.size() <= NAME_BYTES_MAX, "a role's name is too long for its proof", name);
  memset(field, 0, sizeof(field));
  memcpy(field, name.begin(), name.size());
}

void introduce(Introduction& message, const Identity& own) {
  memcpy(message.program, PROGRAM, sizeof(PROGRAM));
  setName(message.name, own.name);
  message.tls = own.tls;
  ssize_t n;
  KJ_SYSCALL(n = ::getrandom(message.challenge, sizeof(message.challenge), 0));
  KJ_ASSERT(n == sizeof(message.challenge));
}

using Code = kj::FixedArray<kj::byte, Secret::BYTES>;

// Compares in a time that does not depend on where they differ.
bool areEqual(const Code& expected, const kj::byte (&received)[Secret::BYTES]) {
  return CRYPTO_memcmp(expected.begin(), received, Secret::BYTES) == 0;
}

[[noreturn]] void fail(kj::String why) {
  kj::throwFatalException(
      kj::Exception(kj::Exception::Type::FAILED, __FILE__, __LINE__, kj::mv(why)));
}

// One connection's proof, at either end.
struct Proof {
  explicit Proof(kj::AsyncIoStream& stream, const Identity& own): stream(stream), own(own) {}

  template <typename T>
  kj::Promise<void> send(const T& message) {
    return stream.write(&message, sizeof(message));
  }

  // Reads exactly one message, and checks its first bytes as soon as they arrive.
  template <typename T>
  kj::Promise<void> receive(T& message) {
    auto program = reinterpret_cast<const char*>(&message);
    return read(&message, sizeof(PROGRAM)).then([this, program, &message]() {
      if (memcmp(program, PROGRAM, sizeof(PROGRAM)) != 0) {
        fail(kj::str("it is another program, or another version of this one"));
      }
      auto rest = reinterpret_cast<kj::byte*>(&message) + sizeof(PROGRAM);
      return read(rest, sizeof(message) - sizeof(PROGRAM));
    });
  }
  kj::Promise<void> receive(Reply& message) { return read(&message, sizeof(message)); }

  kj::Promise<void> read(void* bytes, size_t size) {
    return stream.tryRead(bytes, size, size).then([size](size_t n) {
      if (n == size) return;
      kj::throwFatalException(
          KJ_EXCEPTION(DISCONNECTED, "it closed the connection before it proved who it is"));
    });
  }

  // `direction` prevents an attacker from sending a code back.
  Code code(kj::StringPtr direction) const {
    return own.secret.sign({direction.asBytes(), bytesOf(call), bytesOf(answer.introduction)});
  }
  Code callersCode() const { return code("caller  "_kj); }
  Code listenersCode() const { return code("listener"_kj); }

  // Returns a secret that only the two ends know. `other` has proven its introduction.
  Secret result(const Introduction& other) const {
    if (other.tls && !own.tls) fail(kj::str(TLS_ONLY_THERE));
    if (!other.tls && own.tls) fail(kj::str(TLS_ONLY_HERE));
    Introduction both[] = {call, answer.introduction};
    return own.secret.derive(bytesOf(both));
  }

  kj::AsyncIoStream& stream;
  const Identity& own;
  Call call;
  Answer answer;
  Reply reply;
};

}  // namespace

kj::Promise<Secret> proveAsCaller(
    kj::AsyncIoStream& stream, const Identity& own, kj::StringPtr other) {
  auto proof = kj::heap<Proof>(stream, own);
  auto& p = *proof;
  introduce(p.call, own);
  return p.send(p.call)
      .then([&p]() { return p.receive(p.answer); })
      .then([&p, other]() {
        if (!areEqual(p.listenersCode(), p.answer.code)) {
          fail(kj::str(WRONG_SECRET));
        }
        char expected[NAME_BYTES_MAX];
        setName(expected, other);
        if (memcmp(p.answer.introduction.name, expected, sizeof(expected)) != 0) {
          fail(kj::str("it is another role of this job than ", other));
        }
        memcpy(p.reply.code, p.callersCode().begin(), sizeof(p.reply.code));
        return p.send(p.reply);
      })
      .then([&p]() { return p.result(p.answer.introduction); })
      .attach(kj::mv(proof));
}

kj::Promise<Secret> proveAsListener(kj::AsyncIoStream& stream, const Identity& own) {
  auto proof = kj::heap<Proof>(stream, own);
  auto& p = *proof;
  return p.receive(p.call)
      .then([&p]() {
        introduce(p.answer.introduction, p.own);
        memcpy(p.answer.code, p.listenersCode().begin(), sizeof(p.answer.code));
        return p.send(p.answer);
      })
      .then([&p]() {
        return p.receive(p.reply).catch_([](kj::Exception&& e) {
          if (e.getType() != kj::Exception::Type::DISCONNECTED) kj::throwFatalException(kj::mv(e));
          // Most likely it has noticed itself that the secrets differ.
          fail(kj::str("it left without a proof, so it may have another secret"));
        });
      })
      .then([&p]() {
        if (!areEqual(p.callersCode(), p.reply.code)) {
          fail(kj::str(WRONG_SECRET));
        }
        return p.result(p.call);
      })
      .attach(kj::mv(proof));
}

}  // namespace rpc
