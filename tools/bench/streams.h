// tools/bench/streams.h: the connections between processes of a bench.
#pragma once

#include <kj/io.h>
#include <netinet/in.h>

#include <cstdint>

namespace tools {

// Both ends of a connection. They are closed when another program is executed.
struct StreamPair {
  kj::AutoCloseFd near, far;
};

// The near end is for reading, and the far end for writing.
StreamPair newPipe();
StreamPair newUnixStream();
// Over the loopback.
StreamPair newTcpStream();

// Makes one TCP connection. Nobody else can connect: the port listens for one connection, which is
// made before anybody knows the port. Listener and near end may be in different network namespaces:
// each is in the namespace of the thread when it is made.
class TcpMeeting {
public:
  // `address` belongs to this namespace, in the machine's byte order.
  explicit TcpMeeting(uint32_t address);

  uint16_t port() const { return ntohs(address.sin_port); }
  // Returns the near end.
  kj::AutoCloseFd connect();
  // Call it after connect().
  kj::AutoCloseFd accept();

private:
  kj::AutoCloseFd listener;
  sockaddr_in address{};
};

}  // namespace tools
