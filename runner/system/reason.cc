#include "runner/system/reason.h"

#include <kj/vector.h>
#include <string.h>
#include <sys/resource.h>

namespace runner {

namespace {

bool contains(kj::StringPtr text, kj::StringPtr part) {
  return strstr(text.cStr(), part.cStr()) != nullptr;
}

// Returns the limit of this process on `resource`, or null if there is no limit.
kj::Maybe<rlim_t> limitOn(__rlimit_resource resource) {
  rlimit limit;
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return nullptr;
  return limit.rlim_cur;
}

constexpr rlim_t KILOBYTE = 1024;  // the unit of `ulimit -v`

// Returns the system's reason why a process or a thread could not be started.
kj::String whyNotStarted() {
  kj::Vector<kj::String> limits;
  KJ_IF_MAYBE(limit, limitOn(RLIMIT_NPROC)) {
    limits.add(kj::str("the limit on processes and threads (`ulimit -u`), which is ", *limit));
  }
  KJ_IF_MAYBE(limit, limitOn(RLIMIT_AS)) {
    limits.add(kj::str("the limit on memory (`ulimit -v`), which is ", *limit / KILOBYTE, " kB"));
  }
  return kj::str("cannot start another process or thread; raise ",
      limits.empty() ? kj::str("the limit of the system or of its container (pids.max)")
                     : kj::strArray(limits, ", or "));
}

}  // namespace

kj::String reasonOf(const kj::Exception& exception) {
  constexpr kj::StringPtr REMOTE = "remote exception: "_kj;
  auto text = kj::str(exception.getDescription());
  bool isRemote = false;
  while (const char* at = strstr(text.cStr(), REMOTE.cStr())) {
    isRemote = true;
    text = kj::str(text.slice(0, at - text.cStr()), at + REMOTE.size());
  }
  // A message must be one line, because a reader of the launcher's pipe takes each line as a
  // message.
  for (char& c: text) {
    if (c == '\n') c = ' ';
  }
  // The text may name a file, but the file is not the problem: memory is.
  if (contains(text, "std::bad_alloc") || contains(text, "Cannot allocate memory")) {
    KJ_IF_MAYBE(limit, isRemote ? nullptr : limitOn(RLIMIT_AS)) {
      return kj::str("memory ran out: the limit (`ulimit -v`) is ", *limit / KILOBYTE,
          " kB; raise it: `ulimit -v unlimited`");
    }
    return kj::str(
        "memory ran out: make data.batch_size smaller or start fewer workers "
        "(`runner explain` says what a worker needs)");
  }
  // The file does not matter, and often has no name. A limit of the whole system needs other
  // advice.
  if (contains(text, "Too many open files") && !contains(text, "Too many open files in system")) {
    if (isRemote) return kj::str(text, "; raise the limit of that process (`ulimit -n`)");
    KJ_IF_MAYBE(limit, limitOn(RLIMIT_NOFILE)) {
      return kj::str("cannot open more files: the limit (`ulimit -n`) is ", *limit,
          "; raise it: `ulimit -n 4096`");
    }
  }
  if (contains(text, "Resource temporarily unavailable")) return whyNotStarted();
  return text;
}

kj::String lastReportedStep(uint64_t step) {
  if (step == 0) return kj::str("no step was reported yet");
  return kj::str("last reported step: ", step);
}

}  // namespace runner
