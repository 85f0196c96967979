#include "io/left_out.h"

namespace io {

namespace {

// How many names a sentence has.
constexpr size_t NAMES_MAX = 5;

}  // namespace

void LeftOut::add(kj::StringPtr name) {
  ++counted;
  if (first.size() < NAMES_MAX) first.add(printable(name));
}

void LeftOut::add(kj::StringPtr name, kj::StringPtr why) {
  add(kj::str(name, " (", why, ")"));
}

void LeftOut::addAll(const LeftOut& other, kj::StringPtr folder) {
  counted += other.counted;
  for (auto& name: other.first) {
    if (first.size() < NAMES_MAX) first.add(kj::str(printable(folder), name));
  }
}

kj::String LeftOut::names() const {
  return kj::str(kj::strArray(first, ", "), counted > first.size() ? ", …" : "");
}

kj::String counted(uint64_t n, kj::StringPtr one, kj::StringPtr several) {
  return kj::str(n, " ", n == 1 ? one : several);
}

}  // namespace io
