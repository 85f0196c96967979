// ssh is a shell script here. tests/hosts has a real one.
#include "runner/launch/ssh_launcher.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/async-unix.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/launch/host_agent.h"
#include "runner/launch/ranks.h"
#include "runner/system/reason.h"
#include "runner/testing/ranks_of.h"
#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;
using tests::countOf;

// The script starts this program again, with this variable, as the agent of a host. The agent then
// starts it as roles, which only write their command.
constexpr const char* IS_AGENT = "SSH_LAUNCHER_TEST_IS_AGENT";

// Host `lost` cannot be reached. Host `mute` accepts the connection, and does not answer. Host
// `slow` answers as soon as `lost` has failed, and is ready when somebody has opened the FIFO
// `go_on`. Host `stuck` waits for a copy of the program that does not grow, and says so once more
// whenever somebody has opened that FIFO.
constexpr kj::StringPtr SSH = R"(
while [ "$1" != -- ]; do shift; done
case $2 in
  lost) exec 9>gate; echo "ssh: connect to host lost port 22: Connection timed out" >&2; exit 255;;
  mute) exec cat >/dev/null;;
  stuck) while echo; do echo "runner: waiting 5"; cat go_on; done;;
  slow) cat gate; echo; echo "runner: waiting"; cat go_on;;
esac
unset SSH_CONNECTION
exec "$PROGRAM")"_kj;

// Makes streams as usual. Its clock stands still unless a test sets it.
class StoppedClock final: public kj::AsyncIoProvider {
public:
  explicit StoppedClock(kj::Own<kj::AsyncIoProvider> usual): usual(kj::mv(usual)) {}

  kj::OneWayPipe newOneWayPipe() override { return usual->newOneWayPipe(); }
  kj::TwoWayPipe newTwoWayPipe() override { return usual->newTwoWayPipe(); }
  kj::Network& getNetwork() override { return usual->getNetwork(); }
  PipeThread newPipeThread(
      kj::Function<void(kj::AsyncIoProvider&, kj::AsyncIoStream&, kj::WaitScope&)> start) override {
    return usual->newPipeThread(kj::mv(start));
  }
  kj::Timer& getTimer() override { return timer; }

  kj::TimerImpl timer{kj::origin<kj::TimePoint>()};

private:
  kj::Own<kj::AsyncIoProvider> usual;
};

// Does the work of an agent, or of a role.
[[noreturn]] void serve() {
  auto command = tests::readFile("/proc/self/cmdline");
  for (char& c: command) {
    if (c == '\0') c = ' ';
  }
  if (contains(command, "--role=")) {
    kj::FdOutputStream(STDERR_FILENO).write(command.begin(), command.size());
  } else {
    serveHost();
  }
  ::_exit(0);
}

kj::AsyncIoContext newIo() {
  kj::UnixEventPort::captureChildExit();
  if (::getenv(IS_AGENT) != nullptr) serve();
  ::setenv(IS_AGENT, "1", 1);
  return kj::setupAsyncIo();
}

// A launcher that starts the roles of a run again after one was lost.
class Restart {
public:
  explicit Restart(kj::StringPtr hosts): io(newIo()), folder{tests::newFolder()} {
    auto own = kj::heap<StoppedClock>(kj::mv(io.provider));
    clock = &own->timer;
    io.provider = kj::mv(own);
    for (auto fifo: {"/gate", "/go_on"}) {
      KJ_SYSCALL(::mkfifo(kj::str(folder.path, fifo).cStr(), 0600));
    }
    auto commands = kj::str("cd ", folder.path, "\nPROGRAM=", ownPath(), SSH);
    auto ssh = kj::str("cluster.ssh=", writeScript(folder, "ssh", commands));
    auto named = kj::str("cluster.hosts=", hosts);
    kj::StringPtr overrides[] = {"cluster.launcher=ssh", ssh, named, "cluster.workers=2",
        "cluster.silence_timeout_s=3600", "cluster.start_timeout_s=86400"};
    loaded = loadExperiment("configs/fashion_mnist_dist_sync.toml", overrides);
    REQUIRE(loaded.errors == "");
    LaunchOptions options;
    options.wasLost = true;
    run = kj::heap<LaunchedRun>(LaunchedRun{loaded, folder, said, io, options});
    launcher = newSshLauncher(*run);
  }
  ~Restart() { ::unsetenv(IS_AGENT); }

  void advance(kj::Duration time) { clock->advanceTo(clock->now() + time); }
  // Lets host `slow` get ready.
  void goOn() {
    int fd;
    KJ_SYSCALL(fd = ::open(kj::str(folder.path, "/go_on").cStr(), O_WRONLY | O_CLOEXEC));
    ::close(fd);
  }
  // Waits for `promise` while the clock runs, slowly.
  template <typename T>
  T wait(kj::Promise<T> promise) {
    while (!promise.poll(io.waitScope)) advance(1 * kj::MICROSECONDS);
    return promise.wait(io.waitScope);
  }

  kj::AsyncIoContext io;
  kj::TimerImpl* clock;
  RunFolder folder;
  LoadedExperiment loaded;
  Said said;
  kj::Own<LaunchedRun> run;
  kj::Own<Launcher> launcher;
};

TEST_CASE("SshLauncher: waits for a host that answers, and leaves out one that does not") {
  Restart restart(R"(["lost", "slow", "mute"])");
  auto prepared = restart.launcher->prepare().eagerlyEvaluate(nullptr);
  while (restart.said.lines.empty()) restart.io.waitScope.poll();
  REQUIRE(contains(restart.said.lines[0], "slow waits while another process copies"));
  for (uint i = 0; i < 60; i++) {
    restart.advance(1 * kj::SECONDS);
    restart.io.waitScope.poll();
  }
  REQUIRE_FALSE(prepared.poll(restart.io.waitScope));
  restart.goOn();
  restart.wait(kj::mv(prepared));
  auto lines = kj::strArray(restart.said.lines, "\n");
  CHECK(contains(lines, "host lost (server 0, worker 0): it does not answer; "));
  CHECK(contains(lines, "host mute: it has not answered. Its roles are started on other hosts"));
  for (auto& group: restart.launcher->groups()) CHECK(group.name.endsWith(" on slow"));
}

TEST_CASE("SshLauncher: a host that waits for a copy that does not grow is given up") {
  Restart restart(R"(["stuck"])");
  kj::String reason;
  auto prepared = restart.launcher->prepare()
                      .then([](ListenPlace&&) {}, [&](kj::Exception&& e) { reason = reasonOf(e); })
                      .eagerlyEvaluate(nullptr);
  while (restart.said.lines.empty()) restart.io.waitScope.poll();
  REQUIRE(contains(restart.said.lines[0], "stuck waits while another process copies"));
  restart.goOn();
  while (!prepared.poll(restart.io.waitScope)) restart.advance(1 * kj::SECONDS);
  CHECK(contains(kj::str(reason, kj::strArray(restart.said.lines, "\n")),
      "has copied nothing for 86400 s (cluster.start_timeout_s)"));
}

TEST_CASE("SshLauncher: a worker that moves to another host gets the GPUs of its slot there") {
  Restart restart(R"(["lost slots=1", "slow slots=2"])");
  auto prepared = restart.launcher->prepare().eagerlyEvaluate(nullptr);
  restart.goOn();
  restart.wait(kj::mv(prepared));
  for (auto& group: restart.launcher->groups()) {
    auto started = restart.launcher->start(group, "127.0.0.1:1");
    CHECK(restart.wait(started->ended()) == nullptr);
  }
  uint found = 0;
  for (auto& line: restart.said.lines) {
    if (line.startsWith("worker 1 on slow: ")) found += countOf(line, " --workers-before=0 ");
    if (line.startsWith("worker 0 on slow: ")) found += countOf(line, " --workers-before=1 ");
  }
  CHECK(found == 2);
}

TEST_CASE("SshLauncher: if the hosts that are left have too few slots, says so") {
  Restart restart(R"(["lost slots=1", "slow slots=1"])");
  auto prepared = restart.launcher->prepare().eagerlyEvaluate(nullptr);
  restart.goOn();
  auto refused = kj::runCatchingExceptions([&]() { restart.wait(kj::mv(prepared)); });
  CHECK(reasonOf(KJ_REQUIRE_NONNULL(refused))
            .startsWith("the hosts that are left have 1 slot, but there are 2 workers; "));
  auto lines = kj::strArray(restart.said.lines, "\n");
  CHECK(contains(lines, "host lost (server 0, worker 0): it does not answer; "));
  CHECK_FALSE(contains(lines, "started on other hosts"));
}

}  // namespace
}  // namespace runner
