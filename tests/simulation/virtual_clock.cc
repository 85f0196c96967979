#include "tests/simulation/virtual_clock.h"

#include <kj/debug.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace simulation {

namespace {

constexpr int64_t NS_PER_S = 1000000000;

// If both are null, the clocks are real. Reader threads also read the clock.
std::atomic<int64_t> monotonic_ns{0};
std::atomic<int64_t> date_ns{0};

constexpr auto BEGIN = kj::origin<kj::TimePoint>() + 1000 * kj::SECONDS;
constexpr int64_t BEGIN_DATE_S = 1800000000;

}  // namespace

VirtualClock::VirtualClock(): time(BEGIN), last(BEGIN + 1000000 * kj::SECONDS) {
  KJ_REQUIRE(monotonic_ns == 0, "there is a virtual clock already");
  date_ns = BEGIN_DATE_S * NS_PER_S;
  goTo(BEGIN);
}

VirtualClock::~VirtualClock() noexcept(false) {
  monotonic_ns = 0;
}

void VirtualClock::goTo(kj::TimePoint moment) {
  int64_t now_ns = (moment - kj::origin<kj::TimePoint>()) / kj::NANOSECONDS;
  if (monotonic_ns != 0) date_ns += now_ns - monotonic_ns;
  monotonic_ns = now_ns;
  time.advanceTo(moment);
}

void VirtualClock::moveDate(kj::Duration by) {
  date_ns += by / kj::NANOSECONDS;
}

bool VirtualClock::wait() {
  if (poll()) return true;
  KJ_IF_MAYBE(next, time.nextEvent()) {
    KJ_REQUIRE(*next < last, "the job hangs: its time is over");
    goTo(kj::max(*next, time.now()));
    return poll();
  }
  KJ_FAIL_REQUIRE("the job hangs: nothing will ever happen");
}

bool VirtualClock::poll() {
  bool was = woken;
  woken = false;
  return was;
}

double realTime_s() {
  timespec now;
  KJ_SYSCALL(::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now));
  return now.tv_sec + now.tv_nsec * 1e-9;
}

}  // namespace simulation

// Replaces the C library's function, in this program and in the libraries that it uses.
extern "C" int clock_gettime(clockid_t clock, timespec* result) noexcept {
  using namespace simulation;
  if (monotonic_ns == 0 || clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID) {
    return int(::syscall(SYS_clock_gettime, clock, result));
  }
  bool isDate = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  int64_t ns = isDate ? date_ns : monotonic_ns;
  result->tv_sec = ns / NS_PER_S;
  result->tv_nsec = ns % NS_PER_S;
  return 0;
}
