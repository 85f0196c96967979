// io/left_out.h: the items that an import skips: their number, and the names of the first few.
// Names may come from untrusted archives.
#pragma once

#include <kj/function.h>
#include <kj/string.h>
#include <kj/vector.h>

#include <cstdint>

#include "configs/language/printable.h"

namespace io {

// Called with one plain sentence for each thing that is left out.
using Warn = kj::Function<void(kj::StringPtr sentence)>;

using configs::printable;

// Counts what is left out, and keeps the first few names.
class LeftOut {
public:
  // Adds a name, which is stored as printable() returns it.
  void add(kj::StringPtr name);
  // Adds a name with its reason: `a (why), b (why), …`.
  void add(kj::StringPtr name, kj::StringPtr why);

  // Adds what `other` counts, with `folder` before each name.
  void addAll(const LeftOut& other, kj::StringPtr folder);

  uint64_t count() const { return counted; }

  // Returns the names of the first few, in the order in which they were added: "a, b, c", and then
  // ", …" if there are more.
  kj::String names() const;

private:
  uint64_t counted = 0;
  kj::Vector<kj::String> first;
};

// Returns "1 file", "2 files".
kj::String counted(uint64_t n, kj::StringPtr one, kj::StringPtr several);

}  // namespace io
