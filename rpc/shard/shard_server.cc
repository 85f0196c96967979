#include "rpc/shard/shard_server.h"

#include <kj/debug.h>
#include <kj/refcount.h>
#include <kj/vector.h>

#include "rpc/shard/ring_session.h"
#include "rpc/shard/shard.h"
#include "rpc/shard/shared_values.h"
#include "rpc/shard/waiting.h"
#include "rpc/wait_list.h"
#include "rpc/wire/descriptor.h"
#include "rpc/wire/payload.h"

namespace rpc {

namespace {

// A call that waits for the progress of slices.
struct WaitingCall final: public Waiter {
  uint missing = 0;  // slices that have not made enough progress
  kj::Own<kj::PromiseFulfiller<void>> fulfiller;

  void reach(SliceId) override {
    if (--missing == 0) fulfiller->fulfill();
  }
};

class ShardServer final: public ShardService::Server, public ShardMembers {
public:
  ShardServer(const Placement& placement, uint shard, const Rounds& rounds, Updater& updater,
      kj::Maybe<kj::UnixEventPort&> port, kj::Maybe<ShardTrace&> trace)
      : placement(placement),
        digest(placement.digest()),
        index(shard),
        slices(placement.shards[shard]),
        mode(kj::str(rounds)),
        port(port),
        values(placement, shard, rounds),
        pushes(rounds.codec.pushes()),
        answers(rounds.answers(), placement),
        wholeValues({}, placement),
        shard(placement, shard, rounds, updater,
            ValueMemory([this](SliceId id, uint buffer) { return values.of(id, buffer); })),
        trace(trace),
        waiting(placement.slices.size(), trace),
        call(placement),
        sessions(kj::heapArray<uint>(rounds.workers)),
        since(kj::heapArray<uint64_t>(rounds.workers)),
        started(kj::heapArray<bool>(rounds.workers)) {
    for (auto& count: sessions) count = 0;
    for (auto& step: since) step = 0;
    for (auto& flag: started) flag = false;
  }

  Shard& served() { return shard; }

  kj::Array<Shard::SliceSteps> fence(uint rank) override {
    shard.fence(rank);
    sessions[rank]++;
    return shard.pushedBy(rank);
  }

  void leave(uint rank) override {
    fence(rank);
    shard.leave(rank);
    // The others do not wait for it to start either. A worker that joins later starts immediately.
    started[rank] = true;
    startIfAll();
    wakeAll();
  }

  void admit(uint rank, uint64_t step) override {
    shard.admit(rank, step);
    since[rank] = step;
  }

  kj::Promise<void> hello(HelloContext context) override;

  kj::Promise<void> counts(CountsContext context) override {
    auto& counts = shard.counts();
    size_t rows = kj::size(counts.staleness);
    while (rows > 0 && counts.staleness[rows - 1] == 0) rows--;
    auto results = context.getResults();
    results.setPushed(counts.pushed);
    results.setDropped(counts.dropped);
    auto staleness = results.initStaleness(rows);
    for (auto i: kj::indices(staleness)) staleness.set(i, counts.staleness[i]);
    return kj::READY_NOW;
  }

private:
  class Session;

  // Lets the workers start if all have called start(). Returns whether they may start.
  bool startIfAll() {
    for (bool flag: started) {
      if (!flag) return false;
    }
    starting.wakeAll();
    return true;
  }
  // Resolves when all slices of `call` have values, and have made the progress that is due.
  kj::Promise<void> whenDue();
  // Wakes calls that waited for the progress that slice `id` has made.
  void wake(SliceId id) { waiting.reached(id, shard.progress(id)); }
  // Does the same for all slices that have values.
  void wakeAll() {
    for (SliceId id: slices) {
      if (shard.version(id) != nullptr) wake(id);
    }
  }

  const Placement& placement;
  uint64_t digest;  // of the placement
  uint index;       // of the shard
  kj::ArrayPtr<const SliceId> slices;
  kj::String mode;                     // how pushes are counted and encoded
  kj::Maybe<kj::UnixEventPort&> port;  // for sessions that share memory
  SharedValues values;
  const codec::Encoding pushes;
  AnswerEncoder answers;      // to pushes
  AnswerEncoder wholeValues;  // to pulls
  Shard shard;
  kj::Maybe<ShardTrace&> trace;
  Waiting waiting;
  // The slices of the present call and of its answer. Both keep their memory.
  CallSlices call;
  SliceRuns runs;
  kj::Array<uint> sessions;   // per rank: how many hellos; only the newest session is valid
  kj::Array<uint64_t> since;  // per rank: the step at which it became a member
  kj::Array<bool> started;    // ranks that called start()
  WaitList starting;          // calls of start()
};

kj::Promise<void> ShardServer::whenDue() {
  kj::Maybe<kj::Own<WaitingCall>> waiter;
  for (auto& each: call.all()) {
    bool hasValues = shard.version(each.id) != nullptr;
    if (hasValues && shard.progress(each.id) >= each.due) continue;
    if (waiter == nullptr) waiter = kj::refcounted<WaitingCall>();
    auto& waits = *KJ_ASSERT_NONNULL(waiter);
    waiting.add(waits, each.id, each.due);
    waits.missing++;
  }
  KJ_IF_MAYBE(waits, waiter) {
    auto paf = kj::newPromiseAndFulfiller<void>();
    (*waits)->fulfiller = kj::mv(paf.fulfiller);
    return kj::mv(paf.promise);
  }
  return kj::READY_NOW;
}

// Calls cannot be cancelled. Therefore a call's message, with a gradient that the shard still
// needs, stays in memory until the call is answered.
class ShardServer::Session final: public ShardSession::Server {
public:
  Session(ShardServer& server, ShardService::Client keepAlive, uint rank)
      : server(server), keepAlive(kj::mv(keepAlive)), rank(rank), number(++server.sessions[rank]) {}

  kj::Promise<void> initialize(InitializeContext context) override {
    requireNewest();
    KJ_REQUIRE(rank == 0, "only rank 0 sends initial values", rank);
    server.call.read(context.getParams().getValues(), {});
    for (auto& each: server.call.all()) server.shard.checkInitialize(each.id, floats(each));
    for (auto& each: server.call.all()) {
      server.shard.initialize(each.id, floats(each));
      server.wake(each.id);
    }
    return kj::READY_NOW;
  }

  kj::Promise<void> start(StartContext) override {
    requireNewest();
    KJ_REQUIRE(
        server.shard.isInitialized(), "a worker starts, but not all slices have values", rank);
    server.started[rank] = true;
    if (server.startIfAll()) return kj::READY_NOW;
    return server.starting.wait();
  }

  kj::Promise<void> rest(RestContext context) override {
    requireNewest();
    server.shard.rest(rank, context.getParams().getNumber());
    server.wakeAll();
    return kj::READY_NOW;
  }

  kj::Promise<void> pull(PullContext context) override {
    requireNewest();
    auto params = context.getParams();
    server.call.read(params.getSlices());
    for (auto& each: server.call.all()) server.shard.requireSlice(each.id);
    return answerWhenDue(context, server.wholeValues);
  }

  kj::Promise<void> pushPull(PushPullContext context) override {
    requireNewest();
    auto params = context.getParams();
    uint64_t step = params.getStep();
    server.call.read(params.getGradients(), server.pushes);
    for (auto& each: server.call.all()) {
      server.shard.checkPush(rank, each.id, step, {server.pushes, each.payload});
    }
    for (auto& each: server.call.all()) {
      // Only now is it known that all are slices of this server.
      KJ_IF_MAYBE(t, server.trace) t->arrived(rank, step, each.id);
      each.due = server.shard.push(rank, each.id, step, {server.pushes, each.payload});
      KJ_IF_MAYBE(t, server.trace) t->counted(rank, each.id, each.due);
      server.wake(each.id);
    }
    return answerWhenDue(context, server.answers);
  }

  kj::Promise<void> share(ShareContext context) override {
    requireNewest();
    auto memory = context.getParams().getMemory();
    auto promise = memory.getFd();
    return promise.then([this, context, memory = kj::mv(memory)](kj::Maybe<int> fd) mutable {
      KJ_IF_MAYBE(descriptor, fd) {
        KJ_IF_MAYBE(port, server.port) open(*descriptor, *port, context.getResults());
      }
    });
  }

  kj::Promise<void> watch(WatchContext context) override {
    KJ_REQUIRE(ring != nullptr, "a worker called watch() without sharing memory", rank);
    // The session ends with its connection.
    context.allowCancellation();
    return serving.addBranch();
  }

private:
  // Begins to serve a worker's rings.
  void open(int descriptor, kj::UnixEventPort& port, ShareResults::Builder results) {
    // Several calls may have waited for their descriptors at the same time.
    KJ_REQUIRE(ring == nullptr, "a worker shared its memory twice", rank);
    auto memory =
        SharedMemory::map(descriptor, WorkerLayout(server.placement).bytes(), SharedMemory::WRITE);
    RingService service{
        server.placement, server.index, server.shard, server.waiting, port, server.trace};
    // A session that waits for slices may outlive its connection, but not the server, which owns
    // the list of waiters.
    auto session = kj::refcounted<RingSession>(
        service, rank, kj::mv(memory), [&server = server, rank = rank, number = number]() {
          return number == server.sessions[rank];
        });
    results.setMemory(passed(server.values.descriptor()));
    results.setBell(passed(session->bell()));
    serving = session->serve().fork();
    ring = kj::mv(session);
  }

  void requireNewest() {
    server.shard.requireMember(rank);
    rpc::requireNewest(number == server.sessions[rank], rank);
  }

  // First values are always float32.
  static codec::Floats floats(const CallSlice& slice) {
    KJ_REQUIRE(slice.payload.size() % sizeof(float) == 0,
        "initial values must be whole float32 values of 4 bytes", slice.payload.size());
    // A message's Data begins at a multiple of 8 bytes.
    auto values = reinterpret_cast<const float*>(slice.payload.begin());
    return kj::arrayPtr(values, slice.payload.size() / sizeof(float));
  }

  // Answers the call with the newest values of its slices, as soon as these are due.
  template <typename Context>
  kj::Promise<void> answerWhenDue(Context& context, AnswerEncoder& encoder) {
    auto ids = KJ_MAP(each, server.call.all()) {
      return each.id;
    };
    return server.whenDue().then(
        [this, context, &encoder, ids = kj::mv(ids)]() mutable { answer(context, ids, encoder); });
  }

  template <typename Context>
  void answer(Context& context, kj::ArrayPtr<const SliceId> ids, AnswerEncoder& encoder) {
    // Only the newest session of a rank may borrow values.
    requireNewest();
    auto& runs = server.runs;
    runs.begin(encoder.encoding());
    for (auto id: ids) {
      auto lent = server.shard.lend(rank, id);
      KJ_IF_MAYBE(t, server.trace) t->answered(rank, id);
      runs.add(id, lent.version, encoder.encode(id, lent.version, lent.values));
    }
    auto all = runs.all();
    auto payload = encoder.payload();
    auto values = context.getResults(sizeOfList(all, payload)).initValues(all.size());
    for (auto i: kj::indices(all)) {
      values[i].setVersion(all[i].number);
      setFloats(values[i], all[i].bytes, payload);
    }
  }

  ShardServer& server;
  ShardService::Client keepAlive;
  uint rank;
  uint number;
  kj::Maybe<kj::Own<RingSession>> ring;
  kj::ForkedPromise<void> serving = nullptr;  // RingSession::serve() of `ring`
};

kj::Promise<void> ShardServer::hello(HelloContext context) {
  auto params = context.getParams();
  uint rank = params.getRank();
  // A user who starts a role with another file sees these messages.
  auto workerMode = params.getMode();
  if (workerMode != mode) {
    KJ_FAIL_REQUIRE(
        "worker and server run different kvstore modes; start all roles with the same file", rank,
        workerMode, mode);
  }
  auto workers = params.getWorkers();
  if (workers != sessions.size()) {
    KJ_FAIL_REQUIRE(
        "worker and server count different numbers of workers; start all roles with the same file",
        rank, workers, sessions.size());
  }
  if (rank >= workers) KJ_FAIL_REQUIRE("there is no worker of this rank", rank, workers);
  shard.requireMember(rank);
  if (params.getSince() != since[rank]) {
    kj::throwFatalException(KJ_EXCEPTION(
        DISCONNECTED, "the job continues without this worker: another one has its place", rank));
  }
  if (params.getPlacement() != digest) {
    KJ_FAIL_REQUIRE(
        "worker and server divide the parameters differently; start all roles with the same file "
        "and the same binary",
        rank);
  }
  auto meant = params.getShard();
  if (meant != index) {
    KJ_FAIL_REQUIRE("a worker expected another server here; list the servers in their order", rank,
        meant, index);
  }
  context.getResults().setSession(kj::heap<Session>(*this, thisCap(), rank));
  return kj::READY_NOW;
}

}  // namespace

ServedShard newShardServer(const Placement& placement, uint shard, const Rounds& rounds,
    Updater& updater, kj::Maybe<kj::UnixEventPort&> port, kj::Maybe<ShardTrace&> trace) {
  // Encoded values are sent in messages, not through shared memory.
  if (!rounds.codec.isPlain()) port = nullptr;
  auto server = kj::heap<ShardServer>(placement, shard, rounds, updater, port, trace);
  auto& own = *server;
  return {kj::mv(server), own.served(), own};
}

}  // namespace rpc
