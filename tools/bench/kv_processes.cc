#include "tools/bench/kv_processes.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "tools/bench/kv_roles.h"
#include "tools/bench/process.h"
#include "tools/bench/streams.h"

namespace tools {
namespace {

StreamPair newStream(Wire wire, uint64_t floats) {
  switch (wire) {
    case Wire::TCP: {
      TcpMeeting meeting(INADDR_LOOPBACK);
      auto near = meeting.connect();
      return {kj::mv(near), meeting.accept()};
    }
    case Wire::UNIX: {
      int fds[2];
      KJ_SYSCALL(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
      return {kj::AutoCloseFd(fds[0]), kj::AutoCloseFd(fds[1])};
    }
    case Wire::MEMORY: {
      int fd;
      KJ_SYSCALL(fd = ::memfd_create("stream", MFD_CLOEXEC));
      kj::AutoCloseFd near(fd);
      KJ_SYSCALL(::ftruncate(near, off_t(sharedBytes(floats))));
      int far;
      KJ_SYSCALL(far = ::fcntl(near, F_DUPFD_CLOEXEC, 0));
      return {kj::mv(near), kj::AutoCloseFd(far)};
    }
    case Wire::COPY:
      break;
  }
  KJ_UNREACHABLE;
}

// Runs in the child. Moves a descriptor above all that the child needs, so that none is overwritten
// too early.
int moved(int fd) {
  return ::fcntl(fd, F_DUPFD_CLOEXEC, 512);
}

void bindTo(Core core) {
  if (core == ANY_CORE) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  if (::sched_setaffinity(0, sizeof(one), &one) < 0) ::_exit(126);
}

}  // namespace

KvProcess::KvProcess(kj::String ownName, kj::ArrayPtr<const kj::String> words, Core core,
    kj::ArrayPtr<const int> streams)
    : name(kj::mv(ownName)) {
  auto arguments = kj::heapArray<char*>(words.size() + 1);
  for (auto i: kj::indices(words)) arguments[i] = const_cast<char*>(words[i].cStr());
  arguments[words.size()] = nullptr;
  auto input = newPipe(), output = newPipe();
  pid_t parent = ::getpid();
  KJ_SYSCALL(child = ::fork());
  if (child == 0) {
    dieWith(parent);
    bindTo(core);
    int in = moved(input.near), out = moved(output.far);
    for (auto i: kj::indices(streams)) ::dup2(moved(streams[i]), FIRST_STREAM + int(i));
    ::dup2(in, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::execvp(arguments[0], arguments.begin());
    ::_exit(127);
  }
  orders = kj::mv(input.far);
  answers = kj::mv(output.near);
}

KvProcess::~KvProcess() noexcept(false) {
  ::kill(child, SIGKILL);
  int status;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
}

void KvProcess::order(KvOrder order) {
  kj::FdOutputStream(int(orders)).write(&order, sizeof(order));
}

kj::Array<uint64_t> KvProcess::answer(uint64_t numbers) {
  auto result = kj::heapArray<uint64_t>(numbers);
  auto bytes = result.asBytes();
  if (kj::FdInputStream(int(answers)).tryRead(bytes.begin(), bytes.size(), bytes.size()) <
      bytes.size()) {
    configs::fail(name, " has ended before its answer");
  }
  return result;
}

uint64_t KvProcess::used_ns() const {
  clockid_t clock;
  timespec used{};
  if (::clock_getcpuclockid(child, &clock) == 0) ::clock_gettime(clock, &used);
  return uint64_t(used.tv_sec) * 1'000'000'000 + uint64_t(used.tv_nsec);
}

kj::Own<KvProcess> startRole(const KvRole& role, Core core, kj::ArrayPtr<const int> streams) {
  kj::Vector<kj::String> words;
  words.add(kj::str("/proc/self/exe"));
  words.add(kj::str(KV_ROLE));
  for (auto& word: wordsOf(role)) words.add(kj::mv(word));
  return kj::heap<KvProcess>(kj::str(role), words, core, streams);
}

void KvSide::add(kj::Own<KvProcess> process, bool asks) {
  if (asks) asking.add(process);
  processes.add(kj::mv(process));
}

kj::Array<kj::Array<uint64_t>> KvSide::ask(KvOrder order, uint64_t numbers) {
  for (auto process: asking) process->order(order);
  return KJ_MAP(process, asking) {
    return process->answer(numbers);
  };
}

kj::Array<uint64_t> KvSide::trips(uint64_t count) {
  auto slowest = kj::heapArray<uint64_t>(count);
  for (auto& time: slowest) time = 0;
  for (auto& times: ask({KvOrder::TRIPS, count}, count)) {
    for (auto i: kj::indices(times)) slowest[i] = kj::max(slowest[i], times[i]);
  }
  return slowest;
}

uint64_t KvSide::used_ns() const {
  uint64_t sum = 0;
  for (auto& process: processes) sum += process->used_ns();
  return sum;
}

kj::Own<KvSide> startStore(const KvCase& kvCase, Wire wire, KvCores cores) {
  auto side = kj::heap<KvSide>(kj::str(wire, " store"));
  auto streams = kj::heapArray<StreamPair>(kvCase.workers * kvCase.servers);
  // Shared memory is handed over on a Unix socket.
  for (auto& stream: streams) stream = newStream(wire == Wire::MEMORY ? Wire::UNIX : wire, 0);
  for (auto server: kj::range(0u, kvCase.servers)) {
    kj::Vector<int> ends;
    for (auto worker: kj::range(0u, kvCase.workers)) {
      ends.add(streams[worker * kvCase.servers + server].far);
    }
    side->add(startRole({KvRole::SERVER, server, wire, kvCase}, cores.servers, ends), false);
  }
  for (auto worker: kj::range(0u, kvCase.workers)) {
    kj::Vector<int> ends;
    for (auto server: kj::range(0u, kvCase.servers)) {
      ends.add(streams[worker * kvCase.servers + server].near);
    }
    side->add(startRole({KvRole::WORKER, worker, wire, kvCase}, cores.workers, ends), true);
  }
  return side;
}

kj::Own<KvSide> startLimit(const KvCase& kvCase, Wire wire, KvCores cores) {
  auto side = kj::heap<KvSide>(kj::str(wire, wire == Wire::COPY ? "" : " raw"));
  for (auto i: kj::range(0u, kvCase.workers * kvCase.servers)) {
    KvRole probe{KvRole::PROBE, i, wire, kvCase};
    if (wire == Wire::COPY) {
      side->add(startRole(probe, cores.workers, nullptr), true);
      continue;
    }
    auto stream = newStream(wire, kvCase.streamFloats());
    int near = stream.near, far = stream.far;
    side->add(startRole({KvRole::ECHO, i, wire, kvCase}, cores.servers, {&far, 1}), false);
    side->add(startRole(probe, cores.workers, {&near, 1}), true);
  }
  return side;
}

}  // namespace tools
