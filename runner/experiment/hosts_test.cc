#include "runner/experiment/hosts.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

// What readHosts() returns for `hosts = <value>`, and the errors.
struct Read {
  kj::Own<configs::Document> document;
  kj::Array<Host> hosts;
  kj::String resolved;
  kj::String errors;

  explicit Read(kj::StringPtr value) {
    configs::Diagnostics diagnostics;
    document = configs::parse("x.toml", kj::str("hosts = ", value, "\n"), diagnostics);
    configs::Reading reading{diagnostics, {}};
    hosts = configs::readDocument(*document, reading, readHosts);
    resolved = configs::print(reading.resolved);
    errors = diagnostics.format("x.toml");
  }
};

kj::Array<Host> hostsOf(kj::StringPtr value) {
  Read read(value);
  REQUIRE(read.errors == "");
  return kj::mv(read.hosts);
}

TEST_CASE("readHosts: knows users, ports, slots and IPv6 addresses") {
  auto hosts = hostsOf(R"(["node1", " ann@node2:2222  slots=2", "10.0.0.4", "[fd00::1]:22"])");
  REQUIRE(hosts.size() == 4);
  CHECK(hosts[0].name == "node1");
  CHECK(hosts[0].user == "");
  CHECK(hosts[0].sshPort == 0);
  CHECK(hosts[0].slots == nullptr);
  CHECK(hosts[1].name == "node2");
  CHECK(hosts[1].user == "ann");
  CHECK(hosts[1].sshPort == 2222);
  CHECK(hosts[1].slots.orDefault(0) == 2);
  CHECK(hosts[2].toString() == "10.0.0.4");
  CHECK(hosts[3].name == "fd00::1");
  CHECK(hosts[3].toString() == "[fd00::1]:22");
}

TEST_CASE("readHosts: reads a host file, and resolves to the list") {
  auto path = kj::str(tests::newFolder(), "/hosts.txt");
  tests::writeFile(
      path, "# the fast ones\n\nnode1 slots=2  # two GPUs\r\n\t node2:2222\n#node3\nnode4");
  Read read(kj::str('"', path, '"'));
  CHECK(read.errors == "");
  CHECK(read.resolved == "hosts = [\"node1 slots=2\", \"node2:2222\", \"node4\"]\n");
  CHECK(read.hosts.size() == 3);
}

TEST_CASE("readHosts: adds the slots of a host that is named several times, as MPI does") {
  auto hosts = hostsOf(R"(["node1", "node2 slots=2", "node1", "node2 slots=3"])");
  REQUIRE(hosts.size() == 2);
  CHECK(hosts[0].slots.orDefault(0) == 2);
  CHECK(hosts[1].slots.orDefault(0) == 5);
}

TEST_CASE("readHosts: refuses each text that is not a host, and says what to write") {
  auto check = [](kj::StringPtr text, kj::StringPtr part) {
    auto errors = Read(kj::str("[\"", text, "\"]")).errors;
    CAPTURE(errors);
    CHECK(tests::contains(errors, part));
    CHECK(tests::contains(errors, "x.toml:1:10: error: "));
    CHECK(tests::contains(errors, "help: "));
  };
  check("", "names no host");
  check("-oProxyCommand=reboot", "does not begin with a host");
  check("-x@node1", "no valid user name");
  check("@node1", "no valid user name");
  check("no de", "unknown word `de`");
  check("node1;reboot", "does not begin with a host");
  check("node1:", "no port from 1 to 65535");
  check("node1:65536", "no port from 1 to 65535");
  check("node1:99999999999999999999", "no port from 1 to 65535");
  check("fd00::1", "IPv6 address without brackets");
  check("[fd00::1", "does not begin with a host");
  check("[node1]", "does not begin with a host");
  check("[fd00::1]22", "does not begin with a host");
  check("node1 slots=0", "needs slots from 1 to 4096");
  check("node1 slots=4097", "needs slots from 1 to 4096");
  check("node1 slots=2 slots=2", "has slots twice");
  check("node1 max_slots=2", "unknown word `max_slots=2`");
}

// Returns the roles of each host as "h0: s0 w0.0 w2.1; h1: …": servers, then workers with their
// local ranks.
kj::String placed(kj::StringPtr value, uint servers, uint serversPerProcess, uint workers) {
  auto hosts = hostsOf(value);
  auto roles = KJ_REQUIRE_NONNULL(placeRoles(hosts, servers, serversPerProcess, workers));
  kj::Vector<kj::String> lines;
  for (uint host = 0; host < hosts.size(); host++) {
    kj::Vector<kj::String> words;
    for (uint i = 0; i < servers; i++) {
      if (roles.servers[i] == host) words.add(kj::str(" s", i));
    }
    for (uint i = 0; i < workers; i++) {
      if (roles.workers[i] == host) words.add(kj::str(" w", i, ".", roles.localRanks[i]));
    }
    lines.add(kj::str("h", host, ":", kj::strArray(words, "")));
  }
  return kj::strArray(lines, "; ");
}

TEST_CASE("placeRoles: distributes servers and workers over the hosts in turn") {
  CHECK(placed(R"(["a", "b"])", 1, 1, 3) == "h0: s0 w0.0 w2.1; h1: w1.0");
  CHECK(placed(R"(["a", "b", "c"])", 4, 1, 2) == "h0: s0 s3 w0.0; h1: s1 w1.0; h2: s2");
  CHECK(placed(R"(["a"])", 0, 1, 2) == "h0: w0.0 w1.1");
}

TEST_CASE("placeRoles: keeps servers of one process on one host") {
  CHECK(placed(R"(["a", "b"])", 5, 2, 1) == "h0: s0 s1 s4 w0.0; h1: s2 s3");
}

TEST_CASE("placeRoles: skips hosts whose slots are taken") {
  CHECK(placed(R"(["a slots=1", "b slots=3", "c"])", 0, 1, 6) ==
        "h0: w0.0; h1: w1.0 w3.1 w5.2; h2: w2.0 w4.1");
}

TEST_CASE("placeRoles: returns null if there are not enough slots for the workers") {
  auto hosts = hostsOf(R"(["a slots=1", "b slots=2"])");
  CHECK(placeRoles(hosts, 1, 1, 3) != nullptr);
  CHECK(placeRoles(hosts, 1, 1, 4) == nullptr);
}

}  // namespace
}  // namespace runner
