#include "rpc/wire/encryption.h"

#include <kj/debug.h>
#include <kj/vector.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

namespace rpc {

namespace {

// How many encrypted bytes are read at a time: two of TLS's largest records.
constexpr size_t READ_BYTES = 33 << 10;
// How many bytes are encrypted before they are passed to the kernel.
constexpr size_t WRITE_BYTES = 128 << 10;
// TLS's largest record.
constexpr size_t RECORD_BYTES = 16 << 10;
// After this many records, the key is changed. AES-GCM is safe for 2^24 records (RFC 8446, 5.5).
constexpr kj::uint RECORDS_PER_KEY = 1 << 16;

constexpr kj::byte CIPHER[] = {0x13, 0x01};  // TLS_AES_128_GCM_SHA256
constexpr kj::StringPtr KEY_NAME = "connection"_kj;

[[noreturn]] void fail(kj::Exception::Type type, kj::StringPtr why) {
  kj::throwFatalException(kj::Exception(type, __FILE__, __LINE__, kj::heapString(why)));
}

class Encrypted final: public kj::AsyncIoStream {
public:
  Encrypted(kj::Own<kj::AsyncIoStream> ownRaw, const Secret& key, End end)
      : raw(kj::mv(ownRaw)),
        key(key),
        ssl(SSL_new(&context())),
        buffer(kj::heapArray<kj::byte>(READ_BYTES)) {
    KJ_REQUIRE(ssl != nullptr, "libssl has no room for a connection");
    SSL_set_app_data(ssl, this);
    auto bio = BIO_new(&throughThis());
    KJ_REQUIRE(bio != nullptr, "libssl has no room for a connection");
    BIO_set_data(bio, this);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    if (end == End::CALLER) {
      SSL_set_connect_state(ssl);
      // A stranger could answer with a certificate instead of the key. The caller trusts none, and
      // the listener has none.
      SSL_set_verify(ssl, SSL_VERIFY_PEER, nullptr);
    } else {
      SSL_set_accept_state(ssl);
    }
  }
  ~Encrypted() noexcept(false) { SSL_free(ssl); }
  KJ_DISALLOW_COPY(Encrypted);

  kj::Promise<void> shakeHands() {
    ERR_clear_error();
    int result = SSL_do_handshake(ssl);
    int error = SSL_get_error(ssl, result);
    // If the handshake has failed, this informs the other end.
    return flush().then([this, result, error]() -> kj::Promise<void> {
      if (result == 1 && SSL_session_reused(ssl) == 1) return kj::READY_NOW;
      if (error != SSL_ERROR_WANT_READ) fail(kj::Exception::Type::FAILED, RELAYED);
      return fetch().then([this](bool isOpen) {
        if (!isOpen) fail(kj::Exception::Type::DISCONNECTED, "it closed the connection");
        return shakeHands();
      });
    });
  }

  kj::Promise<size_t> tryRead(void* to, size_t minBytes, size_t maxBytes) override {
    return kj::evalNow(
        [&]() { return read(reinterpret_cast<kj::byte*>(to), minBytes, maxBytes, 0); });
  }
  kj::Promise<void> write(const void* bytes, size_t size) override {
    auto piece = kj::arrayPtr(reinterpret_cast<const kj::byte*>(bytes), size);
    return kj::evalNow([&]() { return send(piece, nullptr); });
  }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    return kj::evalNow([&]() { return send(nullptr, pieces); });
  }
  // The end of what this end sends. RPC's messages contain their lengths, so the end needs no
  // signature: anybody who could fake it could also cut the connection.
  void shutdownWrite() override { raw->shutdownWrite(); }

  kj::Promise<void> whenWriteDisconnected() override { return raw->whenWriteDisconnected(); }
  void abortRead() override { raw->abortRead(); }
  void getsockopt(int level, int option, void* value, kj::uint* length) override {
    raw->getsockopt(level, option, value, length);
  }
  void setsockopt(int level, int option, const void* value, kj::uint length) override {
    raw->setsockopt(level, option, value, length);
  }
  void getsockname(sockaddr* address, kj::uint* length) override {
    raw->getsockname(address, length);
  }
  void getpeername(sockaddr* address, kj::uint* length) override {
    raw->getpeername(address, length);
  }
  kj::Maybe<int> getFd() const override { return raw->getFd(); }

private:
  // Reads encrypted bytes. Resolves to false at the end of the stream.
  kj::Promise<bool> fetch() {
    return raw->tryRead(buffer.begin(), 1, buffer.size()).then([this](size_t n) {
      incoming = buffer.slice(0, n);
      return n > 0;
    });
  }

  // Sends the encrypted bytes.
  kj::Promise<void> flush() {
    if (outgoing.size() == 0) return kj::READY_NOW;
    // Meanwhile, reading a record may add an alert to `outgoing`.
    auto empty = kj::mv(sending);
    sending = kj::mv(outgoing);
    outgoing = kj::mv(empty);
    return raw->write(sending.begin(), sending.size()).then([this]() { sending.clear(); });
  }

  // `done` bytes have already been read.
  kj::Promise<size_t> read(kj::byte* to, size_t minBytes, size_t maxBytes, size_t done) {
    for (;;) {
      size_t n = 0;
      ERR_clear_error();
      int result = SSL_read_ex(ssl, to + done, maxBytes - done, &n);
      done += n;
      if (done >= minBytes) return done;
      if (result == 1) continue;
      int error = SSL_get_error(ssl, result);
      if (error == SSL_ERROR_ZERO_RETURN) return done;
      if (error != SSL_ERROR_WANT_READ) {
        fail(kj::Exception::Type::DISCONNECTED, "somebody has changed what the other end sent");
      }
      return fetch().then([this, to, minBytes, maxBytes, done](bool isOpen) -> kj::Promise<size_t> {
        if (!isOpen) return done;
        return read(to, minBytes, maxBytes, done);
      });
    }
  }

  kj::Promise<void> send(
      kj::ArrayPtr<const kj::byte> piece, kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> others) {
    while (outgoing.size() < WRITE_BYTES) {
      if (piece.size() == 0) {
        if (others.size() == 0) return flush();
        piece = others[0];
        others = others.slice(1, others.size());
        continue;
      }
      size_t n = kj::min(piece.size(), RECORD_BYTES);
      encryptRecord(piece.slice(0, n));
      piece = piece.slice(n, piece.size());
    }
    return flush().then([this, piece, others]() { return send(piece, others); });
  }

  void encryptRecord(kj::ArrayPtr<const kj::byte> bytes) {
    ERR_clear_error();
    if (++records % RECORDS_PER_KEY == 0) SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
    size_t n = 0;
    int result = SSL_write_ex(ssl, bytes.begin(), bytes.size(), &n);
    if (result != 1 || n != bytes.size()) {
      fail(kj::Exception::Type::DISCONNECTED, "libssl cannot encrypt any more");
    }
  }

  // What all connections have in common.
  static SSL_CTX& context() {
    static SSL_CTX* const context = []() {
      auto made = SSL_CTX_new(TLS_method());
      KJ_REQUIRE(made != nullptr, "libssl does not start");
      SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION);
      KJ_REQUIRE(SSL_CTX_set_ciphersuites(made, "TLS_AES_128_GCM_SHA256") == 1);
      SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
      SSL_CTX_set_num_tickets(made, 0);
      SSL_CTX_set_psk_use_session_callback(made, offerKey);
      SSL_CTX_set_psk_find_session_callback(made, findKey);
      return made;
    }();
    return *context;
  }

  // Makes a TLS session from the shared key.
  SSL_SESSION* newSession() {
    auto session = SSL_SESSION_new();
    auto cipher = SSL_CIPHER_find(ssl, CIPHER);
    auto bytes = key.sign({"tls"_kj.asBytes()});
    bool isMade = session != nullptr && cipher != nullptr &&
                  SSL_SESSION_set1_master_key(session, bytes.begin(), bytes.size()) == 1 &&
                  SSL_SESSION_set_cipher(session, cipher) == 1 &&
                  SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
    OPENSSL_cleanse(bytes.begin(), bytes.size());
    if (isMade) return session;
    SSL_SESSION_free(session);
    return nullptr;
  }

  // The caller names the key.
  static int offerKey(
      SSL* ssl, const EVP_MD*, const unsigned char** name, size_t* size, SSL_SESSION** session) {
    *session = static_cast<Encrypted*>(SSL_get_app_data(ssl))->newSession();
    *name = KEY_NAME.asBytes().begin();
    *size = KEY_NAME.size();
    return *session == nullptr ? 0 : 1;
  }

  // The listener looks for it. Without a session, the handshake fails.
  static int findKey(SSL* ssl, const unsigned char* name, size_t size, SSL_SESSION** session) {
    *session = nullptr;
    if (kj::arrayPtr(name, size) != KEY_NAME.asBytes()) return 1;
    *session = static_cast<Encrypted*>(SSL_get_app_data(ssl))->newSession();
    return *session == nullptr ? 0 : 1;
  }

  // libssl reads from `incoming` and writes to `outgoing`.
  static const BIO_METHOD& throughThis() {
    static const BIO_METHOD* const method = []() {
      auto made = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "stream");
      KJ_REQUIRE(made != nullptr, "libssl does not start");
      BIO_meth_set_read_ex(made, take);
      BIO_meth_set_write_ex(made, give);
      BIO_meth_set_ctrl(
          made, [](BIO*, int command, long, void*) { return long(command == BIO_CTRL_FLUSH); });
      return made;
    }();
    return *method;
  }
  static int take(BIO* bio, char* to, size_t size, size_t* taken) {
    auto& incoming = static_cast<Encrypted*>(BIO_get_data(bio))->incoming;
    BIO_clear_retry_flags(bio);
    *taken = kj::min(size, incoming.size());
    if (*taken == 0) {
      BIO_set_retry_read(bio);
      return 0;
    }
    memcpy(to, incoming.begin(), *taken);
    incoming = incoming.slice(*taken, incoming.size());
    return 1;
  }
  static int give(BIO* bio, const char* from, size_t size, size_t* given) {
    static_cast<Encrypted*>(BIO_get_data(bio))->outgoing.addAll(kj::arrayPtr(from, size).asBytes());
    *given = size;
    return 1;
  }

  kj::Own<kj::AsyncIoStream> raw;
  const Secret key;
  SSL* ssl;
  kj::Array<kj::byte> buffer;
  kj::ArrayPtr<const kj::byte> incoming;  // the part of `buffer` that libssl has not read
  kj::Vector<kj::byte> outgoing;          // encrypted, not sent
  kj::Vector<kj::byte> sending;           // what is being sent
  kj::uint records = 0;
};

}  // namespace

kj::Promise<kj::Own<kj::AsyncIoStream>> encrypt(
    kj::Own<kj::AsyncIoStream> stream, const Secret& key, End end) {
  auto encrypted = kj::heap<Encrypted>(kj::mv(stream), key, end);
  auto done = kj::evalNow([&]() { return encrypted->shakeHands(); });
  return done.then([encrypted = kj::mv(encrypted)]() mutable -> kj::Own<kj::AsyncIoStream> {
    return kj::mv(encrypted);
  });
}

}  // namespace rpc
