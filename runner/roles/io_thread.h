// runner/roles/io_thread.h: a worker's second thread. Its event loop talks to servers and
// coordinator while the first thread computes.
#pragma once

#include <kj/async-io.h>
#include <kj/mutex.h>
#include <kj/thread.h>

#include "nn/program.h"
#include "rpc/shard/shard_server.h"
#include "rpc/store/remote_store.h"
#include "rpc/wire/listener.h"
#include "runner/checkpoints/saved_part.h"
#include "runner/roles/live_progress.h"
#include "runner/roles/meeting.h"
#include "runner/roles/membership.h"
#include "runner/roles/stop_point.h"

namespace runner {

// The io thread, which starts to join the job immediately. The compute thread calls the methods,
// which wait for the io thread. If the job has failed, they throw the reason.
class IoThread {
public:
  // All arguments must outlive this object.
  IoThread(const LoadedExperiment& loaded, const RoleOptions& options, rpc::MessageLimits limits,
      const LiveProgress& progress);
  // Leaves the job and joins the thread.
  ~IoThread() noexcept(false);
  KJ_DISALLOW_COPY(IoThread);

  // Makes the shard that a worker holds. Called on the io thread.
  using MakeShard = kj::Function<rpc::ServedShard(kj::UnixEventPort& port)>;

  // Waits until the job is joined. Returns the saved state of this worker if the run continues from
  // a checkpoint. Otherwise null.
  kj::Maybe<kj::Array<kj::byte>> savedPart();

  // Whether the job runs without this worker until it has called enter(). Waits until the job is
  // joined.
  bool enters();
  // Becomes a member of the job, at a step before which all others stop. Returns the state of the
  // first member at that step. Null if the job ends before.
  kj::Maybe<kj::Array<kj::byte>> enter();

  // Waits until every role has joined. From then on `store`, if there is one, talks to the servers
  // by `transport`. A server that it cannot reach for `patience` is lost. If each worker holds a
  // shard, `makeShard` makes the shard of this worker, and the thread serves it until the job is
  // over. Whatever the shard refers to must outlive the thread. `since`: see rpc::Servers.
  void start(kj::Maybe<rpc::RemoteStore&> store, const rpc::Transport& transport,
      rpc::MessageLimits storeLimits, kj::Duration patience, kj::Maybe<MakeShard> makeShard,
      uint64_t since);

  // Waits until the coordinator knows which level of instructions all workers have. Returns it.
  kj::String instructionSet();

  // Sends an event to the coordinator. `fill` fills it in.
  void report(kj::Function<void(Event::Builder)> fill);
  // Waits until all workers are at this point of the run: see Session.meet() in job.capnp.
  MeetingOutcome meet(uint epoch, uint64_t step, MeetingPoint point, const nn::BatchResult& result,
      kj::ArrayPtr<const float> statistics,
      kj::ArrayPtr<const nn::ConfusionCell> confusion = nullptr);
  // Where the coordinator has asked this worker to stop, to be saved.
  const StopPoint& stopPoint() const { return stops; }
  // At a step where this worker has agreed to stop: waits until it is decided whether it is saved
  // there.
  bool isToBeSaved(uint64_t step);
  // Sends this worker's state at `step`, or the best weights, to the coordinator while the caller
  // continues. Everything arrives in order, and before finish().
  void send(uint64_t step, Part kind, SavedPart part);
  // Waits until everything passed to send() has arrived. Call it before this worker leaves: another
  // worker may begin with the state that it has sent.
  void awaitSent();
  // Leaves the job between two steps, when all pushes were answered. Returns when the other workers
  // continue, or when the job has ended because they cannot. The caller then ends the process.
  void leave();
  // Calls Membership::tellFailure() once the job is joined, and waits at most a second for that.
  // Throws if the thread has failed to start.
  kj::String tellFailure(const kj::Exception& failure);
  // Returns Membership::clockAhead().
  kj::Duration clockAhead();
  // Tells the coordinator that this worker has finished. Rank 0 passes the weights, the others
  // nothing. With cluster.on_loss = "continue", every worker passes them. Returns when the whole
  // job is over. Do not use the store after that.
  void finish(kj::ArrayPtr<const float> parameters, kj::ArrayPtr<const float> statistics);

private:
  class WorkerCalls;

  struct Loop;

  void main(const LoadedExperiment& loaded, const RoleOptions& options, rpc::MessageLimits limits,
      const LiveProgress& progress);
  static kj::Promise<void> serve(
      Loop& loop, rpc::ServedShard shard, rpc::RemoteStore& store, rpc::MessageLimits limits);
  static void runStore(Loop& loop, rpc::RemoteStore& store, kj::Array<kj::String> names,
      kj::Array<rpc::ServerAddress> addresses, const rpc::Transport& transport,
      rpc::MessageLimits limits, kj::Duration patience, uint64_t since);
  // Waits until the loop is ready. Throws if it failed to start.
  Loop& getLoop();
  // Runs `call` on the io thread. Waits for its promise, or for the end of the job if that comes
  // first.
  template <typename T>
  T onLoop(kj::Function<kj::Promise<T>(Loop&)> call);
  // Runs `call` on the io thread, and waits for its result, or for that of its promise.
  template <typename Call>
  auto runThere(Loop& there, Call&& call);

  // What the compute thread receives: the loop once it is ready, or why it failed to start.
  struct Start {
    kj::Maybe<Loop&> loop;
    kj::Maybe<kj::Exception> failure;

    bool isKnown() const { return loop != nullptr || failure != nullptr; }
  };
  kj::MutexGuarded<Start> begun;
  const uint rank;
  const StopPoint stops;
  // Simulations run the loop on the compute thread. `shared` and `oneThread` are set then, and
  // `thread` otherwise.
  kj::Maybe<kj::Own<Loop>> shared;
  const kj::Maybe<const OneThread&> oneThread;
  kj::Maybe<kj::Own<kj::Thread>> thread;
};

}  // namespace runner
