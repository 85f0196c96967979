// tools/bench/streams.h: what connects the processes of a bench.
#pragma once

#include <kj/io.h>
#include <netinet/in.h>

#include <cstdint>

namespace tools {

// Both ends of a connection; closed when a program is executed.
struct StreamPair {
  kj::AutoCloseFd near, far;
};

StreamPair newPipe();

// Where one TCP connection is made. Nobody can come between: the port listens for one, and that is
// made before anybody knows of it. Listener and near end may be in different network namespaces:
// each is in the one that the thread is in when it is made.
class TcpMeeting {
public:
  // `address`: of this namespace, in the machine's byte order.
  explicit TcpMeeting(uint32_t address);

  kj::AutoCloseFd connect();
  // After connect().
  kj::AutoCloseFd accept();

private:
  kj::AutoCloseFd listener;
  sockaddr_in address{};
};

}  // namespace tools
