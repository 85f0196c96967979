// Debian's KJ is not instrumented, and its mutexes are futexes: ThreadSanitizer would see none of
// what they order, and promises across threads are built on them. The linker puts these between
// (--wrap, in .bazelrc), and they say who holds what. Linked under --config=tsan alone.
#include <kj/mutex.h>
#include <sanitizer/tsan_interface.h>

namespace {

using kj::_::Mutex;

constexpr unsigned flagsOf(Mutex::Exclusivity exclusivity) {
  return exclusivity == Mutex::SHARED ? __tsan_mutex_read_lock : 0;
}

}  // namespace

// A member function is called as a function whose first parameter is the object.
bool realLock(Mutex& mutex, Mutex::Exclusivity exclusivity, kj::Maybe<kj::Duration> timeout,
    kj::LockSourceLocationArg location)  //
    asm("__real__ZN2kj1_5Mutex4lockENS1_11ExclusivityENS_5MaybeINS_8QuantityIlNS0_15"
        "NanosecondLabelEEEEENS_18NoopSourceLocationE");
bool wrappedLock(Mutex& mutex, Mutex::Exclusivity exclusivity, kj::Maybe<kj::Duration> timeout,
    kj::LockSourceLocationArg location)  //
    asm("__wrap__ZN2kj1_5Mutex4lockENS1_11ExclusivityENS_5MaybeINS_8QuantityIlNS0_15"
        "NanosecondLabelEEEEENS_18NoopSourceLocationE");
void realUnlock(Mutex& mutex, Mutex::Exclusivity exclusivity, void* waiterToSkip)  //
    asm("__real__ZN2kj1_5Mutex6unlockENS1_11ExclusivityEPNS1_6WaiterE");
void wrappedUnlock(Mutex& mutex, Mutex::Exclusivity exclusivity, void* waiterToSkip)  //
    asm("__wrap__ZN2kj1_5Mutex6unlockENS1_11ExclusivityEPNS1_6WaiterE");
void realWait(Mutex& mutex, Mutex::Predicate& predicate, kj::Maybe<kj::Duration> timeout,
    kj::LockSourceLocationArg location)  //
    asm("__real__ZN2kj1_5Mutex4waitERNS1_9PredicateENS_5MaybeINS_8QuantityIlNS0_15"
        "NanosecondLabelEEEEENS_18NoopSourceLocationE");
void wrappedWait(Mutex& mutex, Mutex::Predicate& predicate, kj::Maybe<kj::Duration> timeout,
    kj::LockSourceLocationArg location)  //
    asm("__wrap__ZN2kj1_5Mutex4waitERNS1_9PredicateENS_5MaybeINS_8QuantityIlNS0_15"
        "NanosecondLabelEEEEENS_18NoopSourceLocationE");

bool wrappedLock(Mutex& mutex, Mutex::Exclusivity exclusivity, kj::Maybe<kj::Duration> timeout,
    kj::LockSourceLocationArg location) {
  unsigned flags = flagsOf(exclusivity);
  __tsan_mutex_pre_lock(&mutex, flags);
  bool got = realLock(mutex, exclusivity, timeout, location);
  if (!got) flags |= __tsan_mutex_try_lock | __tsan_mutex_try_lock_failed;
  __tsan_mutex_post_lock(&mutex, flags, 0);
  return got;
}

// Also looks at the conditions of those who wait, in this thread: unseen, since it holds the mutex.
void wrappedUnlock(Mutex& mutex, Mutex::Exclusivity exclusivity, void* waiterToSkip) {
  unsigned flags = flagsOf(exclusivity);
  __tsan_mutex_pre_unlock(&mutex, flags);
  realUnlock(mutex, exclusivity, waiterToSkip);
  __tsan_mutex_post_unlock(&mutex, flags);
}

void wrappedWait(Mutex& mutex, Mutex::Predicate& predicate, kj::Maybe<kj::Duration> timeout,
    kj::LockSourceLocationArg location) {
  __tsan_mutex_pre_unlock(&mutex, 0);
  __tsan_mutex_post_unlock(&mutex, 0);
  __tsan_mutex_pre_lock(&mutex, 0);
  realWait(mutex, predicate, timeout, location);
  __tsan_mutex_post_lock(&mutex, 0, 0);
}
