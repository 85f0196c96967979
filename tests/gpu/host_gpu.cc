// Two fake GPUs, whose work the host does, in place of the GPUs of the machine.
#include <kj/debug.h>
#include <kj/thread.h>
#include <signal.h>

#include "nn/cuda/gpu_device.h"
#include "nn/cuda/presence.h"
#include "nn/cuda/testing/host_device.h"

namespace nn::cuda {

kj::Own<Device> newGpuDevice(uint) {
  return kj::heap<HostDevice>();
}

// Starts a thread, as NVIDIA's libraries do. That thread must take no signals from the program.
Presence findGpus() {
  kj::Thread([]() {
    sigset_t blocked;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    for (int signal: {SIGCHLD, SIGHUP, SIGINT, SIGTERM}) {
      KJ_ASSERT(sigismember(&blocked, signal) == 1, "a library would take a signal", signal);
    }
  });
  return {nullptr, kj::str("the host does the work of two GPUs")};
}

kj::Maybe<kj::String> whyNot(const Presence&, uint index) {
  if (index < 2) return nullptr;
  return kj::str("there are two");
}

}  // namespace nn::cuda
