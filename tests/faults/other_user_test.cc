// Another user of the machine on which a job runs.
#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/faults/failure.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

// Runs `attempt` as another user, in a process of its own. Returns its result, 0 to 254.
template <typename Attempt>
int asNobody(Attempt&& attempt) {
  constexpr uid_t NOBODY = 65534;
  pid_t child;
  KJ_SYSCALL(child = ::fork());
  if (child == 0) ::_exit(::setuid(NOBODY) == 0 ? attempt() : 255);
  int status;
  KJ_SYSCALL(::waitpid(child, &status, 0));
  return WEXITSTATUS(status);
}

// The names of the job's Unix sockets, without the first byte of an abstract name, which is 0.
kj::Vector<kj::String> abstractSockets() {
  kj::Vector<kj::String> names;
  for (auto& line: linesOf(readFile("/proc/net/unix"))) {
    KJ_IF_MAYBE(at, line.findFirst('@')) {
      auto name = line.slice(*at + 1);
      if (name.startsWith("runner-")) names.add(kj::str(name));
    }
  }
  return names;
}

// Begins a proof at a Unix socket. Returns how many bytes of the answer arrive.
int answeredBytes(kj::StringPtr name) {
  sockaddr_un where = {};
  where.sun_family = AF_UNIX;
  memcpy(where.sun_path + 1, name.begin(), name.size());
  socklen_t size = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&where), size) != 0) return 254;
  char call[64] = {'r', 'u', 'n', 'n', 'e', 'r', 0, 2, 'w'};
  if (::send(fd, call, sizeof(call), MSG_NOSIGNAL) < 0) return 0;
  char answer[96];
  auto n = ::recv(fd, answer, sizeof(answer), MSG_WAITALL);
  return n < 0 ? 0 : int(n);
}

TEST_CASE("another user of the machine gets nothing from a job's sockets and shared memory") {
  if (::geteuid() != 0) SKIP_CASE("only root can become another user");
  auto sockets = abstractSockets();
  Run run(ENDLESS);
  REQUIRE(run.command.waitForOutput("Speed: "));
  REQUIRE(contains(run.read("events.jsonl"), "\"joined\""));
  uint own = 0;
  for (auto& name: abstractSockets()) {
    bool isOlder = false;
    for (auto& old: sockets) isOlder = isOlder || old == name;
    // Leaves out the sockets of other jobs, which may end meanwhile.
    if (isOlder) continue;
    own++;
    auto came = asNobody([&]() { return answeredBytes(name); });
    CHECK((came == 0 || came == 254));
  }
  CHECK(own >= 2);
  for (auto& role: run.roles()) {
    auto descriptors = kj::str("/proc/", role.pid, "/fd");
    auto memory = kj::str("/proc/", role.pid, "/mem");
    CHECK(asNobody([&]() { return ::opendir(descriptors.cStr()) == nullptr ? 0 : 1; }) == 0);
    CHECK(asNobody([&]() { return ::open(memory.cStr(), O_RDONLY) < 0 ? 0 : 1; }) == 0);
    // As root, both are accessible.
    DIR* there = ::opendir(descriptors.cStr());
    CHECK(there != nullptr);
    if (there != nullptr) ::closedir(there);
  }
  run.command.kill(SIGINT);
  CHECK(run.command.wait().exitCode == 130);
}

}  // namespace
}  // namespace tests
