// rpc/wire/descriptor.h: passes a file descriptor beside a message, as a capability.
#pragma once

#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>

#include "rpc/kvstore.capnp.h"

namespace rpc {

// Returns another descriptor of the same open file.
inline kj::AutoCloseFd duplicate(int descriptor) {
  int raw;
  KJ_SYSCALL(raw = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  return kj::AutoCloseFd(raw);
}

// A capability that carries a duplicate of a descriptor.
class PassedDescriptor final: public Descriptor::Server {
public:
  explicit PassedDescriptor(int descriptor): own(duplicate(descriptor)) {}

  kj::Maybe<int> getFd() override { return own.get(); }

private:
  kj::AutoCloseFd own;
};

inline Descriptor::Client passed(int descriptor) {
  return kj::heap<PassedDescriptor>(descriptor);
}

}  // namespace rpc
