#include "runner/roles/role_addresses.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

TEST_CASE("parseHostAndPort: accepts a host with a port, and nothing else") {
  auto both = KJ_ASSERT_NONNULL(parseHostAndPort("node1:7000"));
  CHECK(both.host == "node1");
  CHECK(both.port == 7000);
  CHECK(KJ_ASSERT_NONNULL(parseHostAndPort("[fd00::4]:7000")).host == "[fd00::4]");
  for (auto text: {"node1", ":7000", "node1:", "node1:0", "node1:65536", "node1:7000-7001",
           "fd00::4:7000", "node1:x", ""}) {
    INFO(text);
    CHECK(parseHostAndPort(text) == nullptr);
  }
}

}  // namespace
}  // namespace runner
