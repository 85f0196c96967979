// Connections that fall silent: nobody closes them, and nothing arrives any more, as if a machine
// or its link had failed.
#include <doctest/doctest.h>
#include <errno.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/faults/failure.h"
#include "tests/text.h"

namespace tests {
namespace {

enum class Cut { CONNECTIONS, AND_LISTENER };

// Makes a server's sockets for workers drop all incoming packets, including acknowledgements. Its
// connection to the coordinator keeps working. Returns the number of silenced sockets. (A filter on
// a duplicated descriptor applies to the socket itself.)
uint silence(const Process& server, Cut cut) {
  int raw;
  KJ_SYSCALL(raw = ::syscall(SYS_pidfd_open, server.pid, 0));
  kj::AutoCloseFd process(raw);
  struct Found {
    kj::AutoCloseFd fd;
    bool listens;
    uint port;
  };
  kj::Vector<Found> sockets;
  for (int number = 0; number < 256; number++) {
    raw = ::syscall(SYS_pidfd_getfd, process.get(), number, 0);
    if (raw < 0) continue;
    kj::AutoCloseFd fd(raw);
    sockaddr_in name = {};
    socklen_t size = sizeof(name);
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) < 0) continue;
    if (name.sin_family != AF_INET) continue;
    int listens = 0;
    size = sizeof(listens);
    KJ_SYSCALL(::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size));
    sockets.add(Found{kj::mv(fd), listens != 0, ntohs(name.sin_port)});
  }
  uint port = 0, count = 0;
  for (auto& socket: sockets) {
    if (socket.listens) port = socket.port;
  }
  for (auto& socket: sockets) {
    if (socket.port != port || (socket.listens && cut == Cut::CONNECTIONS)) continue;
    sock_filter dropAll[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
    sock_fprog program = {1, dropAll};
    KJ_SYSCALL(::setsockopt(socket.fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)));
    count++;
  }
  return count;
}

// A run whose connections between workers and servers are TCP, encrypted with `tls`.
kj::Own<Run> startTcp(bool tls) {
  auto encrypted = kj::str("cluster.tls=", tls);
  return startedRun(
      ENDLESS, {"kvstore.transport=tcp", "cluster.silence_timeout_s=2", encrypted.asPtr()});
}

TEST_CASE("a server that stops answering workers ends the run, which says who was lost") {
  auto run = startTcp(false);
  CHECK(silence(run->role("server", 1), Cut::AND_LISTENER) == 3);
  auto ended = run->command.wait(FAILS_WITHIN_S);
  // A worker has told the coordinator.
  checkFailed(ended, {"coordinator: worker ", ": lost server 1 at 127.0.0.1:",
                         "could not be reached for", "cluster.silence_timeout_s"});
  checkRecorded(*run, ended);
  checkNothingLeft(*run);
}

// Waits for worker 0's report of `epoch`, and returns it. Its losses depend on every weight.
kj::String lossesOf(const Run& run, uint epoch) {
  auto events = run.read("events.jsonl");
  auto mark = kj::str("\"trained\":{\"epoch\":", epoch, ",");
  for (kj::StringPtr rest = events; rest.size() > 0;) {
    auto end = KJ_ASSERT_NONNULL(rest.findFirst('\n'));
    auto line = kj::heapString(rest.slice(0, end));
    rest = rest.slice(end + 1);
    if (!contains(line, mark) || !contains(line, "\"role\":\"worker\",\"index\":0")) continue;
    auto from = ::strstr(line.cStr(), "\"loss\":");
    return kj::heapString(from, ::strstr(from, ",\"epoch_s\"") - from);
  }
  KJ_FAIL_REQUIRE("worker 0 has not reported the epoch", epoch);
}

TEST_CASE("workers reconnect after their connections fall silent, and the losses keep their bits") {
  auto ends = [](Run& run, uint epoch) {
    return run.command.waitForOutput(kj::str("Epoch[", epoch - 1, "] Validation-accuracy"));
  };
  for (bool tls: {false, true}) {
    CAPTURE(tls);
    auto cut = startTcp(tls);
    CHECK(silence(cut->role("server", 0), Cut::CONNECTIONS) == 2);
    uint epoch = 1;
    for (;; epoch++) {
      REQUIRE(ends(*cut, epoch));
      if (contains(cut->read("events.jsonl"), "\"reconnects\":1")) break;
    }
    auto whole = startTcp(false);
    REQUIRE(ends(*whole, epoch));
    CHECK(lossesOf(*cut, epoch) == lossesOf(*whole, epoch));
  }
}

}  // namespace
}  // namespace tests
