// rpc/store/outbox.h: what a worker has still to say to its servers, and what goes first. Pure.
#pragma once

#include <kj/array.h>
#include <kj/common.h>

#include <cstdint>

#include "rpc/placement.h"
#include "rpc/wire/payload.h"

namespace rpc {

// What the compute thread asks for. One that is not a push comes when all before it are done.
struct Order {
  enum What { INITIALIZE, PUSH, REST, REFRESH } what;
  uint64_t step;  // of a push
  SliceRange slices;
};

// A worker's side of the protocol of kvstore.capnp, with all its servers: orders in, calls out, one
// by one, each when its server can take it. No promises and no clock: Exchange puts these around
// it, and a test a simulated network.
//
// Calls are made when they go, not when they were ordered. So what the next forward needs first
// overtakes what waits, and what has waited shares calls of equal size, so that the server adds up
// one while the next comes: first the oldest step, in it the lowest slices (priority by layer: P3,
// Jayarajan et al. 2019). A call that was not answered when its connection broke goes again; the
// server counts a repeated push once.
class Outbox {
public:
  struct Call {
    enum What : uint8_t { INITIALIZE, PULL, START, PUSH, REST };

    What what;
    uint64_t number;            // PUSH: its step; REST: how many this worker made before
    kj::Array<SliceId> slices;  // ascending; none for START and REST
    uint64_t sent_bytes;        // values on the way to the server, as float32
  };

  // `placement` must outlive it.
  Outbox(const Placement& placement, uint rank);
  KJ_DISALLOW_COPY(Outbox);

  // A slice has one call at a time: the answer to the one before must have come.
  void add(const Order& order);

  // The call that goes next to `server`; null if there is none, if there is no connection, or if
  // the calls that were not yet taken() fill the window.
  kj::Maybe<Call> next(uint server);

  // All calls so far to `server` are on the wire: there is room for `window_bytes` more before
  // somebody asks again.
  void taken(uint server, uint64_t window_bytes = CALL_BYTES_MAX);
  // Whether the answer ends an order other than a push.
  bool answered(uint server, const Call& call);

  // A session with `server` is open: its calls can go. There is none at first.
  void opened(uint server);
  // The connection to `server` broke: of the calls before, no answer will come.
  void lost(uint server);

  // Payload that is ordered but not with the wire; and the most that pushes made it. (First values
  // and pulls order the whole model at once, which says nothing of a step.)
  uint64_t waiting_bytes(uint server) const { return lines[server].waiting_bytes; }
  uint64_t waitingMax_bytes(uint server) const { return lines[server].waitingMax_bytes; }

private:
  enum State : uint8_t { IDLE, WAITING, SENT };

  // A slice, in the order of its server's.
  struct OutgoingSlice {
    State state = IDLE;
    Call::What what = Call::PULL;
    uint64_t step = 0;
  };

  // What concerns one server.
  struct Line {
    kj::ArrayPtr<const SliceId> ids;
    kj::Array<OutgoingSlice> slices;
    size_t lowest = 0;  // no slice before it waits
    size_t waiting = 0;
    size_t sent = 0;
    // A call without slices, after all others.
    State last = IDLE;
    Call::What lastWhat = Call::START;
    bool open = false;
    uint64_t window_bytes = CALL_BYTES_MAX;
    uint64_t given_bytes = 0;  // since taken()
    uint64_t waiting_bytes = 0;
    uint64_t waitingMax_bytes = 0;
  };

  void add(Call::What what, uint64_t step, SliceRange range);
  void addLast(Call::What what);
  size_t mostUrgent(Line& line) const;
  Call collect(Line& line);
  uint64_t bytesOf(const Line& line, size_t index) const;

  const Placement& placement;
  const bool isFirst;  // rank 0
  kj::Array<Line> lines;
  uint64_t missing = 0;  // answers to the order in progress, if that is no push: slices and calls
  uint64_t rests = 0;    // orders
};

}  // namespace rpc
