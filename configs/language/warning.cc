#include "configs/language/warning.h"

#include <errno.h>
#include <unistd.h>

#include <atomic>

#include "configs/language/printable.h"

namespace configs {

namespace {

void writeNow(kj::String line) {
  kj::StringPtr rest = line;
  while (rest.size() > 0) {
    auto n = ::write(STDERR_FILENO, rest.begin(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    rest = rest.slice(n);
  }
}

std::atomic<void (*)(kj::String line)> writer{&writeNow};

}  // namespace

void warn(kj::StringPtr sentence) {
  writer.load()(kj::str("warning: ", printable(sentence), "\n"));
}

void writeWarningsWith(void (*write)(kj::String line)) {
  writer = write;
}

}  // namespace configs
