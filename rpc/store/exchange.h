// rpc/store/exchange.h: the io thread's half of a worker's store, and the state that it shares with
// the compute thread.
#pragma once

#include <kj/async.h>
#include <kj/function.h>
#include <kj/mutex.h>
#include <kj/vector.h>

#include "rpc/store/outbox.h"
#include "rpc/store/remote_store.h"
#include "rpc/store/shared_servers.h"
#include "rpc/wire/payload.h"

namespace rpc {

// The shared state of the two threads of one worker's store. The compute thread hands over orders,
// and the io thread hands back answers. After RemoteStore::run() was called, only `encoder`,
// `shared` and `state` change.
struct Handover {
  const Placement& placement;
  const Rounds rounds;
  const uint rank;
  const kj::ArrayPtr<float> parameters;
  const kj::ArrayPtr<const float> gradients;
  // The io thread encodes, because it has time while the compute thread computes. Encoding
  // therefore does not slow down a step as long as the io thread has a core. The compute thread may
  // use the encoder while no push is in flight.
  PushEncoder encoder;
  kj::Maybe<kj::Own<SharedServers>> shared;  // null: all pushes go over connections
  kj::Maybe<Trace&> trace{};
  // Null unless both threads are one: see RemoteStore::shareThread().
  kj::Maybe<kj::Function<void()>> yield{};

  // The part that both threads change, under the lock of `state`.
  struct State {
    kj::Vector<Order> orders;  // that the io thread has not taken yet
    // Wakes the io thread. Null unless that thread waits for orders.
    kj::Maybe<kj::Own<kj::CrossThreadPromiseFulfiller<void>>> bell;
    kj::Array<uint64_t> answered;             // per slice: pushes whose answers are in `parameters`
    uint64_t completed = 0;                   // orders other than pushes
    uint64_t updates = 0;                     // the highest version of slice 0 that has arrived
    kj::Maybe<kj::Exception> failure;         // the first
    kj::Array<RemoteStore::Traffic> traffic;  // per server
    // The compute thread, which may wait for shared memory instead of this state.
    kj::Maybe<const Sleeper&> sleeper;

    // Makes all waits of the compute thread throw `reason`, or the reason of an earlier call.
    void fail(kj::Exception reason) {
      if (failure == nullptr) failure = kj::mv(reason);
      KJ_IF_MAYBE(waits, sleeper) waits->wakeAfterLoss();
    }
    void throwIfFailed() const {
      KJ_IF_MAYBE(reason, failure) kj::throwFatalException(kj::cp(*reason));
    }
  };
  kj::MutexGuarded<State> state{};

  // Whether pushes to this server go through shared memory instead of orders.
  bool sharesWith(uint server) const {
    KJ_IF_MAYBE(servers, shared) return (*servers)->has(server);
    return false;
  }

  // On the compute thread: hands over an order. Throws if the store has failed.
  void give(const Order& order) {
    kj::Maybe<kj::Own<kj::CrossThreadPromiseFulfiller<void>>> bell;
    {
      auto lock = state.lockExclusive();
      lock->throwIfFailed();
      lock->orders.add(order);
      bell = kj::mv(lock->bell);
      lock->bell = nullptr;
    }
    KJ_IF_MAYBE(fulfiller, bell) (*fulfiller)->fulfill();
  }
  // On the compute thread: waits until `condition(const State&)` holds. Throws if the store fails.
  template <typename Condition>
  void wait(Condition&& condition) {
    KJ_IF_MAYBE(letOthersRun, yield) {
      while (state.lockShared()->failure == nullptr && !condition(*state.lockShared())) {
        (*letOthersRun)();
      }
    }
    auto lock = state.lockExclusive();
    lock.wait([&](const State& now) { return now.failure != nullptr || condition(now); });
    lock->throwIfFailed();
  }
  // On the io thread: moves all new orders to `orders`, which must be empty. If there are none,
  // `orders` stays empty, and the promise resolves when an order was given. Then call take() again.
  kj::Promise<void> take(kj::Vector<Order>& orders) {
    auto lock = state.lockExclusive();
    if (lock->orders.size() == 0) {
      auto paf = kj::newPromiseAndCrossThreadFulfiller<void>();
      lock->bell = kj::mv(paf.fulfiller);
      return kj::mv(paf.promise);
    }
    // Swaps the two, so that both keep their memory.
    auto empty = kj::mv(orders);
    orders = kj::mv(lock->orders);
    lock->orders = kj::mv(empty);
    return kj::READY_NOW;
  }
};

// On the io thread: keeps a session with each server and executes orders, as RemoteStore::run()
// describes. `handover` outlives the promise.
kj::Promise<void> exchange(Handover& handover, Servers servers);

}  // namespace rpc
