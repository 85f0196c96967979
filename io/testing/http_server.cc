#include "io/testing/http_server.h"

#include <kj/debug.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

namespace io {

namespace {

// Returns the head of a request, or null if the client closed the connection.
kj::Maybe<kj::String> readHead(int client) {
  kj::Vector<char> head;
  for (;;) {
    char next;
    if (::read(client, &next, 1) != 1) return nullptr;
    head.add(next);
    auto text = kj::str(head);
    if (text.endsWith("\r\n\r\n")) return kj::mv(text);
  }
}

// Returns the value of a header, or an empty text.
kj::String headerOf(kj::StringPtr head, kj::StringPtr name) {
  auto found = strstr(head.cStr(), kj::str("\r\n", name, ": ").cStr());
  if (found == nullptr) return nullptr;
  found += name.size() + 4;
  return kj::heapString(found, strstr(found, "\r\n") - found);
}

// Returns false if the client has closed the connection.
bool send(int client, kj::ArrayPtr<const kj::byte> bytes) {
  while (bytes.size() > 0) {
    auto n = ::send(client, bytes.begin(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0) return false;
    bytes = bytes.slice(n, bytes.size());
  }
  return true;
}

}  // namespace

HttpServer::HttpServer(ServedFile file) {
  int fd;
  KJ_SYSCALL(fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  listener = kj::AutoCloseFd(fd);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto generic = reinterpret_cast<sockaddr*>(&address);
  KJ_SYSCALL(::bind(fd, generic, size));
  KJ_SYSCALL(::listen(fd, 8));
  KJ_SYSCALL(::getsockname(fd, generic, &size));
  port = ntohs(address.sin_port);
  change(kj::mv(file));
  thread = kj::heap<kj::Thread>([this]() { serve(); });
}

HttpServer::~HttpServer() noexcept(false) {
  stop();
}

kj::String HttpServer::address(kj::StringPtr name) const {
  return kj::str("http://127.0.0.1:", port, "/", name);
}

void HttpServer::change(ServedFile file) {
  state.lockExclusive()->file = kj::mv(file);
}

void HttpServer::cutAfter(kj::ArrayPtr<const uint64_t> counts) {
  auto locked = state.lockExclusive();
  for (size_t i = counts.size(); i > 0; i--) locked->cuts.add(counts[i - 1]);
}

void HttpServer::stallAfter(uint64_t count) {
  cutAfter({count});
  state.lockExclusive()->stalls = true;
}

void HttpServer::refuse(kj::uint requests) {
  state.lockExclusive()->refusals = requests;
}

void HttpServer::stop() {
  if (thread == nullptr) return;
  // Wakes accept().
  KJ_SYSCALL(::shutdown(listener, SHUT_RDWR));
  thread = nullptr;
  listener = nullptr;
}

kj::String HttpServer::requests() const {
  return kj::strArray(state.lockShared()->requests, ", ");
}

void HttpServer::serve() {
  for (;;) {
    int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    kj::AutoCloseFd client(fd);
    answer(client);
  }
}

void HttpServer::answer(int client) {
  KJ_IF_MAYBE(head, readHead(client)) {
    bool isHead = head->startsWith("HEAD");
    auto range = headerOf(*head, "Range");
    auto condition = headerOf(*head, "If-Range");
    uint64_t first = 0;
    auto locked = state.lockExclusive();
    auto& file = locked->file;
    auto status = file.status;
    if (range.size() > 0) {
      KJ_REQUIRE(range.startsWith("bytes=") && range.endsWith("-"), range);
      first = strtoull(range.cStr() + strlen("bytes="), nullptr, 10);
    }
    locked->requests.add(
        kj::str(isHead ? "HEAD" : "GET", first > 0 ? kj::str(" from ", first) : kj::String()));
    bool isSame = condition.size() == 0 || condition == file.tag || condition == file.time;
    if (!isSame || !file.sendsParts) first = 0;
    if (isHead && !file.sendsHeads) status = 405;
    if (!isHead && locked->refusals > 0) {
      locked->refusals--;
      status = 503;
    }
    if (status == 200 && first > 0) status = first < file.bytes.size() ? 206 : 416;
    bool isFine = status == 200 || status == 206;
    auto line = [](kj::StringPtr name, kj::StringPtr value) {
      return value.size() > 0 ? kj::str(name, ": ", value, "\r\n") : kj::String();
    };
    auto all = file.size_bytes.orDefault(file.bytes.size());
    kj::String part;
    if (status == 206) part = kj::str("bytes ", first, "-", all - 1, "/", all);
    auto size = isFine ? all - first : 0;
    send(
        client, kj::str("HTTP/1.1 ", status, " x\r\nConnection: close\r\n",
                    line("Content-Length", file.saysSize || !isFine ? kj::str(size) : kj::String()),
                    line("Content-Range", part), line("ETag", file.tag),
                    line("Last-Modified", file.time), line("Content-Type", file.type), "\r\n")
                    .asBytes());
    if (isHead || !isFine) return;
    auto end = file.bytes.size();
    bool stalls = false;
    if (locked->cuts.size() > 0) {
      end = kj::min(end, first + locked->cuts.back());
      locked->cuts.removeLast();
      stalls = locked->stalls;
      locked->stalls = false;
    }
    auto content = kj::heapArray<kj::byte>(file.bytes.slice(first, end));
    // A test may call other functions while the client is slow.
    locked.release();
    send(client, content);
    if (stalls) readHead(client);
  }
}

}  // namespace io
