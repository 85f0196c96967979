// tools/bench/kv_processes.h: the processes of `bench kvstore`, from outside.
#pragma once

#include <kj/array.h>
#include <kj/io.h>
#include <kj/string.h>
#include <kj/vector.h>
#include <sys/types.h>

#include "tools/bench/kv_case.h"

namespace tools {

// Which processor a process is bound to; or any that this one may use.
using Core = int;
constexpr Core ANY_CORE = -1;

// A process that takes orders. It is killed when this object goes, and dies when this process does.
class KvProcess {
public:
  // Starts `words[0]`, looked up on the path if it has no slash, with copies of `streams` from
  // descriptor FIRST_STREAM on. `name` is what messages call it.
  KvProcess(kj::String name, kj::ArrayPtr<const kj::String> words, Core core,
      kj::ArrayPtr<const int> streams);
  ~KvProcess() noexcept(false);
  KJ_DISALLOW_COPY(KvProcess);

  void order(KvOrder order);
  // Waits for an answer of so many numbers. Throws if the process ends before; then it has said why
  // on standard error.
  kj::Array<uint64_t> answer(uint64_t numbers);
  // Processor time that it has used so far.
  uint64_t used_ns() const;

private:
  kj::String name;
  pid_t child;
  kj::AutoCloseFd orders;
  kj::AutoCloseFd answers;
};

// This very program as a role.
kj::Own<KvProcess> startRole(const KvRole& role, Core core, kj::ArrayPtr<const int> streams);

// What is measured as one: processes that make round trips together, and those that they make them
// to.
class KvSide {
public:
  explicit KvSide(kj::String name): name(kj::mv(name)) {}

  const kj::String name;
  // Its processes start others that work: used_ns() does not tell.
  bool hasOthers = false;

  // `asks`: it takes orders.
  void add(kj::Own<KvProcess> process, bool asks);
  void check() { ask({KvOrder::CHECK, 0}, 1); }
  // The answers of those that take orders, of so many numbers each.
  kj::Array<kj::Array<uint64_t>> ask(KvOrder order, uint64_t numbers);
  // The time of each of so many round trips, in ns: that of the slowest process.
  kj::Array<uint64_t> trips(uint64_t count);
  // As KvProcess's, of all.
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

// Workers that use the store, and servers; connected.
kj::Own<KvSide> startStore(const KvCase& kvCase, Wire wire, KvCores cores);
// A pair of processes for each worker and server, each on the core of what it stands for.
kj::Own<KvSide> startLimit(const KvCase& kvCase, Wire wire, KvCores cores);

}  // namespace tools
