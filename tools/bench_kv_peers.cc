#include "tools/bench_kv_peers.h"

#include <kj/debug.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "tools/bench_process.h"

namespace tools {
namespace {

// Debian's python3-torch belongs to this one, whatever comes first on the path.
constexpr kj::StringPtr PYTHON = "/usr/bin/python3"_kj;
constexpr kj::StringPtr SCRIPT = "tests/peers/allreduce.py"_kj;
constexpr int NO_TORCH = 77;

// Free a moment ago: Python's processes meet there.
uint freePort() {
  int fd;
  KJ_SYSCALL(fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  kj::AutoCloseFd listener(fd);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  KJ_SYSCALL(::bind(listener, reinterpret_cast<sockaddr*>(&address), size));
  KJ_SYSCALL(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size));
  return ntohs(address.sin_port);
}

}  // namespace

kj::Maybe<kj::String> whyNoGloo() {
  if (::access(SCRIPT.cStr(), R_OK) != 0) return kj::str("no ", SCRIPT, " in this folder");
  auto ended = runProgram(kj::arr(kj::str(PYTHON), kj::str(SCRIPT), kj::str("--import-only")));
  if (ended.exitCode == 0) return nullptr;
  if (ended.exitCode == NO_TORCH || ended.exitCode == 127) return kj::str("no python3-torch");
  configs::fail("PyTorch does not load: ", ended.errors);
}

kj::Own<KvSide> startGloo(const KvCase& kvCase, KvCores cores) {
  auto side = kj::heap<KvSide>(kj::str("gloo"));
  uint port = freePort();
  uint world = kj::max(2u, kvCase.workers);
  for (auto rank: kj::range(0u, world)) {
    auto words = kj::arr(kj::str(PYTHON), kj::str(SCRIPT), kj::str("--rank=", rank),
        kj::str("--world=", world), kj::str("--port=", port),
        kj::str("--floats=", kvCase.floats()));
    auto core = rank % 2 == 0 ? cores.workers : cores.servers;
    side->add(kj::heap<KvProcess>(kj::str("gloo ", rank), words, core, nullptr), true);
  }
  return side;
}

}  // namespace tools
