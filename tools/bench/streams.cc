#include "tools/bench/streams.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tools {
namespace {

kj::AutoCloseFd newTcpSocket() {
  int fd;
  KJ_SYSCALL(fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  kj::AutoCloseFd own(fd);
  int one = 1;
  KJ_SYSCALL(::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
  return own;
}

}  // namespace

StreamPair newPipe() {
  int fds[2];
  KJ_SYSCALL(::pipe2(fds, O_CLOEXEC));
  return {kj::AutoCloseFd(fds[0]), kj::AutoCloseFd(fds[1])};
}

StreamPair newUnixStream() {
  int fds[2];
  KJ_SYSCALL(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
  return {kj::AutoCloseFd(fds[0]), kj::AutoCloseFd(fds[1])};
}

TcpMeeting::TcpMeeting(uint32_t at): listener(newTcpSocket()) {
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(at);
  socklen_t size = sizeof(address);
  auto any = reinterpret_cast<sockaddr*>(&address);
  KJ_SYSCALL(::bind(listener, any, size));
  KJ_SYSCALL(::listen(listener, 1));
  KJ_SYSCALL(::getsockname(listener, any, &size));
}

kj::AutoCloseFd TcpMeeting::connect() {
  auto near = newTcpSocket();
  KJ_SYSCALL(::connect(near, reinterpret_cast<sockaddr*>(&address), sizeof(address)));
  return near;
}

kj::AutoCloseFd TcpMeeting::accept() {
  int far;
  KJ_SYSCALL(far = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  // The accepted connection inherits the listener's TCP_NODELAY.
  return kj::AutoCloseFd(far);
}

StreamPair newTcpStream() {
  TcpMeeting meeting(INADDR_LOOPBACK);
  auto near = meeting.connect();
  return {kj::mv(near), meeting.accept()};
}

}  // namespace tools
