#include "runner/system/interrupts.h"

#include <kj/debug.h>
#include <kj/vector.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <csignal>

#include "configs/language/printable.h"
#include "runner/system/exit_code.h"

namespace runner {

namespace {

kj::StringPtr lastWords;
kj::Vector<kj::String> allWords;  // of all calls, because a handler may be writing earlier words
bool (*mustCleanUpFirst)() = nullptr;
int appendedFile = -1;
kj::StringPtr appendedLine;
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

void appendAtInterrupt(int fd, kj::StringPtr line) {
  appendedLine = line;
  appendedFile = fd;
}

void endInterrupted() {
  // Makes only calls that are allowed in a signal handler.
  if (appendedFile >= 0) {
    auto end = ::lseek(appendedFile, 0, SEEK_END);
    (void)!::pwrite(appendedFile, appendedLine.begin(), appendedLine.size(), end);
  }
  // Whoever interrupts a process that waits for the reader of stderr wants it to end all the same.
  struct pollfd errors = {STDERR_FILENO, POLLOUT, 0};
  if (::poll(&errors, 1, 0) == 1 && (errors.revents & POLLOUT) != 0) {
    (void)!::write(STDERR_FILENO, lastWords.begin(), lastWords.size());
  }
  ::_exit(INTERRUPTED);
}

}  // namespace runner
