// rpc/store/outbox.h: the values that a worker has yet to send to its servers, and their order.
// Pure.
#pragma once

#include <kj/array.h>
#include <kj/common.h>

#include <cstdint>

#include "rpc/placement.h"
#include "rpc/wire/payload.h"

namespace rpc {

// A request of the compute thread. An order other than a push is given only when all earlier orders
// are done.
struct Order {
  // RESUME: like INITIALIZE, but the servers have the values already.
  enum What { INITIALIZE, RESUME, PUSH, REST, REFRESH } what;
  uint64_t number;  // PUSH: its step; REST: how many rests this worker made before; others: 0
  SliceRange slices;
};

// A worker's side of the protocol in kvstore.capnp, with all its servers. It takes orders, and
// returns the calls one by one, each when its server can take it. It has no promises and no clock:
// Exchange adds these, and a test adds a simulated network.
//
// The outbox chooses the slices of a call when the call is sent, not when they were ordered: first
// the oldest step, and in it the lowest slices. So the slices that the next forward pass needs
// first overtake other waiting slices (priority by layer: P3, Jayarajan et al. 2019). Waiting
// slices share calls of equal size, so that the server adds one call while the next one arrives.
//
// If a call was not answered when its connection broke, it is sent again. The server counts a
// repeated push only once.
class Outbox {
public:
  // The content of one message to one server.
  struct Call {
    enum What : uint8_t { INITIALIZE, PULL, START, PUSH, REST };

    What what;
    uint64_t number;            // PUSH: its step; REST: how many rests this worker made before
    kj::Array<SliceId> slices;  // ascending; empty for START and REST
    uint64_t sent_bytes;        // the values that are sent to the server, counted as float32
  };

  // `placement` must outlive it.
  Outbox(const Placement& placement, uint rank);
  KJ_DISALLOW_COPY(Outbox);

  // Adds an order. A slice has only one call at a time: its last call must have been answered.
  void add(const Order& order);

  // Returns the next call to send to `server`. Null if nothing waits, if there is no connection, or
  // if the calls that were not yet taken() fill the window.
  kj::Maybe<Call> next(uint server);

  // The kernel has taken all calls to `server` so far. Until the next call of taken(), next()
  // returns calls of about `window_bytes` in total.
  void taken(uint server, uint64_t window_bytes = CALL_BYTES_MAX);
  // The answer to `call` has arrived. Returns whether it completes an order other than a push.
  bool answered(uint server, const Call& call);

  // A session with `server` was opened, so its calls can be sent. Initially no session is open.
  void opened(uint server);
  // The connection to `server` broke. Unanswered calls will be sent again.
  void lost(uint server);

  // How many bytes of values are ordered but not yet returned by next(), and the maximum of this
  // number after a push. (First values and pulls order the whole model at once, so they are
  // irrelevant for a step.)
  uint64_t waiting_bytes(uint server) const { return lines[server].waiting_bytes; }
  uint64_t waitingMax_bytes(uint server) const { return lines[server].waitingMax_bytes; }

private:
  enum State : uint8_t { IDLE, WAITING, SENT };

  // A slice and its call, if it has one.
  struct OutgoingSlice {
    State state = IDLE;
    Call::What what = Call::PULL;
    uint64_t step = 0;
  };

  // The outgoing slices of one server.
  struct Line {
    kj::ArrayPtr<const SliceId> ids;  // of the server's slices
    kj::Array<OutgoingSlice> slices;  // in the order of `ids`
    size_t lowest = 0;                // no slice before this index waits
    size_t waiting = 0;
    size_t sent = 0;
    // A call without slices, which is sent after all others were answered.
    State last = IDLE;
    Call::What lastWhat = Call::START;
    uint64_t lastNumber = 0;
    bool open = false;
    uint64_t window_bytes = CALL_BYTES_MAX;
    uint64_t given_bytes = 0;  // since taken()
    uint64_t waiting_bytes = 0;
    uint64_t waitingMax_bytes = 0;
  };

  void add(Call::What what, uint64_t step, SliceRange range);
  void addLast(Call::What what, uint64_t number = 0);
  size_t mostUrgent(Line& line) const;
  Call collect(Line& line);
  uint64_t bytesOf(const Line& line, size_t index) const;

  const Placement& placement;
  const bool isFirst;  // rank 0
  kj::Array<Line> lines;
  // Slices and calls that must be answered to complete the order in progress, unless it is a push.
  uint64_t missing = 0;
};

}  // namespace rpc
