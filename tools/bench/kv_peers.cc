#include "tools/bench/kv_peers.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "tools/bench/figures.h"
#include "tools/bench/process.h"
#include "tools/bench/streams.h"
#include "tools/bench/torch_python.h"

namespace tools {
namespace {

constexpr kj::StringPtr SCRIPT = "tests/peers/allreduce.py"_kj;
constexpr kj::StringPtr MPI_SOURCE = "tests/peers/allreduce.c"_kj;

uint processesOf(const KvCase& kvCase) {
  return kj::max(2u, kvCase.workers);
}

class Gloo final: public KvPeer {
public:
  explicit Gloo(kj::StringPtr chosen): KvPeer("gloo") { missing = whyMissing(chosen); }

  kj::Own<KvSide> start(const KvCase& kvCase, KvCores cores) override {
    auto side = kj::heap<KvSide>(kj::str(name));
    // A port that was free a moment ago. Python's processes meet there.
    uint port = TcpMeeting(INADDR_LOOPBACK).port();
    for (auto rank: kj::range(0u, processesOf(kvCase))) {
      auto words = cells(python, SCRIPT, "--rank", rank, "--world", processesOf(kvCase), "--port",
          port, "--floats", kvCase.floats());
      auto core = rank % 2 == 0 ? cores.workers : cores.servers;
      side->add(KvSide::ASKED, kj::str("gloo ", rank), core, nullptr, [&]() { become(words); });
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
    auto ended = runProgram(cells(python, SCRIPT, "--import-only"));
    if (ended.exitCode == 0) return nullptr;
    configs::fail("torch.distributed of ", python, " does not load: ", ended.errors);
  }
};

class Mpi final: public KvPeer {
public:
  Mpi(): KvPeer("MPI") { missing = whyMissing(); }

  // mpirun starts the processes and binds each to a core.
  kj::Own<KvSide> start(const KvCase& kvCase, KvCores) override {
    // Open MPI's settings: run as root too, and with more processes than cores.
    auto words = cells("/usr/bin/env", "OMPI_ALLOW_RUN_AS_ROOT=1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1", "mpirun", "-n",
        processesOf(kvCase), kj::str("/proc/", ::getpid(), "/fd/", int(program)), kvCase.floats());
    auto side = kj::heap<KvSide>(kj::str(name));
    side->hasOthers = true;
    side->add(KvSide::ASKED, kj::str("MPI"), ANY_CORE, nullptr, [&]() { become(words); });
    return side;
  }

private:
  kj::Maybe<kj::String> whyMissing() {
    if (::access(MPI_SOURCE.cStr(), R_OK) != 0) return kj::str("no ", MPI_SOURCE, " here");
    if (runProgram(cells("mpirun", "--version")).exitCode != 0) {
      return kj::str("no mpirun");
    }
    char folder[] = "/tmp/bench-kvstore-XXXXXX";
    KJ_REQUIRE(::mkdtemp(folder) != nullptr, "no folder in /tmp");
    auto path = kj::str(static_cast<const char*>(folder), "/allreduce");
    KJ_DEFER({
      ::unlink(path.cStr());
      ::rmdir(folder);
    });
    auto ended = runProgram(cells("mpicc", "-O2", MPI_SOURCE, "-o", path));
    if (ended.exitCode == 127) return kj::str("no mpicc");
    // The wrapper comes with mpirun, the header with MPI's development package.
    if (::strstr(ended.errors.cStr(), "mpi.h: No such file") != nullptr) return kj::str("no mpi.h");
    if (ended.exitCode != 0)
      configs::fail("mpicc does not compile ", MPI_SOURCE, ": ", ended.errors);
    // The file has no name any more, so that it disappears even if this process is killed.
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
