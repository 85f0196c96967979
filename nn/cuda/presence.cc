#include "nn/cuda/presence.h"

#include <kj/common.h>
#include <signal.h>

namespace nn::cuda {

namespace {

// Asks with all signals blocked, because NVIDIA's libraries start threads, which block what the
// thread that calls them blocks. Otherwise they would take signals that are for the program: a
// launcher would not notice that a role has ended, or that somebody pressed Ctrl-C.
Presence findUndisturbed() {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  KJ_DEFER(::pthread_sigmask(SIG_SETMASK, &before, nullptr));
  return findGpus();
}

}  // namespace

const Presence& presence() {
  static const Presence FOUND = findUndisturbed();
  return FOUND;
}

}  // namespace nn::cuda
