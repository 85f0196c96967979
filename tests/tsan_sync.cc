// Debian's KJ and GCC's OpenMP library are not instrumented, and they use their own futexes.
// ThreadSanitizer would not see the order that these create: promises across threads are built on
// KJ's mutexes, objects of several threads on its counts of references, and the CPU backend on
// OpenMP's parallel regions. The linker puts these functions in between (--wrap, in tests/BUILD).
// They tell the sanitizer which thread waits for which. Linked under --config=tsan alone.
#include <kj/mutex.h>
#include <kj/refcount.h>
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

// Also checks the conditions of waiting threads, in this thread. The sanitizer does not see this,
// because the thread holds the mutex.
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

// The thread that drops the last reference to an object deletes it, after all others have dropped
// theirs.
void realDispose(const kj::AtomicRefcounted& object, void* pointer)  //
    asm("__real__ZNK2kj16AtomicRefcounted11disposeImplEPv");
void wrappedDispose(const kj::AtomicRefcounted& object, void* pointer)  //
    asm("__wrap__ZNK2kj16AtomicRefcounted11disposeImplEPv");

void wrappedDispose(const kj::AtomicRefcounted& object, void* pointer) {
  auto place = const_cast<kj::AtomicRefcounted*>(&object);
  __tsan_release(place);
  __tsan_acquire(place);
  realDispose(object, pointer);
}

extern "C" {

void __real_GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
void __real_GOMP_barrier();

// All threads of a region begin after its caller reaches this point, and the caller continues after
// all of them.
void __wrap_GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags) {
  struct Region {
    void (*body)(void*);
    void* data;
  } region{body, data};
  auto inside = [](void* own) {
    __tsan_acquire(own);
    auto& region = *static_cast<Region*>(own);
    region.body(region.data);
    __tsan_release(own);
  };
  __tsan_release(&region);
  __real_GOMP_parallel(inside, &region, threads, flags);
  __tsan_acquire(&region);
}

// One for all regions. The sanitizer then assumes more order than there is, and misses races
// between regions that run in parallel.
void __wrap_GOMP_barrier() {
  static char place;
  __tsan_release(&place);
  __real_GOMP_barrier();
  __tsan_acquire(&place);
}

}  // extern "C"

// oneDNN is not instrumented either. Its cache of primitives has locks of its own, which only
// launcher inline makes several threads take at a time.
extern "C" const char* __tsan_default_suppressions() {
  return "race:libdnnl.so.2\n";
}
