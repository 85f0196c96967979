#include "io/batches/division.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace io {
namespace {

kj::Array<uint64_t> placesOf(const Division& division, uint64_t step, uint rank, uint batchSize) {
  auto places = kj::heapArray<uint64_t>(batchSize);
  division.places(step, rank, places);
  return places;
}

TEST_CASE("Division: worker r of W reads the r-th batch of b among the W·b records of each step") {
  Division division(100, 5, 3);
  CHECK(placesOf(division, 0, 0, 5)[0] == 0);
  CHECK(placesOf(division, 0, 2, 5)[4] == 14);
  CHECK(placesOf(division, 4, 1, 5)[0] == 65);
  CHECK(division.stepsUntilEndOf(1) == 6);
  CHECK(division.stepsUntilEndOf(2) == 13);
}

TEST_CASE("Division: after a loss, the records that did not count come first") {
  // Worker 1 of 3 is lost in step 4, and a part of its push counts. The others take its records of
  // step 5, which are 80 to 84, in step 6.
  MemberChange change{.rank = 1, .joins = false, .step = 4, .counts = true};
  Division division(1000, 5, 3, kj::arrayPtr(&change, 1));
  CHECK(placesOf(division, 5, 2, 5)[0] == 85);
  CHECK(placesOf(division, 6, 0, 5)[0] == 80);
  CHECK(placesOf(division, 6, 2, 5)[0] == 90);
  CHECK(placesOf(division, 7, 0, 5)[0] == 95);
  CHECK_THROWS(placesOf(division, 6, 1, 5));
  CHECK(division.membersAt(5).size() == 3);
  CHECK(division.membersAt(6).size() == 2);

  // If nothing of its push counts, its records of step 4 go back, too.
  change.counts = false;
  Division other(1000, 5, 3, kj::arrayPtr(&change, 1));
  CHECK(placesOf(other, 6, 0, 5)[0] == 65);
  CHECK(placesOf(other, 6, 2, 5)[0] == 80);
  CHECK(placesOf(other, 7, 0, 5)[0] == 90);
}

TEST_CASE("Division: a worker that joins reads from its first step on") {
  MemberChange change{.rank = 3, .joins = true, .step = 4};
  Division division(1000, 5, 2, kj::arrayPtr(&change, 1));
  CHECK(placesOf(division, 3, 1, 5)[0] == 35);
  CHECK(placesOf(division, 4, 0, 5)[0] == 40);
  CHECK(placesOf(division, 4, 3, 5)[0] == 50);
  CHECK(placesOf(division, 5, 0, 5)[0] == 55);
  CHECK_THROWS(placesOf(division, 3, 3, 5));
}

TEST_CASE("Division: a job that continues with another number of workers uses every record once") {
  // Two workers of batch 5 end epoch 1 of 98 records after 9 steps, and leave 8 of its records.
  // Then there are three workers, and from epoch 4 on one.
  Division two(98, 5, 2);
  CHECK(two.stepsUntilEndOf(1) == 9);
  Division three(98, 5, 3, nullptr, {.epoch = 1, .step = 9, .records = 90});
  CHECK(three.stepsUntilEndOf(1) == 9);
  // 106 records are left of epochs 1 and 2.
  CHECK(three.stepsUntilEndOf(2) == 16);
  uint64_t third = three.stepsUntilEndOf(3);
  CHECK(third == 22);
  CHECK(placesOf(three, 9, 0, 5)[0] == 90);
  CHECK(placesOf(three, 9, 2, 5)[4] == 104);
  CHECK_THROWS(placesOf(three, 8, 0, 5));

  // Three workers may leave more records than a step of one worker takes. These records still
  // belong to the next epoch.
  uint64_t used = 90 + (third - 9) * 15;
  CHECK(3 * 98 - used == 9);
  Division one(98, 5, 1, nullptr, {.epoch = 3, .step = third, .records = used});
  CHECK(one.stepsUntilEndOf(3) == third);
  CHECK(one.stepsUntilEndOf(4) == third + (98 + 9) / 5);
  CHECK(placesOf(one, third, 0, 5)[0] == used);
}

// A job whose members change at random steps.
struct RandomJob {
  uint64_t records;
  uint batchSize;
  uint workers;
  kj::Vector<MemberChange> changes;

  explicit RandomJob(uint seed) {
    std::mt19937 dice(seed);
    records = 40 + dice() % 200;
    batchSize = 1 + dice() % 8;
    workers = 2 + dice() % 3;
    kj::Vector<uint> members;
    for (uint rank = 0; rank < workers; rank++) members.add(rank);
    uint next = workers;
    uint64_t step = 1;
    for (uint i = dice() % 6; i > 0; i--) {
      if (members.size() > 1 && dice() % 2 == 0) {
        // Losses may come one right after the other, also in the same step.
        uint at = dice() % members.size();
        step += dice() % 3;
        changes.add(MemberChange{members[at], false, step, dice() % 2 == 0});
        members[at] = members.back();
        members.removeLast();
      } else {
        // Nobody joins before earlier changes have taken effect.
        for (auto& change: changes) step = kj::max(step, change.first());
        step += dice() % 5;
        changes.add(MemberChange{next, true, step});
        members.add(next++);
      }
    }
  }

  // Whether the push of a member counts.
  bool counts(uint rank, uint64_t step) const {
    for (auto& change: changes) {
      if (change.rank != rank || change.joins) continue;
      if (step > change.step || (step == change.step && !change.counts)) return false;
    }
    return true;
  }
};

TEST_CASE("Division: every record counts once per pass, whichever workers leave and join") {
  for (uint seed = 0; seed < 500; seed++) {
    CAPTURE(seed);
    RandomJob job(seed);
    Division division(job.records, job.batchSize, job.workers, job.changes);
    constexpr uint64_t STEPS = 200;
    std::vector<uint> times(STEPS * 16 * 8);
    uint64_t last = 0;
    for (uint64_t step = 0; step < STEPS; step++) {
      for (uint rank: division.membersAt(step)) {
        auto places = placesOf(division, step, rank, job.batchSize);
        if (!job.counts(rank, step)) continue;
        for (auto place: places) {
          times[place]++;
          last = kj::max(last, place);
        }
      }
    }
    bool once = true;
    for (uint64_t place = 0; place <= last; place++) once = once && times[place] == 1;
    CHECK(once);
  }
}

TEST_CASE("Division: a second loss in the same step changes nothing that others may have begun") {
  uint atEnd = 0;
  for (uint seed = 0; seed < 500; seed++) {
    CAPTURE(seed);
    std::mt19937 dice(seed);
    uint64_t records = 20 + dice() % 100, step = 1 + dice() % 40;
    uint batchSize = 1 + dice() % 6;
    MemberChange changes[] = {{2, false, step, dice() % 2 == 0}, {1, false, step, dice() % 2 == 0}};
    Division before(records, batchSize, 3);
    Division known(records, batchSize, 3, kj::arrayPtr(changes, 1));
    Division whole(records, batchSize, 3, changes);
    CHECK(placesOf(known, step, 0, batchSize) == placesOf(whole, step, 0, batchSize));
    bool isLast = false;
    for (uint64_t epoch = 1; epoch < 100; epoch++) {
      isLast = isLast || before.stepsUntilEndOf(epoch) == step + 1;
    }
    // After the last step of an epoch, all know of both losses before they begin another one.
    CHECK(whole.membersAt(step + 1).size() == (isLast ? 1 : 3));
    atEnd += isLast ? 1 : 0;
    if (isLast) continue;
    CHECK(placesOf(known, step + 1, 0, batchSize) == placesOf(whole, step + 1, 0, batchSize));
  }
  CHECK(atEnd > 20);
}

TEST_CASE(
    "Division: without waiting, the others take over a lost worker's records at the epoch's end") {
  // An epoch has 8 steps of 4 records. Worker 1 has made 5 of them when it is lost.
  MemberChange change{.rank = 1, .joins = false, .step = 5, .from = 8};
  Division division(32, 2, 2, kj::arrayPtr(&change, 1));
  CHECK(division.nextChangeAfter(7) == 8);
  CHECK((division.nextChangeAfter(8) == kj::maxValue));
  CHECK(placesOf(division, 7, 0, 2)[0] == 28);
  CHECK(placesOf(division, 8, 0, 2)[0] == 22);
  CHECK(placesOf(division, 10, 0, 2)[1] == 31);
  CHECK(division.stepsUntilEndOf(1) == 11);
  CHECK(placesOf(division, 11, 0, 2)[0] == 32);
  CHECK(division.stepsUntilEndOf(2) == 27);
}

TEST_CASE(
    "Division: a lost worker may join again at the step where the others take over its records") {
  MemberChange changes[] = {
      {.rank = 1, .joins = false, .step = 5, .from = 8}, {.rank = 1, .joins = true, .step = 8}};
  Division division(32, 2, 2, changes);
  CHECK(division.membersAt(8).size() == 2);
  // It may be lost again before it has made a step.
  MemberChange again[] = {
      changes[0], changes[1], {.rank = 1, .joins = false, .step = 8, .from = 8}};
  CHECK(Division(32, 2, 2, again).membersAt(8).size() == 1);
  CHECK(placesOf(division, 8, 0, 2)[0] == 22);
  CHECK(placesOf(division, 8, 1, 2)[0] == 26);
  CHECK(division.stepsUntilEndOf(1) == 9);
}

TEST_CASE("Division: of two lost workers, the one that had made more steps may be known first") {
  MemberChange changes[] = {{.rank = 0, .joins = false, .step = 8, .from = 8},
      {.rank = 2, .joins = false, .step = 6, .from = 8}};
  // The four records that worker 2 has left are two steps of worker 1.
  CHECK(Division(48, 2, 3, changes).stepsUntilEndOf(1) == 10);
}

TEST_CASE(
    "Division: an epoch ends when its records are trained, whichever workers are lost in it") {
  for (uint seed = 0; seed < 500; seed++) {
    CAPTURE(seed);
    std::mt19937 dice(seed);
    uint64_t records = 40 + dice() % 200;
    uint batchSize = 1 + dice() % 4;
    uint workers = 2 + dice() % 3;
    constexpr uint EPOCHS = 6;
    kj::Vector<MemberChange> changes;
    auto divided = [&]() { return Division(records, batchSize, workers, changes); };
    uint64_t begin = 0;
    for (uint epoch = 1; epoch <= EPOCHS; epoch++) {
      // Missing workers may come back at the beginning of an epoch.
      auto before = divided();
      auto present = before.membersAt(begin);
      for (uint rank = 0; rank < workers; rank++) {
        bool isThere = std::find(present.begin(), present.end(), rank) != present.end();
        if (!isThere && dice() % 2 == 0) changes.add(MemberChange{rank, true, begin});
      }
      // Another worker may be lost when the others have already begun the records of a lost one.
      uint64_t least = begin;
      for (uint losses = dice() % 3; losses > 0; losses--) {
        auto now = divided();
        uint64_t end = now.stepsUntilEndOf(epoch);
        auto members = now.membersAt(end);
        if (members.size() == 1 || least >= end) break;
        uint64_t step = least + dice() % (end - least);
        changes.add(
            MemberChange{members[dice() % members.size()], false, step, dice() % 2 == 0, end});
        if (dice() % 2 == 0) least = end;
      }
      begin = divided().stepsUntilEndOf(epoch);
    }
    auto division = divided();
    auto counts = [&](uint rank, uint64_t step) {
      for (auto& change: changes) {
        if (change.rank != rank || change.joins || step >= change.from) continue;
        if (step > change.step || (step == change.step && !change.counts)) return false;
      }
      return true;
    };
    std::vector<uint> times((EPOCHS + 1) * records);
    uint64_t step = 0, used = 0;
    for (uint64_t epoch = 1; epoch <= EPOCHS; epoch++) {
      for (; step < division.stepsUntilEndOf(epoch); step++) {
        for (uint rank: division.membersAt(step)) {
          if (!counts(rank, step)) continue;
          for (auto place: placesOf(division, step, rank, batchSize)) {
            times[place]++;
            used++;
          }
        }
      }
      CHECK(used <= epoch * records);
      CHECK(used + workers * batchSize > epoch * records);
    }
    // Records that are left at the end are the first of the next steps.
    uint64_t last = 0;
    bool once = true;
    for (uint64_t place = 0; place < times.size(); place++) {
      once = once && times[place] <= 1;
      if (times[place] > 0) last = place;
    }
    CHECK(once);
    CHECK(last < EPOCHS * records);
  }
}

TEST_CASE("Division: the end of an epoch that is over does not move, and no epoch ends twice") {
  for (uint seed = 0; seed < 500; seed++) {
    CAPTURE(seed);
    RandomJob job(seed);
    // At the end of an epoch, workers know of all losses in earlier steps, and perhaps of more.
    Division whole(job.records, job.batchSize, job.workers, job.changes);
    for (size_t known = 0; known < job.changes.size(); known++) {
      Division before(job.records, job.batchSize, job.workers, job.changes.slice(0, known));
      uint64_t first = kj::maxValue;
      for (size_t i = known; i < job.changes.size(); i++) {
        first = kj::min(first, job.changes[i].step);
      }
      for (uint64_t epoch = 1; epoch < 20; epoch++) {
        uint64_t end = before.stepsUntilEndOf(epoch);
        if (end <= first) CHECK(whole.stepsUntilEndOf(epoch) == end);
        CHECK(whole.stepsUntilEndOf(epoch) <= whole.stepsUntilEndOf(epoch + 1));
      }
    }
  }
}

TEST_CASE("Division: an epoch ends when fewer records are left than a step takes") {
  for (uint seed = 0; seed < 500; seed++) {
    CAPTURE(seed);
    RandomJob job(seed);
    Division division(job.records, job.batchSize, job.workers, job.changes);
    for (uint64_t epoch = 1; epoch < 20; epoch++) {
      uint64_t end = division.stepsUntilEndOf(epoch);
      uint64_t used = 0;
      for (uint64_t step = 0; step < end; step++) {
        for (uint rank: division.membersAt(step)) {
          if (job.counts(rank, step)) used += job.batchSize;
        }
      }
      // Workers that were lost in step `end` or later are still members. A join at step `end` may
      // have ended the epoch.
      kj::Vector<MemberChange> before;
      for (auto& change: job.changes) {
        if (change.step < end + (change.joins ? 1 : 0)) before.add(change);
      }
      Division known(job.records, job.batchSize, job.workers, before);
      CHECK(known.stepsUntilEndOf(epoch) == end);
      CHECK(used <= epoch * job.records);
      CHECK(used + known.membersAt(end).size() * job.batchSize > epoch * job.records);
    }
  }
}

}  // namespace
}  // namespace io
