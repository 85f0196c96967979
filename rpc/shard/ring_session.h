// rpc/shard/ring_session.h: the server's end of a session whose pushes come through shared memory.
#pragma once

#include <kj/async-unix.h>
#include <kj/function.h>
#include <kj/io.h>

#include "rpc/placement.h"
#include "rpc/shard/shard.h"
#include "rpc/shared_memory/shared_layout.h"
#include "rpc/shared_memory/shared_memory.h"

namespace rpc {

// What a session works with. All outlives it.
struct RingService {
  const Placement& placement;
  uint index;  // of the shard
  Shard& shard;
  Waiting& waiting;
  kj::UnixEventPort& port;
  kj::Maybe<ShardTrace&> trace;
};

// Takes the pushes of one worker from its ring, as calls of pushPull with one slice each, and
// answers through the other ring: gradients are read where they lie, values stay where they are. On
// the thread of the event loop, which an eventfd wakes when pushes come while it sleeps.
//
// Lives on while the shard still needs its gradients.
class RingSession final: public Waiter {
public:
  // `memory` is worker `rank`'s. `isNewest` says whether the rank has said no further hello.
  RingSession(
      RingService service, uint rank, kj::Own<SharedMemory> memory, kj::Function<bool()> isNewest);

  // Rings when pushes were written and the server sleeps.
  int bell() const { return doorbell; }
  // Serves until the promise is dropped. Never resolves; rejects with what was wrong with a push.
  // Once.
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
  bool isTaking = false;       // wakes the worker when it has taken all
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> failed;
  kj::Promise<void> waking = nullptr;
};

}  // namespace rpc
