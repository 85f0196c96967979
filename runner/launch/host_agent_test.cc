#include "runner/launch/host_agent.h"

#include <doctest/doctest.h>
#include <kj/async-unix.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "runner/launch/host.capnp.h"

namespace runner {
namespace {

// The test starts this program again, with this variable, as a role.
constexpr const char* IS_ROLE = "HOST_AGENT_TEST_IS_ROLE";

[[noreturn]] void runAsRole() {
  auto line = kj::str(::getpid(), "\n");
  (void)!::write(STDERR_FILENO, line.begin(), line.size());
  for (;;) ::pause();
}

// Takes the first line that a role writes.
class FirstLine final: public Lines::Server {
public:
  explicit FirstLine(kj::Own<kj::PromiseFulfiller<kj::String>> fulfiller)
      : fulfiller(kj::mv(fulfiller)) {}

  kj::Promise<void> take(TakeContext context) override {
    fulfiller->fulfill(kj::str(context.getParams().getLine()));
    return kj::READY_NOW;
  }

private:
  kj::Own<kj::PromiseFulfiller<kj::String>> fulfiller;
};

TEST_CASE("HostAgent: a role ends when the launcher drops it, also while the launcher waits") {
  if (::getenv(IS_ROLE) != nullptr) runAsRole();
  ::setenv(IS_ROLE, "1", 1);
  kj::UnixEventPort::captureChildExit();
  auto io = kj::setupAsyncIo();
  auto agent = newHostAgent(io);
  auto preparation = agent.prepareRequest();
  preparation.setFolder(".");
  preparation.setSilenceS(3600);
  preparation.send().wait(io.waitScope);
  auto first = kj::newPromiseAndFulfiller<kj::String>();
  auto start = agent.startRequest();
  start.setName("worker 0");
  start.initArguments(1).set(0, "runner");
  start.setErrors(kj::heap<FirstLine>(kj::mv(first.fulfiller)));
  pid_t pid;
  {
    auto process = start.send().wait(io.waitScope).getProcess();
    auto ended = process.endedRequest().send();
    auto line = first.promise.wait(io.waitScope);
    pid = ::atoi(line.cStr());
    REQUIRE(pid > 0);
    REQUIRE(::kill(pid, 0) == 0);
    CHECK_FALSE(ended.poll(io.waitScope));
  }
  io.waitScope.poll();
  CHECK(::kill(pid, 0) != 0);
}

}  // namespace
}  // namespace runner
