// io/left_out.h: what an import passes over: how many, and the names of the first few, which may
// come from anybody's archive.
#pragma once

#include <kj/function.h>
#include <kj/string.h>
#include <kj/vector.h>

#include <cstdint>

#include "configs/language/printable.h"

namespace io {

// Told of what is left out, in one plain sentence each time.
using Warn = kj::Function<void(kj::StringPtr sentence)>;

using configs::printable;

class LeftOut {
public:
  // Names are kept as printable() gives them.
  void add(kj::StringPtr name);
  // `a (why), b (why), …`.
  void add(kj::StringPtr name, kj::StringPtr why);

  uint64_t count() const { return counted; }

  // The names of the first few, in the order they were added: "a, b, c", then ", …" if there are
  // more.
  kj::String names() const;

private:
  uint64_t counted = 0;
  kj::Vector<kj::String> first;
};

// "1 file", "2 files".
kj::String counted(uint64_t n, kj::StringPtr one, kj::StringPtr several);

}  // namespace io
