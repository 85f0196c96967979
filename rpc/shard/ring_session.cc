#include "rpc/shard/ring_session.h"

#include <errno.h>
#include <kj/debug.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace rpc {

namespace {

// A worker that waits for many slices is woken after this many bytes of answers. It then copies the
// first slices while the server computes the others. Waking it more often would cost too much:
// about 20 µs each time if its core was idle.
constexpr uint64_t WAKE_BYTES = 1 << 20;

// How many bytes of gradients are taken before the event loop serves others: calls, timers (and
// with them heartbeats), and the rings of other workers.
constexpr uint64_t TURN_BYTES = 1 << 20;

kj::AutoCloseFd newBell() {
  int raw;
  KJ_SYSCALL(raw = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return kj::AutoCloseFd(raw);
}

}  // namespace

void requireNewest(bool isNewest, uint rank) {
  if (isNewest) return;
  KJ_FAIL_REQUIRE(
      "another worker with this rank has connected; give each worker its own rank", rank);
}

RingSession::RingSession(
    RingService service, uint rank, kj::Own<SharedMemory> ownMemory, kj::Function<bool()> isNewest)
    : service(service),
      rank(rank),
      memory(kj::mv(ownMemory)),
      isNewest(kj::mv(isNewest)),
      layout(service.placement),
      gradients(layout.gradients(memory->bytes())),
      pushes(layout.channel(memory->bytes(), service.index).pushes),
      answers(layout.channel(memory->bytes(), service.index).answers),
      server(layout.channel(memory->bytes(), service.index).serverSleeps),
      worker(layout.channel(memory->bytes(), service.index).workerSleeps),
      doorbell(newBell()),
      observer(service.port, doorbell, kj::UnixEventPort::FdObserver::OBSERVE_READ) {}

kj::Promise<void> RingSession::serve() {
  auto paf = kj::newPromiseAndFulfiller<void>();
  failed = kj::mv(paf.fulfiller);
  return listen().exclusiveJoin(kj::mv(paf.promise));
}

kj::Promise<void> RingSession::listen() {
  for (;;) {
    uint64_t rung;
    // Anything that is written from here on triggers the observer again.
    ssize_t n = ::read(doorbell, &rung, sizeof(rung));
    KJ_ASSERT(n == sizeof(rung) || errno == EAGAIN, errno);
    if (!takePushes()) {
      rung = 1;
      KJ_SYSCALL(::write(doorbell, &rung, sizeof(rung)));
      break;
    }
    server.lieDown();
    if (pushes.isEmpty()) break;
    server.getUp();
  }
  return observer.whenBecomesReadable().then([this]() { return listen(); });
}

// Returns false if pushes are left, but others must be served first.
bool RingSession::takePushes() {
  isTaking = true;
  KJ_DEFER({
    isTaking = false;
    if (unheard_bytes > 0) wakeWorker();
  });
  for (uint64_t taken_bytes = 0; taken_bytes < TURN_BYTES;) {
    KJ_IF_MAYBE(note, pushes.take()) {
      push(*note);
      taken_bytes += service.placement.slices[note->slice].size * sizeof(float);
    } else {
      return true;
    }
  }
  return false;
}

void RingSession::push(Note note) {
  service.shard.requireMember(rank);
  requireNewest(isNewest(), rank);
  SliceId id = note.slice;
  service.shard.requireSlice(id);
  KJ_IF_MAYBE(t, service.trace) t->arrived(rank, note.number, id);
  uint64_t due =
      service.shard.push(rank, id, note.number, service.placement.slices[id].of(gradients));
  uint64_t now = service.shard.progress(id);
  KJ_IF_MAYBE(t, service.trace) {
    t->counted(rank, id, due);
    t->reached(id, now);
  }
  if (now >= due) {
    answer(id);
  } else {
    service.waiting.add(*this, id, due);
  }
  service.waiting.reached(id, now);
}

void RingSession::reach(SliceId id) {
  // The push of another worker may have caused this call, so its caller must not see exceptions.
  KJ_IF_MAYBE(exception, kj::runCatchingExceptions([&]() { answer(id); })) {
    KJ_IF_MAYBE(fulfiller, failed) (*fulfiller)->reject(kj::mv(*exception));
  }
}

void RingSession::answer(SliceId id) {
  // Only the newest session of a rank may borrow values.
  if (!isNewest()) return;
  auto lent = service.shard.lend(rank, id);
  KJ_IF_MAYBE(t, service.trace) t->answered(rank, id);
  KJ_REQUIRE(answers.put(Note{id, lent.buffer, lent.version}),
      "a worker pushed a slice again before it took the last answer", rank);
  // Many slices become due one after another. The worker is woken once per turn of the event loop.
  if (unheard_bytes == 0 && !isTaking) {
    waking = kj::evalLater([this]() { wakeWorker(); }).eagerlyEvaluate(nullptr);
  }
  unheard_bytes += lent.values.asBytes().size();
  if (unheard_bytes >= WAKE_BYTES) wakeWorker();
}

void RingSession::wakeWorker() {
  unheard_bytes = 0;
  worker.wake();
}

}  // namespace rpc
