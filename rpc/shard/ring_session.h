// rpc/shard/ring_session.h: the server's end of a session that pushes through shared memory.
#pragma once

#include <kj/async-unix.h>
#include <kj/function.h>
#include <kj/io.h>

#include "rpc/placement.h"
#include "rpc/shard/shard.h"
#include "rpc/shard/waiting.h"
#include "rpc/shared_memory/shared_layout.h"
#include "rpc/shared_memory/shared_memory.h"
#include "rpc/trace.h"

namespace rpc {

// Throws, and says what to do, unless the session of worker `rank` is the newest one of its rank.
void requireNewest(bool isNewest, uint rank);

// The parts of the server that a RingSession needs. All of them must outlive the session.
struct RingService {
  const Placement& placement;
  uint index;  // of the shard
  Shard& shard;
  Waiting& waiting;
  kj::UnixEventPort& port;
  kj::Maybe<ShardTrace&> trace;
};

// Takes the pushes of one worker from its ring, each like a pushPull of one slice, and answers
// through the other ring. Gradients are read from the worker's memory, and values stay in the
// server's. Runs on the thread of the event loop, which an eventfd wakes when pushes come while it
// sleeps.
//
// A session that waits for slices stays alive, because the shard still needs its gradients.
class RingSession final: public Waiter {
public:
  // `memory` belongs to worker `rank`. `isNewest` returns whether this is still the newest session
  // of the rank.
  RingSession(
      RingService service, uint rank, kj::Own<SharedMemory> memory, kj::Function<bool()> isNewest);

  // Returns the eventfd that the worker writes to when it has written pushes and the server sleeps.
  int bell() const { return doorbell; }
  // Serves until the promise is dropped. Never resolves. Rejects with the reason if a push is
  // wrong. Call once.
  kj::Promise<void> serve();

  void reach(SliceId id) override;

private:
  kj::Promise<void> listen();
  bool takePushes();
  void push(Note note);
  void answer(SliceId id);
  void wakeWorker();

  RingService service;
  uint rank;
  kj::Own<SharedMemory> memory;
  kj::Function<bool()> isNewest;
  const WorkerLayout layout;
  kj::ArrayPtr<const float> gradients;
  RingReader pushes;
  RingWriter answers;
  Sleeper server;
  Sleeper worker;
  kj::AutoCloseFd doorbell;
  kj::UnixEventPort::FdObserver observer;
  uint64_t unheard_bytes = 0;  // of answers since the worker was last woken
  bool isTaking = false;       // takes pushes, and wakes the worker afterwards
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> failed;
  kj::Promise<void> waking = nullptr;
};

}  // namespace rpc
