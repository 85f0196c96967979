#include "nn/cuda/presence.h"

#include <kj/thread.h>
#include <signal.h>

namespace nn::cuda {

namespace {

// Asks on a thread that blocks all signals. NVIDIA's libraries start threads, which inherit the set
// of blocked signals. Otherwise these threads would take signals that are meant for the program: a
// launcher would not notice that a role has ended, or that the user pressed Ctrl-C. The calling
// thread still receives signals, because the driver may take seconds.
Presence findUndisturbed() {
  Presence found;
  kj::Thread([&found]() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    found = findGpus();
  });
  return found;
}

}  // namespace

const Presence& presence() {
  static const Presence FOUND = findUndisturbed();
  return FOUND;
}

}  // namespace nn::cuda
