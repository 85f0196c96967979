// runner/roles/io_thread.h: a worker's second thread: the event loop that talks while the first one
// computes.
#pragma once

#include <kj/async-io.h>
#include <kj/mutex.h>
#include <kj/thread.h>
#include <atomic>

#include "nn/program.h"
#include "rpc/kvstore.capnp.h"
#include "rpc/store/remote_store.h"
#include "rpc/wire/listener.h"
#include "runner/roles/membership.h"

namespace runner {

// How far the compute thread got: it writes, the io thread reads it into heartbeats.
struct LiveProgress {
  std::atomic<uint> epoch{0};
  std::atomic<uint64_t> step{0};
  std::atomic<double> lossSum{0};
  std::atomic<uint64_t> correct{0};
  std::atomic<uint64_t> images{0};
  // Whether it was read since the compute thread last asked: for one that must fetch its sums.
  mutable std::atomic<bool> wasRead{false};
};

// Sums of all workers, and the mean of their statistics.
struct Met {
  nn::BatchResult result;
  kj::Array<float> statistics;
};

// Joins the job at once. The methods are called by the compute thread and wait for the io thread;
// they throw what went wrong with the job, if something did.
class IoThread {
public:
  // All arguments must outlive it.
  IoThread(const LoadedExperiment& loaded, const RoleOptions& options, rpc::MessageLimits limits,
      const LiveProgress& progress);
  // Leaves the job and joins the thread.
  ~IoThread() noexcept(false);
  KJ_DISALLOW_COPY(IoThread);

  // Makes, on the io thread, the shard that a worker holds.
  using MakeShard = kj::Function<rpc::ShardService::Client(kj::UnixEventPort& port)>;

  // Waits until every role has joined; from then on `store`, if there is one, talks to the servers
  // by `transport`. One that it cannot reach for `patience` is lost. Where each worker holds a
  // shard, `makeShard` makes this worker's, which is served until the job is over: what it refers
  // to must outlive the thread.
  void start(kj::Maybe<rpc::RemoteStore&> store, const rpc::Transport& transport,
      rpc::MessageLimits storeLimits, kj::Duration patience, kj::Maybe<MakeShard> makeShard);

  // `fill` makes the event.
  void report(kj::Function<void(Event::Builder)> fill);
  Met meet(uint epoch, MeetingPoint point, const nn::BatchResult& result,
      kj::ArrayPtr<const float> statistics);
  // Membership::tellFailure(), once the job is joined, which takes another second at most. Throws
  // if it never will be.
  kj::String tellFailure(const kj::Exception& failure);
  // Membership::clockAhead(), before the thread ends.
  kj::Duration clockAhead();
  // The store is not used any more. Rank 0 hands in the weights. Returns when the whole job is
  // over.
  void finish(kj::ArrayPtr<const float> parameters, kj::ArrayPtr<const float> statistics);

private:
  // What lives on the io thread. Only `executor` may be used from elsewhere.
  struct Loop {
    const kj::Executor& executor;
    kj::AsyncIoContext& io;
    kj::Maybe<kj::Own<rpc::Listener>> listener;  // if this worker is to hold a shard
    kj::Maybe<rpc::ShardService::Client> shard;  // that shard
    kj::Promise<void> serving;                   // it, to the other workers
    kj::Own<Membership> membership;              // once joined
    kj::ForkedPromise<void> joined;
    kj::ForkedPromise<void> ended;  // the job is over; rejects with what went wrong
    kj::Promise<void> store;        // rejects when a server is lost
    kj::Own<kj::CrossThreadPromiseFulfiller<void>> leave;
  };

  void main(const LoadedExperiment& loaded, const RoleOptions& options, rpc::MessageLimits limits,
      const LiveProgress& progress);
  static void serve(Loop& loop, rpc::ShardService::Client shard, rpc::RemoteStore& store,
      rpc::MessageLimits limits);
  static void run(Loop& loop, rpc::RemoteStore& store, kj::Array<rpc::ServerAddress> addresses,
      const rpc::Transport& transport, rpc::MessageLimits limits, kj::Duration patience);
  // Waits for the loop to stand; throws if it never will.
  Loop& getLoop();
  // Runs `call` on the io thread and waits for its promise, or for the end of the job if that comes
  // first.
  template <typename T>
  T run(kj::Function<kj::Promise<T>(Loop&)> call);

  // Where the two threads find each other: the loop once it stands, or why it never will.
  struct Start {
    kj::Maybe<Loop&> loop;
    kj::Maybe<kj::Exception> failure;

    bool isKnown() const { return loop != nullptr || failure != nullptr; }
  };
  kj::MutexGuarded<Start> begun;
  kj::Thread thread;
};

}  // namespace runner
