#include "tests/faults/stranger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

namespace tests {

kj::Maybe<kj::AutoCloseFd> tryConnectTo(kj::StringPtr address) {
  auto colon = KJ_ASSERT_NONNULL(address.findLast(':'));
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_port = htons(atoi(address.slice(colon + 1).cStr()));
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int raw;
  KJ_SYSCALL(raw = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  kj::AutoCloseFd fd(raw);
  timeval patience = {PATIENCE_S, 0};
  KJ_SYSCALL(::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
  if (::connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0) return kj::mv(fd);
  // A closing listener resets connections that it has not accepted.
  bool isGone = errno == ECONNREFUSED || errno == ECONNRESET;
  KJ_REQUIRE(isGone, address, strerror(errno));
  return nullptr;
}

kj::AutoCloseFd connectTo(kj::StringPtr address) {
  return KJ_REQUIRE_NONNULL(tryConnectTo(address), "nobody listens there", address);
}

bool send(int fd, kj::ArrayPtr<const kj::byte> bytes) {
  if (::send(fd, bytes.begin(), bytes.size(), MSG_NOSIGNAL) >= 0) return true;
  KJ_REQUIRE(errno == EPIPE || errno == ECONNRESET, strerror(errno));
  return false;
}

kj::Vector<kj::String> addressesIn(kj::StringPtr text) {
  kj::Vector<kj::String> addresses;
  constexpr kj::StringPtr LOOPBACK = "127.0.0.1:"_kj;
  while (auto at = ::memmem(text.begin(), text.size(), LOOPBACK.begin(), LOOPBACK.size())) {
    text = text.slice(static_cast<const char*>(at) - text.begin());
    size_t end = LOOPBACK.size();
    while (text[end] >= '0' && text[end] <= '9') ++end;
    addresses.add(kj::heapString(text.slice(0, end)));
    text = text.slice(end);
  }
  return addresses;
}

}  // namespace tests
