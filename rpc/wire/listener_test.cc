#include "rpc/wire/listener.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <string.h>

namespace rpc {
namespace {

bool contains(kj::StringPtr text, kj::StringPtr part) {
  return strstr(text.cStr(), part.cStr()) != nullptr;
}

TEST_CASE("parsePorts: reads one port and a range, and nothing else") {
  auto range = KJ_ASSERT_NONNULL(parsePorts("7000-7031"));
  CHECK(range.first == 7000);
  CHECK(range.last == 7031);
  auto one = KJ_ASSERT_NONNULL(parsePorts("65535"));
  CHECK(one.first == 65535);
  CHECK(one.last == 65535);
  for (auto text: {"", "0", "65536", "-1", "7000-", "-7000", "7001-7000", "7000-7001-7002", " 7000",
           "7000x", "123456"}) {
    INFO(text);
    CHECK(parsePorts(text) == nullptr);
  }
}

TEST_CASE("isLoopback: only this machine reaches 127.0.0.0/8 and ::1") {
  CHECK(isLoopback("127.0.0.1"));
  CHECK(isLoopback("127.0.1.1"));
  CHECK(isLoopback("[::1]"));
  CHECK_FALSE(isLoopback("10.0.0.4"));
  CHECK_FALSE(isLoopback("[fd00::4]"));
}

TEST_CASE("Listener: takes the first free port of a range, and says when none is left") {
  auto io = kj::setupAsyncIo();
  auto& network = io.provider->getNetwork();
  auto listen = [&](PortRange ports) {
    return Listener::listen(network, TCP, LOOPBACK, ports).wait(io.waitScope);
  };
  PortRange both{17000, 17001};
  auto first = listen(both);
  auto second = listen(both);
  CHECK(first->address().tcp == "127.0.0.1:17000");
  CHECK(second->address().tcp == "127.0.0.1:17001");
  auto failure = kj::runCatchingExceptions([&]() { listen(both); });
  CHECK(contains(KJ_ASSERT_NONNULL(failure).getDescription(),
      "cannot listen on 127.0.0.1:17000-17001: all these ports are in use. Choose other "
      "ports (cluster.port, or where this address was given)"));
}

TEST_CASE("localHostOf: returns the address at which others can call back, for IPv4 and IPv6") {
  auto io = kj::setupAsyncIo();
  auto& network = io.provider->getNetwork();
  for (kj::StringPtr host: {"127.0.0.1"_kj, "[::1]"_kj}) {
    kj::Maybe<kj::Own<Listener>> listener;
    auto listen = [&]() { listener = Listener::listen(network, TCP, host).wait(io.waitScope); };
    if (kj::runCatchingExceptions(listen) != nullptr) continue;  // a machine without IPv6
    auto& address = KJ_ASSERT_NONNULL(listener)->address().tcp;
    CHECK(address.startsWith(kj::str(host, ":")));
    auto stream = network.parseAddress(address).wait(io.waitScope)->connect().wait(io.waitScope);
    CHECK(localHostOf(*stream) == host);
  }
}

}  // namespace
}  // namespace rpc
