#include "tests/hosts/hosts.h"

#include <kj/debug.h>
#include <unistd.h>

namespace tests {

namespace {

// Runs `ip` with the words of `line`.
Ended call(kj::StringPtr line) {
  kj::Vector<kj::String> words;
  for (auto rest = line; rest.size() > 0;) {
    auto end = rest.findFirst(' ').orDefault(rest.size());
    words.add(kj::heapString(rest.slice(0, end)));
    rest = rest.slice(kj::min(end + 1, rest.size()));
  }
  auto pointers = KJ_MAP(word, words) {
    return word.asPtr();
  };
  return Command(pointers).wait();
}

void mustCall(kj::StringPtr line) {
  auto ended = call(line);
  KJ_REQUIRE(ended.exitCode == 0, line, ended.errors);
}

}  // namespace

kj::Maybe<kj::String> Hosts::whyNot() {
  if (::getuid() != 0) return kj::str("only root can make network namespaces");
  auto make = []() { Hosts probe(1); };
  if (kj::runCatchingExceptions(make) != nullptr) {
    return kj::str("this machine makes no network namespaces");
  }
  return nullptr;
}

Hosts::Namespaces::~Namespaces() {
  for (auto& name: names) call(kj::str("ip netns del ", name));
}

void Hosts::Namespaces::add(kj::String name) {
  // A test program of the same number may have been killed.
  call(kj::str("ip netns del ", name));
  mustCall(kj::str("ip netns add ", name));
  names.add(kj::mv(name));
}

Hosts::Hosts(uint count): prefix(kj::str("runner-", ::getpid(), "-")), count(count) {
  auto bridge = name(count);
  namespaces.add(kj::str(bridge));
  mustCall(kj::str("ip -n ", bridge, " link add br0 type bridge"));
  mustCall(kj::str("ip -n ", bridge, " link set br0 up"));
  for (uint i = 0; i < count; i++) {
    auto host = name(i);
    namespaces.add(kj::str(host));
    mustCall(kj::str(
        "ip link add eth0 netns ", host, " type veth peer name port", i, " netns ", bridge));
    mustCall(kj::str("ip -n ", bridge, " link set port", i, " master br0 up"));
    mustCall(kj::str("ip -n ", host, " addr add ", address(i), "/24 dev eth0"));
    mustCall(kj::str("ip -n ", host, " link set lo up"));
    mustCall(kj::str("ip -n ", host, " link set eth0 up"));
  }
}

kj::String Hosts::name(uint host) const {
  return host == count ? kj::str(prefix, "bridge") : kj::str(prefix, host);
}

kj::Own<Command> Hosts::start(uint host, kj::ArrayPtr<const kj::StringPtr> words,
    kj::ArrayPtr<const kj::StringPtr> environment) const {
  auto where = name(host);
  kj::Vector<kj::StringPtr> all;
  all.addAll(std::initializer_list<kj::StringPtr>{"ip", "netns", "exec", where});
  all.addAll(words);
  return kj::heap<Command>(all.asPtr(), Command::Surroundings{.environment = environment});
}

void Hosts::cut(uint host) const {
  mustCall(kj::str("ip -n ", name(count), " link set port", host, " nomaster"));
}

void Hosts::join(uint host) const {
  mustCall(kj::str("ip -n ", name(count), " link set port", host, " master br0"));
}

}  // namespace tests
