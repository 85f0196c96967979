#include "runner/launch/host_agent.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/async-unix.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/wire/peer.h"
#include "runner/launch/host.capnp.h"
#include "tests/command.h"

namespace runner {
namespace {

// The test starts this program again, with the name of a role in this variable.
constexpr const char* ROLE = "HOST_AGENT_TEST_ROLE";
// The path of a FIFO, for the role `in_turns`.
constexpr const char* FIFO = "HOST_AGENT_TEST_FIFO";
// The length of the line of the role `long_line`. No message may be so long.
constexpr size_t LONG_LINE_BYTES = 3 << 20;

void say(kj::StringPtr text) {
  kj::FdOutputStream(STDERR_FILENO).write(text.begin(), text.size());
}

[[noreturn]] void runAsRole(kj::StringPtr role) {
  if (role == "long_line") {
    say(kj::str(kj::repeat('x', LONG_LINE_BYTES), "\nend\n"));
    ::_exit(0);
  }
  say(kj::str(::getpid(), "\n"));
  if (role == "in_turns") {
    // Waits until the test opens the FIFO.
    int fd = ::open(::getenv(FIFO), O_WRONLY);
    say("second\n");
    ::close(fd);
  }
  for (;;) ::pause();
}

// Keeps the lines that a role writes.
class KeptLines final: public Lines::Server {
public:
  // Resolves at the next line.
  kj::Promise<void> next() {
    auto paf = kj::newPromiseAndFulfiller<void>();
    fulfiller = kj::mv(paf.fulfiller);
    return kj::mv(paf.promise);
  }

  kj::Promise<void> take(TakeContext context) override {
    lines.add(kj::str(context.getParams().getLine()));
    if (fulfiller.get() != nullptr) fulfiller->fulfill();
    auto own = kj::mv(answer);
    answer = kj::READY_NOW;
    return own;
  }

  kj::Vector<kj::String> lines;
  kj::Promise<void> answer = kj::READY_NOW;  // to the next call

private:
  kj::Own<kj::PromiseFulfiller<void>> fulfiller;
};

// Makes the event loop of a test whose role is `role`. In the process of the role, runs the role.
kj::AsyncIoContext newIo(const char* role) {
  if (auto own = ::getenv(ROLE)) runAsRole(own);
  ::setenv(ROLE, role, 1);
  kj::UnixEventPort::captureChildExit();
  return kj::setupAsyncIo();
}

// A launcher whose agent runs in the same process.
struct Launching {
  explicit Launching(const char* role): io(newIo(role)) {}
  ~Launching() { ::unsetenv(ROLE); }

  // Starts the role by `agent`. `lines` receives what the role writes.
  RoleProcess::Client start(HostAgent::Client agent, kj::Own<KeptLines> lines) {
    auto preparation = agent.prepareRequest();
    preparation.setFolder(".");
    preparation.setSilenceS(3600);
    preparation.send().wait(io.waitScope);
    auto start = agent.startRequest();
    start.setName("worker 0");
    start.initArguments(1).set(0, "runner");
    start.setErrors(kj::mv(lines));
    return start.send().wait(io.waitScope).getProcess();
  }

  kj::AsyncIoContext io;
};

TEST_CASE("HostAgent: a role ends when the launcher drops it, also while the launcher waits") {
  Launching launching("endless");
  auto& scope = launching.io.waitScope;
  auto agent = newHostAgent(launching.io);
  auto own = kj::heap<KeptLines>();
  auto& kept = *own;
  auto first = kept.next();
  pid_t pid;
  {
    auto process = launching.start(agent, kj::mv(own));
    auto ended = process.endedRequest().send();
    first.wait(scope);
    pid = ::atoi(kept.lines[0].cStr());
    REQUIRE(pid > 0);
    REQUIRE(::kill(pid, 0) == 0);
    CHECK_FALSE(ended.poll(scope));
  }
  scope.poll();
  CHECK(::kill(pid, 0) != 0);
}

TEST_CASE("HostAgent: a line that is longer than a message reaches the launcher in pieces") {
  Launching launching("long_line");
  auto& io = launching.io;
  auto pipe = io.provider->newTwoWayPipe();
  auto served = rpc::serve(kj::mv(pipe.ends[0]), {}, newHostAgent(io)).eagerlyEvaluate(nullptr);
  rpc::Peer peer(kj::mv(pipe.ends[1]), {});
  auto own = kj::heap<KeptLines>();
  auto& kept = *own;
  auto process = launching.start(peer.bootstrap().castAs<HostAgent>(), kj::mv(own));
  CHECK(process.endedRequest().send().wait(io.waitScope).getStatus() == 0);
  size_t bytes = 0;
  for (auto& line: kept.lines) bytes += line.size();
  CHECK(bytes == LONG_LINE_BYTES + strlen("end"));
  CHECK(kept.lines.size() > 2);
  CHECK(kept.lines.back() == "end");
}

TEST_CASE("HostAgent: reads no more of a role while the launcher does not take its lines") {
  Launching launching("in_turns");
  auto& scope = launching.io.waitScope;
  auto fifo = kj::str(tests::newFolder(), "/fifo");
  KJ_SYSCALL(::mkfifo(fifo.cStr(), 0600));
  ::setenv(FIFO, fifo.cStr(), 1);
  auto agent = newHostAgent(launching.io);
  auto own = kj::heap<KeptLines>();
  auto& kept = *own;
  auto held = kj::newPromiseAndFulfiller<void>();
  kept.answer = kj::mv(held.promise);
  auto first = kept.next();
  auto process = launching.start(agent, kj::mv(own));
  auto ended = process.endedRequest().send();
  first.wait(scope);
  // The FIFO ends when the role has written its second line.
  int fd;
  KJ_SYSCALL(fd = ::open(fifo.cStr(), O_RDONLY | O_CLOEXEC));
  CHECK(kj::FdInputStream(kj::AutoCloseFd(fd)).readAllText() == "");
  CHECK_FALSE(ended.poll(scope));
  REQUIRE(kept.lines.size() == 1);

  auto second = kept.next();
  held.fulfiller->fulfill();
  second.wait(scope);
  CHECK(kept.lines[1] == "second");
}

}  // namespace
}  // namespace runner
