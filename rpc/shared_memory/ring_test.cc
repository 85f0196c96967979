#include "rpc/shared_memory/ring.h"

#include <doctest/doctest.h>
#include <kj/exception.h>
#include <kj/thread.h>

namespace rpc {
namespace {

// The memory that two processes would share.
struct Memory {
  NoteCount written{}, taken{}, sleeps{};
  Note notes[4] = {};

  RingMemory ring() { return {written, taken, notes}; }
};

TEST_CASE("Ring: returns notes in order, and takes no more than it has room for") {
  Memory memory;
  RingWriter writer(memory.ring());
  RingReader reader(memory.ring());
  CHECK(reader.take() == nullptr);
  uint32_t put = 0, taken = 0;
  for (uint turn = 0; turn < 100; turn++) {
    while (writer.put(Note{put, 1, put * 10})) put++;
    CHECK(put - taken == 4);
    for (uint i = 0; i < 1 + turn % 4; i++) {
      auto note = KJ_ASSERT_NONNULL(reader.take());
      CHECK(note.slice == taken);
      CHECK(note.number == taken * 10);
      taken++;
    }
    CHECK(!reader.isEmpty() == (put != taken));
  }
}

TEST_CASE("Ring: with impossible counts, the reader throws, and the writer finds the ring full") {
  Memory memory;
  RingReader reader(memory.ring());
  memory.written.value = 5;
  CHECK_THROWS(reader.take());
  memory.written.value = uint32_t(-1);
  CHECK_THROWS(reader.take());
  RingWriter writer(memory.ring());
  memory.taken.value = 1;
  CHECK(!writer.put(Note{}));
}

TEST_CASE("Ring: no wake is lost between two threads that wait for each other's notes") {
  constexpr uint TRIPS = 20000;
  Memory there, back;
  auto take = [](Memory& memory, RingReader& reader) {
    Sleeper sleeper(memory.sleeps);
    for (;;) {
      KJ_IF_MAYBE(note, reader.take()) return *note;
      sleeper.lieDown();
      KJ_DEFER(sleeper.getUp());
      if (reader.isEmpty()) sleeper.wait();
    }
  };
  uint wrong = 0;
  {
    kj::Thread echo([&]() {
      RingReader reader(there.ring());
      RingWriter writer(back.ring());
      for (uint i = 0; i < TRIPS; i++) {
        writer.put(take(there, reader));
        Sleeper(back.sleeps).wake();
      }
    });
    RingWriter writer(there.ring());
    RingReader reader(back.ring());
    for (uint i = 0; i < TRIPS; i++) {
      writer.put(Note{i, 0, 0});
      Sleeper(there.sleeps).wake();
      wrong += take(back, reader).slice != i;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("Sleeper: wakes also if a process was killed between the two halves of a wake") {
  Memory memory;
  Sleeper sleeper(memory.sleeps);
  sleeper.lieDown();
  std::atomic<bool> sleeps{true};
  kj::Thread thread([&]() {
    while (sleeps) sleeper.wait();
  });
  CHECK(sleeper.rouse());
  sleeps = false;
  sleeper.wakeAfterLoss();
}

}  // namespace
}  // namespace rpc
