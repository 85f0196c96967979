#include "runner/reason.h"

#include <string.h>
#include <sys/resource.h>

namespace runner {

namespace {

bool contains(kj::StringPtr text, kj::StringPtr part) {
  return strstr(text.cStr(), part.cStr()) != nullptr;
}

}  // namespace

kj::String reasonOf(const kj::Exception& exception) {
  constexpr kj::StringPtr REMOTE = "remote exception: "_kj;
  auto text = kj::str(exception.getDescription());
  while (const char* at = strstr(text.cStr(), REMOTE.cStr())) {
    text = kj::str(text.slice(0, at - text.cStr()), at + REMOTE.size());
  }
  // Lines within a message would be taken for further messages.
  for (char& c: text) {
    if (c == '\n') c = ' ';
  }
  if (contains(text, "std::bad_alloc")) {
    return kj::str(
        "memory ran out: make data.batch_size smaller or start fewer workers "
        "(`runner explain` says what a worker needs)");
  }
  // Which file it was does not matter, and often it has no name. A limit of the whole system is
  // another matter.
  rlimit limit;
  if (contains(text, "Too many open files") && !contains(text, "Too many open files in system") &&
      ::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    return kj::str("cannot open more files: the limit (`ulimit -n`) is ", limit.rlim_cur,
        "; raise it: `ulimit -n 4096`");
  }
  return text;
}

kj::String lastReportedStep(uint64_t step) {
  if (step == 0) return kj::str("no step was reported yet");
  return kj::str("last reported step: ", step);
}

}  // namespace runner
