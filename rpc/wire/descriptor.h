// rpc/wire/descriptor.h: a file descriptor as a capability, to be passed beside a message.
#pragma once

#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>

#include "rpc/kvstore.capnp.h"

namespace rpc {

// Another descriptor of the same open file.
inline kj::AutoCloseFd duplicate(int descriptor) {
  int raw;
  KJ_SYSCALL(raw = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  return kj::AutoCloseFd(raw);
}

// Hands out a descriptor of its own.
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
