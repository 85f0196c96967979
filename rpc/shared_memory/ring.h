// rpc/shared_memory/ring.h: sends short notes through shared memory, from one writer to one reader,
// and wakes the reader. Neither end waits for the other or trusts it.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/debug.h>

#include <atomic>
#include <cstdint>

namespace rpc {

using kj::uint;

// A push, or the answer to one.
struct Note {
  uint32_t slice;
  uint32_t buffer;  // in an answer: which of the slice's buffers on the server has the values
  uint64_t number;  // a push's step; an answer's version
};

// How many notes were written or taken, on a separate cache line. Counts overflow; only their
// differences matter.
struct alignas(64) NoteCount {
  std::atomic<uint32_t> value;
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

// Refers to the two counts and the notes of a ring. The number of notes is a power of two.
struct RingMemory {
  NoteCount& written;
  NoteCount& taken;
  kj::ArrayPtr<Note> notes;
};

// The writing end. Whatever the other end does to the memory, it can only make the ring look full,
// or lose notes that it has not taken.
class RingWriter {
public:
  explicit RingWriter(RingMemory memory): memory(memory) {}

  // Writes a note. The thread that takes it also sees everything that was written to memory before.
  // Returns false if the ring is full.
  bool put(Note note) {
    uint32_t taken = memory.taken.value.load(std::memory_order_acquire);
    if (written - taken >= memory.notes.size()) return false;
    memory.notes[written & (memory.notes.size() - 1)] = note;
    memory.written.value.store(++written, std::memory_order_release);
    return true;
  }

private:
  RingMemory memory;
  uint32_t written = 0;
};

// The reading end.
class RingReader {
public:
  explicit RingReader(RingMemory memory): memory(memory) {}

  bool isEmpty() const { return memory.written.value.load(std::memory_order_acquire) == taken; }

  // Returns the next note. Null if there is none. Throws if the count of notes cannot be right.
  kj::Maybe<Note> take() {
    uint32_t ready = memory.written.value.load(std::memory_order_acquire) - taken;
    if (ready == 0) return nullptr;
    KJ_REQUIRE(ready <= memory.notes.size(), "a ring has more notes than it has room for", ready,
        memory.notes.size());
    Note note = memory.notes[taken & (memory.notes.size() - 1)];
    memory.taken.value.store(++taken, std::memory_order_release);
    return note;
  }

private:
  RingMemory memory;
  uint32_t taken = 0;
};

// A word in shared memory that says whether one end sleeps, or is about to.
//
// The sleeper sets the word, and then looks for notes once more. The waker writes a note, and then
// looks at the word. Without a fence, a processor could do the read before its write is visible,
// and both ends would find nothing. Therefore both have a fence in between. After it, at least one
// end sees the other's write.
class Sleeper {
public:
  explicit Sleeper(NoteCount& word): word(word.value) {}

  // Declares that this end is about to sleep. Afterwards, look for notes once more.
  void lieDown() {
    word.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  // Declares that this end is awake.
  void getUp() { word.store(0, std::memory_order_relaxed); }
  // For the waker, after it wrote a note: declares that the sleeper is awake. Returns whether it
  // was asleep, so that the caller has to wake it.
  bool rouse() const {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return word.load(std::memory_order_relaxed) != 0 &&
           word.exchange(0, std::memory_order_relaxed) != 0;
  }

  // Sleeps until wake() is called (futex). Returns immediately if wake() was called after
  // lieDown(). May also return earlier, without reason. For threads that wait for nothing else.
  void wait() const;
  // Calls rouse(), and wakes a thread in wait(). Any thread.
  void wake() const;
  // Does the same, and also works if another process called rouse() and was killed before it woke
  // the thread. Any thread.
  void wakeAfterLoss() const;

private:
  std::atomic<uint32_t>& word;
};

}  // namespace rpc
