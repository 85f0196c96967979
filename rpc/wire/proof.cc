#include "rpc/wire/proof.h"

#include <kj/debug.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/random.h>

namespace rpc {

namespace {

using Bytes = kj::ArrayPtr<const kj::byte>;

// What both ends send first, with the version of the proof.
constexpr char PROGRAM[] = {'r', 'u', 'n', 'n', 'e', 'r', '\0', '\1'};

// The messages as they travel. Names end with zeros.
struct Call {
  char program[sizeof(PROGRAM)];
  char name[NAME_BYTES_MAX];
  kj::byte challenge[32];
};
struct Answer {
  char program[sizeof(PROGRAM)];
  char name[NAME_BYTES_MAX];
  kj::byte challenge[32];
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

void draw(kj::byte (&challenge)[32]) {
  ssize_t n;
  KJ_SYSCALL(n = ::getrandom(challenge, sizeof(challenge), 0));
  KJ_ASSERT(n == sizeof(challenge));
}

using Code = kj::FixedArray<kj::byte, Secret::BYTES>;

// In a time that does not depend on where they differ.
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

  // Reads exactly one message, and looks at its first bytes as soon as they are there.
  template <typename T>
  kj::Promise<void> receive(T& message) {
    auto program = read(message.program, sizeof(PROGRAM));
    return program.then([this, &message]() {
      if (memcmp(message.program, PROGRAM, sizeof(PROGRAM)) != 0) {
        fail(kj::str("it is not this program, or another version of it"));
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

  // `direction` keeps a code from being sent back.
  Code code(kj::StringPtr direction) const {
    return own.secret.sign(
        {direction.asBytes(), bytesOf(call), bytesOf(answer.name), bytesOf(answer.challenge)});
  }
  Code callersCode() const { return code("caller  "_kj); }
  Code listenersCode() const { return code("listener"_kj); }

  kj::AsyncIoStream& stream;
  const Identity& own;
  Call call;
  Answer answer;
  Reply reply;
};

}  // namespace

kj::Promise<void> proveAsCaller(
    kj::AsyncIoStream& stream, const Identity& own, kj::StringPtr other) {
  auto proof = kj::heap<Proof>(stream, own);
  auto& p = *proof;
  memcpy(p.call.program, PROGRAM, sizeof(PROGRAM));
  setName(p.call.name, own.name);
  draw(p.call.challenge);
  return p.send(p.call)
      .then([&p]() { return p.receive(p.answer); })
      .then([&p, other]() {
        if (!areEqual(p.listenersCode(), p.answer.code)) {
          fail(kj::str(WRONG_SECRET));
        }
        char expected[NAME_BYTES_MAX];
        setName(expected, other);
        if (memcmp(p.answer.name, expected, sizeof(expected)) != 0) {
          fail(kj::str("it is another role of this job than ", other));
        }
        memcpy(p.reply.code, p.callersCode().begin(), sizeof(p.reply.code));
        return p.send(p.reply);
      })
      .attach(kj::mv(proof));
}

kj::Promise<void> proveAsListener(kj::AsyncIoStream& stream, const Identity& own) {
  auto proof = kj::heap<Proof>(stream, own);
  auto& p = *proof;
  return p.receive(p.call)
      .then([&p]() {
        memcpy(p.answer.program, PROGRAM, sizeof(PROGRAM));
        setName(p.answer.name, p.own.name);
        draw(p.answer.challenge);
        memcpy(p.answer.code, p.listenersCode().begin(), sizeof(p.answer.code));
        return p.send(p.answer);
      })
      .then([&p]() {
        return p.receive(p.reply).catch_([](kj::Exception&& e) {
          if (e.getType() != kj::Exception::Type::DISCONNECTED) kj::throwFatalException(kj::mv(e));
          // Most likely it has noticed itself that the secrets differ.
          fail(kj::str("it left without a proof; has it another secret?"));
        });
      })
      .then([&p]() {
        if (!areEqual(p.callersCode(), p.reply.code)) {
          fail(kj::str(WRONG_SECRET));
        }
      })
      .attach(kj::mv(proof));
}

}  // namespace rpc
