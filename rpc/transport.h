// rpc/transport.h: the closed table of transports, by which workers reach servers.
#pragma once

#include <kj/array.h>

namespace rpc {

// A row of the table of `transport`.
struct Transport {
  const char* name;  // auto, tcp, unix, shared_memory
  const char* doc;
  // Whether servers listen on a Unix socket, and workers try it first.
  bool hasLocal;
  // Whether workers share memory with the servers of their machine.
  bool sharesMemory;
  // Whether it is an error if a server cannot be reached in this way. Otherwise TCP is used.
  bool isRequired;
};
extern const kj::ArrayPtr<const Transport> TRANSPORTS;  // the first is the default
extern const Transport& TCP;

}  // namespace rpc
