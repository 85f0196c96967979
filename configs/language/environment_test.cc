#include "configs/language/environment.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <stdlib.h>

namespace configs {
namespace {

TEST_CASE("cacheFolder: takes the first variable that is set and not empty") {
  KJ_ASSERT(::setenv("RUNNER_CACHE", "/a", 1) == 0);
  KJ_ASSERT(::setenv("XDG_CACHE_HOME", "/b", 1) == 0);
  KJ_ASSERT(::setenv("HOME", "/c", 1) == 0);
  CHECK(cacheFolder() == "/a");
  KJ_ASSERT(::setenv("RUNNER_CACHE", "", 1) == 0);
  CHECK(cacheFolder() == "/b/runner");
  KJ_ASSERT(::unsetenv("XDG_CACHE_HOME") == 0);
  CHECK(cacheFolder() == "/c/.cache/runner");
  KJ_ASSERT(::unsetenv("HOME") == 0);
  auto e = kj::runCatchingExceptions([]() { cacheFolder(); });
  CHECK(KJ_ASSERT_NONNULL(e).getDescription().endsWith(
      "no cache folder: HOME is not set. Set RUNNER_CACHE to a folder"));
}

}  // namespace
}  // namespace configs
