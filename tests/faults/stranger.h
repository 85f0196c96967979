// tests/faults/stranger.h: a listening port that does not belong to the job, and connections to
// those that do.
#pragma once

#include <arpa/inet.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/command.h"

namespace tests {

// Listens on a port of its own, and accepts connections.
struct Stranger {
  Stranger() {
    sockaddr_in name = {};
    socklen_t size = sizeof(name);
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto address = reinterpret_cast<sockaddr*>(&name);
    int raw;
    KJ_SYSCALL(raw = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    listener = kj::AutoCloseFd(raw);
    timeval patience = {PATIENCE_S, 0};
    KJ_SYSCALL(::setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
    KJ_SYSCALL(::bind(listener, address, size));
    KJ_SYSCALL(::listen(listener, 1));
    KJ_SYSCALL(::getsockname(listener, address, &size));
    port = ntohs(name.sin_port);
  }

  kj::AutoCloseFd accept() {
    int raw;
    KJ_SYSCALL(raw = ::accept(listener, nullptr, nullptr));
    return kj::AutoCloseFd(raw);
  }

  kj::AutoCloseFd listener;
  uint port;
};

// Connect to `127.0.0.1:port`. If nobody listens there any more, the first returns null and the
// second throws.
kj::Maybe<kj::AutoCloseFd> tryConnectTo(kj::StringPtr address);
kj::AutoCloseFd connectTo(kj::StringPtr address);

// Sends all bytes. Returns false if the other end closes before.
bool send(int fd, kj::ArrayPtr<const kj::byte> bytes);

// Returns each `127.0.0.1:port` in `text`.
kj::Vector<kj::String> addressesIn(kj::StringPtr text);

}  // namespace tests
