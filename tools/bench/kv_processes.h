// tools/bench/kv_processes.h: starts the processes of `bench kvstore`, and gives them orders.
#pragma once

#include <kj/array.h>
#include <kj/io.h>
#include <kj/string.h>
#include <kj/vector.h>
#include <sys/types.h>

#include "tools/bench/kv_case.h"

namespace tools {

// The processor that a process is bound to, or any that this process may use.
using Core = int;
constexpr Core ANY_CORE = -1;

// A process that takes orders. The destructor kills it, and it dies when this process does.
class KvProcess {
public:
  // Starts `words[0]`, looked up on the path if it has no slash, with copies of `streams` from
  // descriptor FIRST_STREAM on. `name` is what messages call it.
  KvProcess(kj::String name, kj::ArrayPtr<const kj::String> words, Core core,
      kj::ArrayPtr<const int> streams);
  ~KvProcess() noexcept(false);
  KJ_DISALLOW_COPY(KvProcess);

  // Gives an order. Its answer is read by answer().
  void order(KvOrder order);
  // Waits for an answer of `numbers` numbers. Throws if the process ends before; its reason is then
  // on standard error.
  kj::Array<uint64_t> answer(uint64_t numbers);
  // Returns the processor time that the process has used so far.
  uint64_t used_ns() const;

private:
  kj::String name;
  pid_t child;
  kj::AutoCloseFd orders;
  kj::AutoCloseFd answers;
};

// Starts this program as a role.
kj::Own<KvProcess> startRole(const KvRole& role, Core core, kj::ArrayPtr<const int> streams);

// One side of a measurement: the processes that make round trips together, and their partners.
class KvSide {
public:
  explicit KvSide(kj::String name): name(kj::mv(name)) {}

  const kj::String name;
  // True if its processes start others that do the work. used_ns() does not count those.
  bool hasOthers = false;

  // `asks`: the process takes orders.
  void add(kj::Own<KvProcess> process, bool asks);
  void check() { ask({KvOrder::CHECK, 0}, 1); }
  // Returns the answers of those that take orders, of `numbers` numbers each.
  kj::Array<kj::Array<uint64_t>> ask(KvOrder order, uint64_t numbers);
  // Returns the time of each of `count` round trips in ns: the time of the slowest process.
  kj::Array<uint64_t> trips(uint64_t count);
  // Returns the sum of used_ns() of all processes.
  uint64_t used_ns() const;

private:
  kj::Vector<kj::Own<KvProcess>> processes;
  kj::Vector<KvProcess*> asking;
};

// Where workers and servers run.
struct KvCores {
  Core workers = ANY_CORE;
  Core servers = ANY_CORE;
};

// Starts connected workers and servers that use the store.
kj::Own<KvSide> startStore(const KvCase& kvCase, Wire wire, KvCores cores);
// Starts a pair of processes per worker and server, each on the core of the role that it
// represents.
kj::Own<KvSide> startLimit(const KvCase& kvCase, Wire wire, KvCores cores);

}  // namespace tools
