#include "runner/system/addresses.h"

#include <doctest/doctest.h>
#include <kj/exception.h>
#include <kj/function.h>

#include "tests/text.h"

namespace runner {
namespace {

kj::String failureOf(kj::FunctionParam<void()> call) {
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { call(); })) return kj::str(e->getDescription());
  return kj::str();
}

TEST_CASE("whyNotCallable: refuses what is no address, or what only this machine can call") {
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

TEST_CASE("whyNoInterface: takes the names that Linux allows, and addresses that others can call") {
  for (auto good: {"eth0", "enp0s31f6", "bond0.100", "10.0.0.4", "fd00::1"}) {
    CAPTURE(good);
    CHECK(whyNoInterface(good) == nullptr);
  }
  for (auto bad: {"", "0.0.0.0", "a name", "a/b", "sixteen_letters_"}) {
    CAPTURE(bad);
    CHECK(whyNoInterface(bad) != nullptr);
  }
}

TEST_CASE("addressOfInterface: finds the loopback, keeps an address, and lists what there is") {
  CHECK(addressOfInterface("lo") == "127.0.0.1");
  CHECK(addressOfInterface("10.9.8.7") == "10.9.8.7");
  CHECK(addressOfInterface("fd00::1") == "[fd00::1]");
  auto failure = failureOf([]() { addressOfInterface("nothing0"); });
  CHECK(tests::contains(failure, "no interface `nothing0`"));
  CHECK(tests::contains(failure, "lo 127.0.0.1"));
}

TEST_CASE("addressTowards: is the loopback if all hosts are this machine") {
  // Debian's /etc/hosts may give the machine's own name the address 127.0.1.1.
  CHECK(
      addressTowards(kj::ArrayPtr<const kj::StringPtr>({"127.0.1.1", "127.0.0.1"})) == "127.0.0.1");
}

TEST_CASE("addressTowards: says which name it does not know, and the way out") {
  auto failure = failureOf(
      []() { addressTowards(kj::ArrayPtr<const kj::StringPtr>({"no.such.host.invalid"})); });
  CHECK(tests::contains(failure, "no.such.host.invalid"));
  CHECK(tests::contains(failure, "cluster.interface"));
}

}  // namespace
}  // namespace runner
