// rpc/shared_memory/ring.h: short notes through shared memory, one writer and one reader, neither
// of which waits for the other or trusts it; and how one wakes the other.
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
  uint32_t plane;   // of an answer: which of the server's planes has the values
  uint64_t number;  // a push's step; an answer's version
};

// How many notes were written or taken, on a cache line of its own. Counts run over; only their
// differences matter.
struct alignas(64) NoteCount {
  std::atomic<uint32_t> value;
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

// Where the two counts and the notes of a ring lie. As many notes as a power of two.
struct RingMemory {
  NoteCount& written;
  NoteCount& taken;
  kj::ArrayPtr<Note> notes;
};

// The writing end. What the other end makes of the memory can at most make it look full.
class RingWriter {
public:
  explicit RingWriter(RingMemory memory): memory(memory) {}

  // What was written to any memory before is seen by who takes the note. False: the ring is full.
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

  // The next note; null if there is none. Throws if the count of notes cannot be right.
  kj::Maybe<Note> take() {
    uint32_t ready = memory.written.value.load(std::memory_order_acquire) - taken;
    if (ready == 0) return nullptr;
    KJ_REQUIRE(ready <= memory.notes.size(), "a ring says that it holds more than it can", ready,
        memory.notes.size());
    Note note = memory.notes[taken & (memory.notes.size() - 1)];
    memory.taken.value.store(++taken, std::memory_order_release);
    return note;
  }

private:
  RingMemory memory;
  uint32_t taken = 0;
};

// Says in shared memory that somebody sleeps, or is about to.
//
// The sleeper lies down, and looks once more for notes; the waker writes a note, and then looks
// whether somebody lies. Each writes one place and reads the other's. A processor may do the read
// before its write is seen, and then both would find nothing: so between them stands a fence on
// each side, after which at least one sees what the other wrote.
class Sleeper {
public:
  explicit Sleeper(NoteCount& word): word(word.value) {}

  // Before the last look.
  void lieDown() {
    word.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  void getUp() { word.store(0, std::memory_order_relaxed); }
  // After a note was written. Whether the sleeper lay, and this caller has to wake it.
  bool rouse() const {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return word.load(std::memory_order_relaxed) != 0 &&
           word.exchange(0, std::memory_order_relaxed) != 0;
  }

  // For a thread that has nothing else to wait for (futex): returns when somebody woke it since it
  // lay down, now and then earlier.
  void wait() const;
  // rouse(), and wakes who waits so. Any thread.
  void wake() const;

private:
  std::atomic<uint32_t>& word;
};

}  // namespace rpc
