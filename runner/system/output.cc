#include "runner/system/output.h"

#include <kj/debug.h>
#include <kj/mutex.h>
#include <kj/thread.h>
#include <kj/time.h>
#include <kj/vector.h>
#include <signal.h>

#include "configs/language/printable.h"
#include "runner/system/files.h"
#include "runner/system/interrupts.h"

namespace runner {

namespace {

constexpr size_t WAITING_BYTES_MAX = size_t(64) << 20;
constexpr size_t BEHIND_BYTES = size_t(64) << 10;
constexpr kj::Duration PATIENCE = 2 * kj::SECONDS;

struct Piece {
  int fd;
  kj::String text;
  std::atomic<int>* error;  // null: errors are ignored
};

void writeNow(const Piece& piece) {
  if (piece.error != nullptr && *piece.error != 0) return;
  int error = writeAll(piece.fd, piece.text.asBytes(), &isInterrupted);
  if (piece.error != nullptr) *piece.error = error;
}

// Blocks the signals of this thread while the object lives, so that a thread which is started
// meanwhile receives none: they are for the event loop. A process of the background that may not
// write to the terminal must still be stopped by it (`stty tostop`).
class WithoutSignals {
public:
  WithoutSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::sigdelset(&all, SIGTTOU);
    KJ_SYSCALL(::pthread_sigmask(SIG_BLOCK, &all, &before));
  }
  ~WithoutSignals() noexcept { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  KJ_DISALLOW_COPY(WithoutSignals);

private:
  sigset_t before;
};

}  // namespace

class OutputWriter {
public:
  OutputWriter() {
    WithoutSignals withoutSignals;
    thread = kj::heap<kj::Thread>([this]() { run(); });
  }

  ~OutputWriter() noexcept(false) {
    waiting.lockExclusive()->ends = true;
    thread = nullptr;
  }
  KJ_DISALLOW_COPY(OutputWriter);

  void add(Piece piece) {
    waiting.when([](const Waiting& now) { return now.bytes < WAITING_BYTES_MAX; },
        [&](Waiting& now) {
          now.bytes += piece.text.size();
          now.pieces.add(kj::mv(piece));
        });
  }

  size_t bytesWaiting() { return waiting.lockShared()->bytes; }

  // Waits until everything is written, or until `limit` has passed. Returns whether it is written.
  bool finish(kj::Maybe<kj::Duration> limit) {
    return waiting.when([](const Waiting& now) { return now.bytes == 0; },
        [](Waiting& now) { return now.bytes == 0; }, limit);
  }

private:
  struct Waiting {
    kj::Vector<Piece> pieces;  // that the thread has not taken yet
    size_t bytes = 0;          // of all pieces that are not written yet
    bool ends = false;
  };
  kj::MutexGuarded<Waiting> waiting;
  kj::Own<kj::Thread> thread;

  void run() {
    for (;;) {
      auto pieces = waiting.when([](const Waiting& now) { return now.ends || !now.pieces.empty(); },
          [](Waiting& now) { return kj::mv(now.pieces); });
      if (pieces.empty()) return;
      for (auto& piece: pieces) {
        writeNow(piece);
        waiting.lockExclusive()->bytes -= piece.text.size();
      }
    }
  }
};

namespace {

std::atomic<OutputWriter*> theWriter{nullptr};

void write(Piece piece) {
  auto writer = theWriter.load();
  if (writer == nullptr) return writeNow(piece);
  writer->add(kj::mv(piece));
}

}  // namespace

void writeOutput(int fd, kj::String text, std::atomic<int>& error) {
  write({fd, kj::mv(text), &error});
}

void writeQuietly(int fd, kj::String text) {
  write({fd, kj::mv(text), nullptr});
}

void writeLineQuietly(int fd, kj::StringPtr line) {
  writeQuietly(fd, kj::str(configs::printable(line), "\n"));
}

bool isOutputBehind() {
  auto writer = theWriter.load();
  return writer != nullptr && writer->bytesWaiting() > BEHIND_BYTES;
}

void finishOutput(bool isInterrupted) {
  auto writer = theWriter.load();
  if (writer == nullptr || writer->finish(PATIENCE) || isInterrupted) return;
  // The event loop, which has captured these signals, no longer runs.
  endAtInterrupt("");
  writer->finish(nullptr);
}

OutputThread::OutputThread(): writer(kj::heap<OutputWriter>()) {
  KJ_REQUIRE(theWriter == nullptr, "two OutputThreads");
  theWriter = writer.get();
}

OutputThread::~OutputThread() noexcept(false) {
  finishOutput();
  theWriter = nullptr;
  writer = nullptr;
}

}  // namespace runner
