#include "runner/system/interrupts.h"

#include <kj/debug.h>
#include <kj/vector.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "configs/language/printable.h"
#include "runner/system/exit_code.h"

namespace runner {

namespace {

kj::StringPtr lastWords;
kj::Vector<kj::String> allWords;  // of all calls, because a handler may be writing earlier words
bool (*mustCleanUpFirst)() = nullptr;
volatile std::sig_atomic_t writtenFile = -1;
kj::StringPtr writtenText;
bool replacesText = false;
volatile std::sig_atomic_t interrupted = 0;

void onInterrupt(int) {
  if (interrupted || mustCleanUpFirst == nullptr || !mustCleanUpFirst()) endInterrupted();
  interrupted = 1;
}

}  // namespace

kj::Array<int> interrupts() {
  kj::Vector<int> signals;
  signals.add(SIGINT);
  signals.add(SIGTERM);
  struct sigaction hangUp;
  KJ_SYSCALL(::sigaction(SIGHUP, nullptr, &hangUp));
  if (hangUp.sa_handler != SIG_IGN) signals.add(SIGHUP);
  return signals.releaseAsArray();
}

kj::StringPtr reasonOfInterrupt(int signal) {
  switch (signal) {
    case SIGINT:
      return "received SIGINT (Ctrl-C)";
    case SIGHUP:
      return "received SIGHUP (its terminal was closed)";
    default:
      return "received SIGTERM";
  }
}

void endAtInterrupt(kj::StringPtr words, bool (*mustCleanUp)()) {
  lastWords = allWords.add(configs::printableLines(words));
  mustCleanUpFirst = mustCleanUp;
  struct sigaction action = {};
  action.sa_handler = &onInterrupt;
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal: interrupts()) {
    KJ_SYSCALL(::sigaction(signal, &action, nullptr));
    sigaddset(&signals, signal);
  }
  KJ_SYSCALL(::sigprocmask(SIG_UNBLOCK, &signals, nullptr));
}

bool isInterrupted() {
  return interrupted != 0;
}

void writeAtInterrupt(int fd, kj::StringPtr text, bool replaces) {
  // A signal may come in between.
  writtenFile = -1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  writtenText = text;
  replacesText = replaces;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  writtenFile = fd;
}

void endInterrupted() {
  // Makes only calls that are allowed in a signal handler.
  if (writtenFile >= 0) {
    if (replacesText) (void)!::ftruncate(writtenFile, 0);
    auto end = ::lseek(writtenFile, 0, SEEK_END);
    (void)!::pwrite(writtenFile, writtenText.begin(), writtenText.size(), end);
  }
  // Whoever interrupts a process that waits for the reader of stderr wants it to end all the same.
  struct pollfd errors = {STDERR_FILENO, POLLOUT, 0};
  if (::poll(&errors, 1, 0) == 1 && (errors.revents & POLLOUT) != 0) {
    (void)!::write(STDERR_FILENO, lastWords.begin(), lastWords.size());
  }
  ::_exit(INTERRUPTED);
}

}  // namespace runner
