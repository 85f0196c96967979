#include "configs/language/warning.h"

#include <errno.h>
#include <unistd.h>

#include "configs/language/printable.h"

namespace configs {

void warn(kj::StringPtr sentence) {
  auto line = kj::str("warning: ", printable(sentence), "\n");
  kj::StringPtr rest = line;
  while (rest.size() > 0) {
    auto n = ::write(STDERR_FILENO, rest.begin(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    rest = rest.slice(n);
  }
}

}  // namespace configs
