// Attacks on a job whose secret the attacker does not know, or knows only proofs of: the job trains
// the same bits, uses no more memory, and each socket reports the attack once. ATTACKS is the
// number of strangers in the largest attack.
#include <doctest/doctest.h>
#include <errno.h>
#include <kj/debug.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/wire/secret.h"
#include "tests/faults/failure.h"
#include "tests/faults/roles_by_hand.h"
#include "tests/faults/stranger.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;
constexpr size_t GROWTH_BYTES_MAX = 10 << 20;

// Returns the number of strangers in the largest attack. A large ATTACKS makes the test long.
uint attacks() {
  auto text = ::getenv("ATTACKS");
  return text == nullptr ? 200 : uint(atoi(text));
}

// Reads until `bytes` have arrived, or the other end closes. Returns how many have arrived.
size_t receive(int fd, kj::ArrayPtr<kj::byte> bytes) {
  auto n = ::recv(fd, bytes.begin(), bytes.size(), MSG_WAITALL);
  KJ_REQUIRE(n >= 0 || errno == ECONNRESET, strerror(errno));
  return n < 0 ? 0 : n;
}

// The messages of a proof: see rpc/wire/proof.cc.
struct Proof {
  kj::byte call[64];
  kj::byte answer[96];
  kj::FixedArray<kj::byte, rpc::Secret::BYTES> reply;
};

// Proves over `fd` to be worker 1, by `secret`. Returns the bytes that were sent.
Proof prove(int fd, const rpc::Secret& secret) {
  Proof proof;
  memset(proof.call, 0, sizeof(proof.call));
  memcpy(proof.call, "runner\0\2worker 1", 16);
  for (uint i = 32; i < sizeof(proof.call); i++) proof.call[i] = kj::byte(::rand());
  send(fd, proof.call);
  KJ_REQUIRE(receive(fd, proof.answer) == sizeof(proof.answer));
  proof.reply = secret.sign(
      {"caller  "_kj.asBytes(), proof.call, kj::arrayPtr(proof.answer, sizeof(proof.call))});
  send(fd, proof.reply);
  return proof;
}

bool isClosed(int fd) {
  kj::byte byte;
  return receive(fd, kj::arrayPtr(&byte, 1)) == 0;
}

// The memory of a process that is not shared with others.
size_t memoryOf(pid_t pid) {
  auto status = readFile(kj::str("/proc/", pid, "/status"));
  auto at = ::strstr(status.cStr(), "\nRssAnon:");
  KJ_REQUIRE(at != nullptr);
  return size_t(atoll(at + strlen("\nRssAnon:"))) << 10;
}

// A job by hand with a secret, which waits for its last worker.
struct WaitingJob {
  explicit WaitingJob(kj::StringPtr settings): file(kj::str(newFolder(), "/short.toml")) {
    char path[PATH_MAX];
    KJ_REQUIRE(::realpath(SHORT.cStr(), path) != nullptr);
    writeFile(file, kj::str("extends = \"", path,
                        "\"\n[cluster]\nservers = 1\nstart_timeout_s = 600\n", settings));
    coordinator = startCoordinator(file, folder, secret);
    address = addressOf(*coordinator);
    server = startRole(file, "server", 0, address, secret);
    KJ_REQUIRE(server->waitForErrors("joined the job"), server->errors());
    first = startRole(file, "worker", 0, address, secret);
    KJ_REQUIRE(first->waitForErrors("joined the job"), first->errors());
    addresses = addressesIn(readFile(kj::str(folder, "/events.jsonl")));
    addresses.add(kj::str(address));
  }

  // Starts the last worker, and checks how the job ends.
  void checkTrains(kj::StringPtr weights) {
    auto last = startRole(file, "worker", 1, address, secret);
    auto ended = coordinator->wait(5 * PATIENCE_S);
    INFO(ended.errors);
    CHECK(ended.exitCode == 0);
    CHECK(contains(ended.output, weights));
    // Each socket reports the attack once.
    CHECK(countOf(ended.errors, "warning: a connection from ") == 1);
    CHECK(countOf(server->wait(FAILS_WITHIN_S).errors, " was refused: ") == 1);
    CHECK(first->wait(FAILS_WITHIN_S).exitCode == 0);
    CHECK(last->wait(FAILS_WITHIN_S).exitCode == 0);
  }

  const kj::String secret = newSecretFile();
  const kj::String folder = kj::str(newFolder(), "/run");
  kj::String file;
  kj::Own<Command> coordinator, server, first;
  kj::String address;
  kj::Vector<kj::String> addresses;  // of the server and of the coordinator
};

kj::String weightsAlone() {
  constexpr kj::StringPtr ONE_SERVER[] = {"cluster.servers=1"_kj};
  return train(SHORT, ONE_SERVER).weightsSha256;
}

TEST_CASE("a job that strangers attack in every way trains the same bits in no more memory") {
  rlimit files;
  KJ_SYSCALL(::getrlimit(RLIMIT_NOFILE, &files));
  uint halfOpen = kj::max(attacks() / 10, 150u);
  if (files.rlim_max < 2 * halfOpen + 100)
    SKIP_CASE("this machine lets a process open too few files");
  auto weights = weightsAlone();
  WaitingJob job("");
  rlimit more = {2 * halfOpen + 100, files.rlim_max};
  KJ_SYSCALL(::setrlimit(RLIMIT_NOFILE, &more));
  KJ_REQUIRE(job.addresses.size() == 2);
  auto known = KJ_ASSERT_NONNULL(rpc::Secret::parse(kj::str(kj::repeat('a', 64))));
  auto processes = {job.coordinator->pid(), job.server->pid()};
  size_t before[2], after[2];

  // Garbage. The first strangers only fill the memory that a process keeps ready.
  kj::byte noise[256];
  for (size_t i = 0; i < sizeof(noise); ++i) noise[i] = kj::byte(i * 2654435761u >> 13);
  auto garbage = [&](uint times) {
    for (uint i = 0; i < times; i++) {
      for (auto& address: job.addresses) {
        auto stranger = connectTo(address);
        send(stranger, noise);
        if (i % 16 == 0) CHECK(isClosed(stranger));
      }
    }
  };
  garbage(150);
  size_t n = 0;
  for (auto pid: processes) before[n++] = memoryOf(pid);
  garbage(attacks());

  for (auto& address: job.addresses) {
    // A port scanner.
    for (uint i = 0; i < 100; i++) connectTo(address);
    // Wrong secrets.
    for (uint i = 0; i < 100; i++) {
      auto stranger = connectTo(address);
      prove(stranger, rpc::Secret::random());
      CHECK(isClosed(stranger));
    }
  }

  // Replays the bytes of a real worker.
  Proof recorded;
  {
    auto real = connectTo(job.address);
    recorded = prove(real, known);
    // Nobody closes it.
    pollfd readable = {real, POLLIN, 0};
    CHECK(::poll(&readable, 1, 100) == 0);
  }
  for (uint i = 0; i < attacks() / 10; i++) {
    auto stranger = connectTo(job.address);
    send(stranger, recorded.call);
    kj::byte answer[96];
    CHECK(receive(stranger, answer) == sizeof(answer));
    send(stranger, recorded.reply);
    CHECK(isClosed(stranger));
  }

  // Half-open connections stay until the job ends: a worker still joins.
  kj::Vector<kj::AutoCloseFd> open;
  for (uint i = 0; i < halfOpen; i++) {
    for (auto& address: job.addresses) open.add(connectTo(address));
    send(open.back(), kj::arrayPtr(recorded.call, 20));
  }
  n = 0;
  for (auto pid: processes) after[n++] = memoryOf(pid);
  if (!hasAddressSanitizer()) {
    for (size_t i: {0, 1}) CHECK(after[i] < before[i] + GROWTH_BYTES_MAX);
  }
  job.checkTrains(weights);
}

}  // namespace
}  // namespace tests
