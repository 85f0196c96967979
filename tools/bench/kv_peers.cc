#include "tools/bench/kv_peers.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "tools/bench/process.h"
#include "tools/bench/torch_python.h"

namespace tools {
namespace {

constexpr kj::StringPtr SCRIPT = "tests/peers/allreduce.py"_kj;
constexpr kj::StringPtr MPI_SOURCE = "tests/peers/allreduce.c"_kj;

// Returns a port that was free a moment ago. Python's processes meet there.
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

uint processesOf(const KvCase& kvCase) {
  return kj::max(2u, kvCase.workers);
}

class Gloo final: public KvPeer {
public:
  explicit Gloo(kj::StringPtr chosen): KvPeer("gloo") { missing = whyMissing(chosen); }

  kj::Own<KvSide> start(const KvCase& kvCase, KvCores cores) override {
    auto side = kj::heap<KvSide>(kj::str(name));
    uint port = freePort();
    for (auto rank: kj::range(0u, processesOf(kvCase))) {
      auto words = kj::arr(kj::str(python), kj::str(SCRIPT), kj::str("--rank=", rank),
          kj::str("--world=", processesOf(kvCase)), kj::str("--port=", port),
          kj::str("--floats=", kvCase.floats()));
      auto core = rank % 2 == 0 ? cores.workers : cores.servers;
      side->add(kj::heap<KvProcess>(kj::str("gloo ", rank), words, core, nullptr), true);
    }
    return side;
  }

private:
  kj::String python;

  kj::Maybe<kj::String> whyMissing(kj::StringPtr chosen) {
    if (::access(SCRIPT.cStr(), R_OK) != 0) return kj::str("no ", SCRIPT, " in this folder");
    auto search = findTorch(chosen);
    KJ_IF_MAYBE(newest, search.newest) {
      python = kj::mv(newest->program);
      version = kj::str("PyTorch ", newest->version, " of ", python);
    } else {
      return search.whyNone();
    }
    auto ended = runProgram(kj::arr(kj::str(python), kj::str(SCRIPT), kj::str("--import-only")));
    if (ended.exitCode == 0) return nullptr;
    configs::fail("torch.distributed of ", python, " does not load: ", ended.errors);
  }
};

class Mpi final: public KvPeer {
public:
  Mpi(): KvPeer("MPI") { missing = whyMissing(); }

  // mpirun starts the processes and binds each to a core.
  kj::Own<KvSide> start(const KvCase& kvCase, KvCores) override {
    kj::Vector<kj::String> words;
    // Open MPI's settings: run as root too, and with more processes than cores.
    for (auto word: {"/usr/bin/env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
             "OMPI_MCA_rmaps_base_oversubscribe=1", "mpirun", "-n"}) {
      words.add(kj::str(word));
    }
    words.add(kj::str(processesOf(kvCase)));
    words.add(kj::str("/proc/", ::getpid(), "/fd/", int(program)));
    words.add(kj::str(kvCase.floats()));
    auto side = kj::heap<KvSide>(kj::str(name));
    side->hasOthers = true;
    side->add(kj::heap<KvProcess>(kj::str("MPI"), words, ANY_CORE, nullptr), true);
    return side;
  }

private:
  kj::Maybe<kj::String> whyMissing() {
    if (::access(MPI_SOURCE.cStr(), R_OK) != 0) return kj::str("no ", MPI_SOURCE, " here");
    if (runProgram(kj::arr(kj::str("mpirun"), kj::str("--version"))).exitCode != 0) {
      return kj::str("no mpirun");
    }
    char folder[] = "/tmp/bench-kvstore-XXXXXX";
    KJ_REQUIRE(::mkdtemp(folder) != nullptr, "no folder in /tmp");
    auto path = kj::str(static_cast<const char*>(folder), "/allreduce");
    KJ_DEFER({
      ::unlink(path.cStr());
      ::rmdir(folder);
    });
    auto ended = runProgram(kj::arr(
        kj::str("mpicc"), kj::str("-O2"), kj::str(MPI_SOURCE), kj::str("-o"), kj::str(path)));
    if (ended.exitCode == 127) return kj::str("no mpicc");
    if (ended.exitCode != 0)
      configs::fail("mpicc does not compile ", MPI_SOURCE, ": ", ended.errors);
    // The file lives on without a name, so that nothing is left if this process is killed.
    int fd;
    KJ_SYSCALL(fd = ::open(path.cStr(), O_RDONLY | O_CLOEXEC));
    program = kj::AutoCloseFd(fd);
    return nullptr;
  }

  kj::AutoCloseFd program;
};

}  // namespace

kj::Own<KvPeer> newGloo(kj::StringPtr python) {
  return kj::heap<Gloo>(python);
}

kj::Own<KvPeer> newMpi() {
  return kj::heap<Mpi>();
}

}  // namespace tools
