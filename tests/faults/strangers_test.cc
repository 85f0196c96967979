// Strangers at the ports of a running job: the job continues whatever they send or do not send.
#include <capnp/message.h>
#include <capnp/rpc.capnp.h>
#include <capnp/serialize.h>
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>
#include <sys/resource.h>

#include "tests/faults/failure.h"
#include "tests/faults/stranger.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;

// Returns where the coordinator and the servers of `run` listen. The command lines of roles and the
// events name these addresses.
kj::Vector<kj::String> addressesOf(Run& run) {
  REQUIRE(run.command.waitForOutput("Speed: "));
  return addressesIn(kj::str(run.role("worker", 0).commandLine, run.read("events.jsonl")));
}

void checkGoesWell(Run& run) {
  auto ended = run.command.wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
}

TEST_CASE("more silent connections than a process has descriptors do not hurt a job") {
  constexpr rlim_t FEW = 1024, MANY = 4096;
  constexpr uint CONNECTIONS = 1100;
  rlimit before;
  KJ_SYSCALL(::getrlimit(RLIMIT_NOFILE, &before));
  if (before.rlim_max < MANY) SKIP_CASE("this machine lets a process open too few files");
  auto allow = [&](rlim_t count) {
    rlimit limit = {count, before.rlim_max};
    KJ_SYSCALL(::setrlimit(RLIMIT_NOFILE, &limit));
  };
  allow(FEW);
  Run run(SHORT);
  allow(MANY);
  auto addresses = addressesOf(run);
  kj::Vector<kj::AutoCloseFd> silent;
  for (uint i = 0; i < CONNECTIONS; ++i) {
    for (auto& address: addresses) silent.add(connectTo(address));
  }
  checkGoesWell(run);
}

// A mebibyte of valid messages, each of which makes the peer keep an answer: `question` is the
// number of the next message.
kj::Vector<kj::byte> questions(uint32_t& question) {
  kj::Vector<kj::byte> bytes;
  while (bytes.size() < (1 << 20)) {
    capnp::MallocMessageBuilder message;
    message.initRoot<capnp::rpc::Message>().initBootstrap().setQuestionId(question++);
    bytes.addAll(capnp::messageToFlatArray(message).asBytes());
  }
  return bytes;
}

TEST_CASE("a flood of valid messages from strangers does not starve a job") {
  // The system's buffers for a connection hold less than this.
  constexpr uint FLOOD_MIB = 29;
  Run run(ENDLESS);
  for (auto& address: addressesOf(run)) {
    for (uint i = 0; i < 3; ++i) {
      auto flood = connectTo(address);
      uint mebibytes = 0;
      uint32_t question = 0;
      for (bool open = true; open && mebibytes < FLOOD_MIB;) {
        auto bytes = questions(question);
        open = send(flood, bytes);
        mebibytes += open;
      }
      CHECK(mebibytes < FLOOD_MIB);
    }
  }
  CHECK(run.roles().size() == 5);
  run.command.kill(SIGINT);
  auto ended = run.command.wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 130);
}

TEST_CASE("garbage and half messages at the ports of a running job do not hurt it") {
  Run run(SHORT);
  auto addresses = addressesOf(run);
  CHECK(addresses.size() == 3);

  auto words = [](kj::ArrayPtr<const uint32_t> all) { return all.asBytes(); };
  kj::Vector<kj::AutoCloseFd> open;
  for (auto& address: addresses) {
    kj::byte noise[65536];
    for (size_t i = 0; i < sizeof(noise); ++i) noise[i] = kj::byte(i * 2654435761u >> 13);
    send(open.add(connectTo(address)), noise);
    // Cap'n Proto begins with the number of segments less one, then their sizes in words.
    uint32_t manySegments[] = {0xffffffff, 1, 1, 1};
    send(open.add(connectTo(address)), words(manySegments));
    uint32_t hugeSegment[] = {0, 0xfffffff0, 0, 0};
    send(open.add(connectTo(address)), words(hugeSegment));
    uint32_t halfMessage[] = {0, 100, 7};
    send(open.add(connectTo(address)), words(halfMessage));
    connectTo(address);  // and closed without a word
  }
  checkGoesWell(run);
}

TEST_CASE("thousands of connections with garbage do not change the weights of a job") {
  constexpr kj::StringPtr SETTINGS[] = {"train.epochs=1"_kj};
  auto undisturbed = train(SHORT, SETTINGS);
  Run run(SHORT, SETTINGS);
  auto coordinator = kj::mv(addressesOf(run)[0]);
  kj::byte noise[256];
  for (size_t i = 0; i < sizeof(noise); ++i) noise[i] = kj::byte(i * 2654435761u >> 13);
  uint connections = 0;
  // Until the coordinator leaves.
  for (;;) {
    KJ_IF_MAYBE(stranger, tryConnectTo(coordinator)) {
      send(*stranger, noise);
      connections++;
    } else {
      break;
    }
  }
  CHECK(connections >= 1000);
  auto ended = run.command.wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, undisturbed.weightsSha256));
}

}  // namespace
}  // namespace tests
