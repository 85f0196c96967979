#include "runner/roles/role_addresses.h"

#include <doctest/doctest.h>

#include "runner/system/reason.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

kj::Array<kj::String> list(std::initializer_list<kj::StringPtr> words) {
  return KJ_MAP(word, words) {
    return kj::str(word);
  };
}

kj::String chosen(kj::StringPtr host, bool isOneHost, std::initializer_list<kj::StringPtr> resolved,
    std::initializer_list<kj::StringPtr> interfaces) {
  return chooseAddress(host, isOneHost, list(resolved), list(interfaces));
}

TEST_CASE("Addresses: a host and a port, and nothing else") {
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

TEST_CASE("Addresses: a role listens at the address that its host's name has") {
  CHECK(chosen("node1", false, {"10.0.0.4"}, {"127.0.0.1", "10.0.0.4", "10.1.0.4"}) == "10.0.0.4");
  CHECK(chosen("node1", false, {"[fd00::4]", "10.0.0.4"}, {}) == "10.0.0.4");
  CHECK(chosen("node1", false, {"[fd00::4]"}, {}) == "[fd00::4]");
  CHECK(chosen("localhost", false, {"[::1]", "127.0.0.1"}, {"10.0.0.4"}) == "127.0.0.1");
  CHECK(chosen("127.0.0.1", false, {"127.0.0.1"}, {"10.0.0.4"}) == "127.0.0.1");
}

TEST_CASE("Addresses: 127.0.1.1 is no address of a host that others call by its name") {
  CHECK(chosen("node1", false, {"127.0.1.1"}, {"127.0.0.1", "[::1]", "10.0.0.4", "[fd00::4]"}) ==
        "10.0.0.4");
  CHECK(chosen("node1", false, {"127.0.1.1"}, {"127.0.0.1", "[fd00::4]"}) == "[fd00::4]");
  // All roles of a job on one host reach it there.
  CHECK(chosen("node1", true, {"127.0.1.1"}, {"127.0.0.1", "10.0.0.4"}) == "127.0.1.1");
}

TEST_CASE("Addresses: several networks, or none, are refused by name") {
  auto refused = [](std::initializer_list<kj::StringPtr> interfaces) {
    auto e =
        kj::runCatchingExceptions([&]() { chosen("node1", false, {"127.0.1.1"}, interfaces); });
    return reasonOf(KJ_ASSERT_NONNULL(e));
  };
  CHECK(refused({"127.0.0.1", "10.0.0.4", "10.1.0.4"}) ==
        "`node1` is 127.0.1.1 on this machine (/etc/hosts), which no other host reaches, and this "
        "machine has several addresses: 10.0.0.4, 10.1.0.4. Choose one with cluster.interface, or "
        "--listen "
        "ADDRESS");
  CHECK(contains(refused({"127.0.0.1"}), "this machine has no other address"));
}

TEST_CASE("Addresses: a host that this machine does not know is named") {
  auto e = kj::runCatchingExceptions([]() { ownAddressOf("no-such-host.invalid", false); });
  CHECK(
      contains(reasonOf(KJ_ASSERT_NONNULL(e)), "does not know the host `no-such-host.invalid`: "));
}

}  // namespace
}  // namespace runner
