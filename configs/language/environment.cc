#include "configs/language/environment.h"

#include <stdlib.h>

#include "configs/language/failure.h"

namespace configs {

kj::Maybe<kj::StringPtr> environment(const char* name) {
  auto value = ::getenv(name);
  if (value == nullptr || *value == '\0') return nullptr;
  return kj::StringPtr(value);
}

kj::String cacheFolder() {
  KJ_IF_MAYBE(folder, environment("RUNNER_CACHE")) return kj::str(*folder);
  KJ_IF_MAYBE(folder, environment("XDG_CACHE_HOME")) return kj::str(*folder, "/runner");
  KJ_IF_MAYBE(folder, environment("HOME")) return kj::str(*folder, "/.cache/runner");
  fail("no cache folder: HOME is not set. Set RUNNER_CACHE to a folder");
}

}  // namespace configs
