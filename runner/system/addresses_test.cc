#include "runner/system/addresses.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/exception.h>
#include <kj/function.h>

#include "tests/text.h"

namespace runner {
namespace {

kj::String failureOf(kj::FunctionParam<void()> call) {
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { call(); })) return kj::str(e->getDescription());
  return kj::str();
}

TEST_CASE("whyNotCallable: refuses texts that are not addresses, and unreachable addresses") {
  for (auto good: {"10.0.0.4", "127.0.0.1", "fd00::1", "::1"}) {
    CAPTURE(good);
    CHECK(whyNotCallable(good) == nullptr);
  }
  for (auto bad:
      {"", "eth0", "10.0.0", "[fd00::1]", "0.0.0.0", "::", "::ffff:10.0.0.4", "fe80::1"}) {
    CAPTURE(bad);
    CHECK(whyNotCallable(bad) != nullptr);
  }
}

TEST_CASE("whyNoInterface: accepts names that Linux allows, and addresses that others can reach") {
  for (auto good: {"eth0", "enp0s31f6", "bond0.100", "10.0.0.4", "fd00::1"}) {
    CAPTURE(good);
    CHECK(whyNoInterface(good) == nullptr);
  }
  for (auto bad: {"", "0.0.0.0", "a name", "a/b", "sixteen_letters_"}) {
    CAPTURE(bad);
    CHECK(whyNoInterface(bad) != nullptr);
  }
}

TEST_CASE("addressOfInterface: finds the loopback, keeps an address, and lists the interfaces") {
  CHECK(addressOfInterface("lo") == "127.0.0.1");
  CHECK(addressOfInterface("10.9.8.7") == "10.9.8.7");
  CHECK(addressOfInterface("fd00::1") == "[fd00::1]");
  auto failure = failureOf([]() { addressOfInterface("nothing0"); });
  CHECK(tests::contains(failure, "no interface `nothing0`"));
  CHECK(tests::contains(failure, "lo 127.0.0.1"));
}

TEST_CASE("whyNotOwn: refuses an address that no interface has, and lists the existing ones") {
  for (auto own: {"127.0.0.1", "127.3.4.5", "[::1]"}) {
    CAPTURE(own);
    CHECK(whyNotOwn(own) == nullptr);
  }
  // For documentation only (RFC 5737, RFC 3849).
  for (auto foreign: {"203.0.113.77", "[2001:db8::1]"}) {
    CAPTURE(foreign);
    CHECK(tests::contains(KJ_ASSERT_NONNULL(whyNotOwn(foreign)), "It has: lo 127.0.0.1"));
  }
}

TEST_CASE("addressTowards: is the loopback if all hosts are this machine") {
  // Debian's /etc/hosts may give the machine's own name the address 127.0.1.1.
  CHECK(
      addressTowards(kj::ArrayPtr<const kj::StringPtr>({"127.0.1.1", "127.0.0.1"})) == "127.0.0.1");
}

TEST_CASE("addressTowards: names an unknown host, and says what to do") {
  auto failure = failureOf(
      []() { addressTowards(kj::ArrayPtr<const kj::StringPtr>({"no.such.host.invalid"})); });
  CHECK(tests::contains(failure, "no.such.host.invalid"));
  CHECK(tests::contains(failure, "cluster.interface"));
}

kj::Array<kj::String> list(std::initializer_list<kj::StringPtr> words) {
  return KJ_MAP(word, words) {
    return kj::str(word);
  };
}

kj::String chosen(kj::StringPtr host, bool isOneHost, std::initializer_list<kj::StringPtr> resolved,
    std::initializer_list<kj::StringPtr> interfaces) {
  return chooseAddress(host, isOneHost, list(resolved), list(interfaces));
}

TEST_CASE("ownAddressOf: a role listens at the address that its host's name has") {
  CHECK(chosen("node1", false, {"10.0.0.4"}, {"127.0.0.1", "10.0.0.4", "10.1.0.4"}) == "10.0.0.4");
  CHECK(chosen("node1", false, {"fd00::4", "10.0.0.4"}, {}) == "10.0.0.4");
  CHECK(chosen("node1", false, {"fd00::4"}, {}) == "[fd00::4]");
  CHECK(chosen("localhost", false, {"::1", "127.0.0.1"}, {"10.0.0.4"}) == "127.0.0.1");
  CHECK(chosen("127.0.0.1", false, {"127.0.0.1"}, {"10.0.0.4"}) == "127.0.0.1");
}

TEST_CASE("ownAddressOf: does not use 127.0.1.1 if other hosts must reach this one") {
  CHECK(chosen("node1", false, {"127.0.1.1"}, {"127.0.0.1", "::1", "10.0.0.4", "fd00::4"}) ==
        "10.0.0.4");
  CHECK(chosen("node1", false, {"127.0.1.1"}, {"127.0.0.1", "fd00::4"}) == "[fd00::4]");
  // All roles of a job on one host reach this address.
  CHECK(chosen("node1", true, {"127.0.1.1"}, {"127.0.0.1", "10.0.0.4"}) == "127.0.1.1");
}

TEST_CASE("ownAddressOf: throws if several other addresses are possible, which it lists, or none") {
  auto refused = [](std::initializer_list<kj::StringPtr> interfaces) {
    return failureOf([&]() { chosen("node1", false, {"127.0.1.1"}, interfaces); });
  };
  CHECK(refused({"127.0.0.1", "10.0.0.4", "10.1.0.4"}) ==
        "`node1` is 127.0.1.1 on this machine (/etc/hosts), which no other host reaches, and this "
        "machine has several addresses: 10.0.0.4, 10.1.0.4. Choose one with cluster.interface, or "
        "--listen "
        "ADDRESS");
  CHECK(tests::contains(refused({"127.0.0.1"}), "this machine has no other address"));
}

TEST_CASE("ownAddressOf: names a host that this machine cannot resolve") {
  auto failure = failureOf([]() { ownAddressOf("no-such-host.invalid", false); });
  CHECK(tests::contains(failure, "does not know the host `no-such-host.invalid`: "));
}

}  // namespace
}  // namespace runner
