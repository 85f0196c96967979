// tools/bench/kv_processes.h: the processes of a measurement, and the orders that they take.
#pragma once

#include <kj/array.h>
#include <kj/io.h>
#include <kj/string.h>
#include <kj/vector.h>

#include "tools/bench/process.h"
#include "tools/bench/streams.h"

namespace tools {

using kj::uint;

// An order, which is written to a process's standard input.
struct KvOrder {
  enum What : uint64_t {
    // Make `count` round trips. The answer is the nanoseconds of each, 8 bytes each.
    TRIPS,
    // Make a few round trips and compare all values with the right ones. The answer is 8 bytes. A
    // process with wrong values prints an error and ends.
    CHECK,
    // Orders for workers of `bench network` only: see network_roles.h.
    COMPUTE,
    EXCHANGE,
    WAIT,
    TRAFFIC,
  } what;
  uint64_t count;
};

// The descriptors from here on are a process's connections to other processes.
constexpr int FIRST_STREAM = 3;

// A process that takes orders on its standard input. Answers go to its standard output.
class KvProcess {
public:
  // `work` runs in the child, with copies of `streams` from descriptor FIRST_STREAM on and no
  // other descriptors. `name` is the process's name in messages.
  KvProcess(
      kj::String name, Core core, kj::ArrayPtr<const int> streams, kj::FunctionParam<void()> work);
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
  StreamPair orders, answers;
  Child child;
};

// The processors on which workers and servers run.
struct KvCores {
  Core workers = ANY_CORE;
  Core servers = ANY_CORE;
};

// One side of a measurement: the processes that make round trips together, and their partners.
class KvSide {
public:
  explicit KvSide(kj::String name): name(kj::mv(name)) {}

  const kj::String name;
  // True if its processes start others that do the work. used_ns() does not count those.
  bool hasOthers = false;

  enum Part { ASKED, PARTNER };  // whether a process takes orders
  // Starts a process: see KvProcess.
  void add(Part part, kj::String name, Core core, kj::ArrayPtr<const int> streams,
      kj::FunctionParam<void()> work);
  // Starts workers and servers, with a stream between each worker and each server. Workers take
  // orders.
  void addJob(uint workers, uint servers, KvCores cores,
      kj::FunctionParam<StreamPair(uint worker, uint server)> connect,
      kj::FunctionParam<void(uint worker)> work, kj::FunctionParam<void(uint server)> serve);

  void check() { ask({KvOrder::CHECK, 0}, 1); }
  // Returns the answers of those that take orders, of `numbers` numbers each.
  kj::Array<kj::Array<uint64_t>> ask(KvOrder order, uint64_t numbers);
  // Returns the time of each of `count` round trips in ns: the time of the slowest process.
  kj::Array<uint64_t> trips(uint64_t count);
  // Returns the sum of used_ns() of all processes.
  uint64_t used_ns() const;

private:
  kj::Vector<kj::Own<KvProcess>> processes;
  kj::Vector<KvProcess*> asked;
};

}  // namespace tools
