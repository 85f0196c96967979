#include "tools/bench/kv_processes.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <time.h>
#include <unistd.h>

#include "configs/language/failure.h"

namespace tools {
namespace {

// Runs in the child. Moves a descriptor above the numbers that the child needs, so that none is
// overwritten too early.
int moved(int fd) {
  return ::fcntl(fd, F_DUPFD_CLOEXEC, 512);
}

}  // namespace

KvProcess::KvProcess(
    kj::String ownName, Core core, kj::ArrayPtr<const int> streams, kj::FunctionParam<void()> work)
    : name(kj::mv(ownName)), orders(newPipe()), answers(newPipe()), child([&]() {
        bindTo(core);
        int in = moved(orders.near), out = moved(answers.far);
        for (auto i: kj::indices(streams)) ::dup2(moved(streams[i]), FIRST_STREAM + int(i));
        ::dup2(in, STDIN_FILENO);
        ::dup2(out, STDOUT_FILENO);
        // A process notices the end of another one only if no third process has the streams between
        // them.
        ::close_range(FIRST_STREAM + streams.size(), ~0u, 0);
        work();
      }) {
  orders.near = nullptr;
  answers.far = nullptr;
}

void KvProcess::order(KvOrder order) {
  kj::FdOutputStream(int(orders.far)).write(&order, sizeof(order));
}

kj::Array<uint64_t> KvProcess::answer(uint64_t numbers) {
  auto result = kj::heapArray<uint64_t>(numbers);
  auto bytes = result.asBytes();
  if (kj::FdInputStream(int(answers.near)).tryRead(bytes.begin(), bytes.size(), bytes.size()) <
      bytes.size()) {
    configs::fail(name, " has ended before its answer");
  }
  return result;
}

uint64_t KvProcess::used_ns() const {
  clockid_t clock;
  timespec used{};
  if (::clock_getcpuclockid(child.pid(), &clock) == 0) ::clock_gettime(clock, &used);
  return uint64_t(used.tv_sec) * 1'000'000'000 + uint64_t(used.tv_nsec);
}

void KvSide::add(Part part, kj::String name, Core core, kj::ArrayPtr<const int> streams,
    kj::FunctionParam<void()> work) {
  processes.add(kj::heap<KvProcess>(kj::mv(name), core, streams, work));
  if (part == ASKED) asked.add(processes.back());
}

void KvSide::addJob(uint workers, uint servers, KvCores cores,
    kj::FunctionParam<StreamPair(uint, uint)> connect, kj::FunctionParam<void(uint)> work,
    kj::FunctionParam<void(uint)> serve) {
  auto streams = kj::heapArray<StreamPair>(workers * servers);
  for (auto i: kj::indices(streams)) streams[i] = connect(i / servers, i % servers);
  for (auto server: kj::range(0u, servers)) {
    auto ends = KJ_MAP(worker, kj::range(0u, workers))->int {
      return streams[worker * servers + server].far;
    };
    add(PARTNER, kj::str("server ", server), cores.servers, ends, [&]() { serve(server); });
  }
  for (auto worker: kj::range(0u, workers)) {
    auto ends = KJ_MAP(server, kj::range(0u, servers))->int {
      return streams[worker * servers + server].near;
    };
    add(ASKED, kj::str("worker ", worker), cores.workers, ends, [&]() { work(worker); });
  }
}

kj::Array<kj::Array<uint64_t>> KvSide::ask(KvOrder order, uint64_t numbers) {
  for (auto process: asked) process->order(order);
  return KJ_MAP(process, asked) {
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

}  // namespace tools
