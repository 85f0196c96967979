// rpc/testing/mode_model.h: a slow model of one slice of a Shard, written from the descriptions in
// rpc/rounds.h and docs/modes. Tests compare a Shard with it.
#pragma once

#include <kj/array.h>
#include <kj/debug.h>
#include <kj/vector.h>

#include "rpc/rounds.h"

namespace rpc {

// An update rule in double: w ← w + rate · f(sum) / divisor, with f depending on `kind`.
struct ModelRule {
  enum Kind {
    PLAIN,            // sum
    SUM,              // w ← sum: workers make the updates
    STALENESS_AWARE,  // sum / max(1, staleness)
    COMPENSATED,      // sum + lambda · sum ⊙ sum ⊙ (w - seen)
    ELASTIC,          // seen - sum - w: the rule of easgd for a worker's distance from `seen`
  } kind = PLAIN;
  double rate = 1;
  double lambda = 0;  // COMPENSATED
  // The tolerance for float32. One push more or less makes a hundred times as much difference.
  double tolerance = 0;
};

// One slice in one mode. It remembers all pushes and the values of all versions, and searches them
// for each question.
class SliceModel {
public:
  using Values = kj::Array<double>;

  SliceModel(const Rounds& rounds, const ModelRule& rule, kj::ArrayPtr<const float> initial)
      : rounds(rounds), rule(rule) {
    versions.add(KJ_MAP(value, initial) { return double(value); });
    for (uint rank = 0; rank < rounds.workers; rank++) workers.add();
  }

  uint64_t version() const { return versions.size() - 1; }
  const Values& newest() const { return versions.back(); }
  // Returns the version that worker `rank` computes on.
  uint64_t seen(uint rank) const { return workers[rank].seen; }
  uint64_t steps(uint rank) const { return workers[rank].steps; }
  // Whether the worker's last push is answered, or it has not pushed yet.
  bool isAnswered(uint rank) const { return workers[rank].answered; }
  // Returns how many pushes of `rank` are in the newest values.
  uint64_t applied(uint rank) const {
    uint64_t count = 0;
    for (auto& push: pushes) count += push.rank == rank && push.state == Push::APPLIED;
    return count;
  }
  uint64_t pushed() const { return pushes.size(); }
  uint64_t dropped() const {
    uint64_t count = 0;
    for (auto& push: pushes) count += push.state == Push::DROPPED;
    return count;
  }
  // Returns how many pushes were applied to newer values than they were computed on.
  uint64_t appliedLate() const {
    uint64_t count = 0;
    for (auto& push: pushes) count += push.state == Push::APPLIED && push.update > push.seen;
    return count;
  }
  // Returns how many pushes were applied with `staleness` updates between the values that they were
  // computed on and their own update.
  uint64_t withStaleness(uint64_t staleness) const {
    uint64_t count = 0;
    for (auto& push: pushes) {
      count += push.state == Push::APPLIED && push.update - push.seen == staleness;
    }
    return count;
  }

  // Counts a push. Returns false if it is a repeated one.
  bool push(uint rank, uint64_t step, kj::ArrayPtr<const float> gradient) {
    auto& worker = workers[rank];
    if (step < worker.steps) return false;
    KJ_REQUIRE(step == worker.steps && worker.answered && !worker.rests, "a wrong schedule");
    worker.steps++;
    worker.answered = false;
    auto values = KJ_MAP(g, gradient) {
      return double(g);
    };
    pushes.add(Push{rank, step, worker.seen, kj::mv(values)});
    bool late = worker.seen < version();
    if (late && (rounds.counted == Rounds::FIRST || rounds.counted == Rounds::ANY)) {
      pushes.back().state = Push::DROPPED;
    }

    settle();
    return true;
  }

  // An answer or a pull gives `rank` the newest values.
  void read(uint rank) { workers[rank].seen = version(); }

  void rest(uint rank) {
    workers[rank].rests = true;
    if (resting() == rounds.workers) {
      for (auto& worker: workers) worker.rests = false;
    }
    settle();
  }

private:
  struct Push {
    uint rank;
    uint64_t step;
    uint64_t seen;
    Values gradient;
    enum { OPEN, APPLIED, DROPPED } state = OPEN;
    uint64_t update = 0;  // the update that it is part of
  };

  struct Worker {
    uint64_t steps = 0;
    uint64_t seen = 0;
    bool answered = true;
    bool rests = false;
  };

  uint resting() const {
    uint count = 0;
    for (auto& worker: workers) count += worker.rests;
    return count;
  }

  // Returns the pushes that make the next update. Empty if there are not enough.
  kj::Vector<Push*> nextUpdate() {
    kj::Vector<Push*> open;
    for (auto& push: pushes) {
      if (push.state == Push::OPEN) open.add(&push);
    }
    uint needed = 0;
    switch (rounds.counted) {
      case Rounds::ALL:
        needed = rounds.workers;
        break;
      case Rounds::FIRST:
        // Workers that rest count as pushes.
        needed = rounds.aggregate - kj::min(rounds.aggregate, resting());
        break;
      case Rounds::ANY:
        needed = rounds.aggregate;
        break;
      case Rounds::EACH:
        needed = 1;
        break;
    }
    if (open.size() < kj::max(1u, needed)) open.clear();
    return open;
  }

  void settle() {
    for (;;) {
      auto update = nextUpdate();
      if (update.size() == 0) break;
      apply(update);
    }
    for (auto& push: pushes) {
      auto& worker = workers[push.rank];
      if (push.step + 1 == worker.steps && (push.state != Push::OPEN || goesOn()) &&
          isNearEnough(worker)) {
        worker.answered = true;
      }
    }
  }

  // Whether workers have to push more than once to fill a round.
  bool goesOn() const {
    return rounds.counted == Rounds::ANY && (resting() > 0 || rounds.workers < rounds.aggregate);
  }

  // Whether `worker` may continue: no worker that does not rest is behind it by more than the
  // bound.
  bool isNearEnough(const Worker& worker) const {
    if (!rounds.isBounded()) return true;
    for (auto& other: workers) {
      if (!other.rests && other.steps + rounds.staleness < worker.steps) return false;
    }
    return true;
  }

  void apply(kj::ArrayPtr<Push* const> update) {
    auto& now = versions.back();
    auto next = kj::heapArray<double>(now.size());
    auto divisor = rounds.isBounded() ? rounds.workers : update.size();
    for (auto i: kj::indices(now)) {
      double sum = 0;
      for (auto push: update) sum += push->gradient[i];
      auto& first = *update[0];
      if (rule.kind == ModelRule::STALENESS_AWARE) {
        sum /= double(kj::max(uint64_t(1), version() - first.seen));
      }
      if (rule.kind == ModelRule::COMPENSATED) {
        sum += rule.lambda * sum * sum * (now[i] - versions[first.seen][i]);
      }
      if (rule.kind == ModelRule::ELASTIC) sum = versions[first.seen][i] - sum - now[i];
      next[i] = rule.kind == ModelRule::SUM ? sum : now[i] + rule.rate * sum / divisor;
    }
    for (auto push: update) {
      push->state = Push::APPLIED;
      push->update = version();
    }
    versions.add(kj::mv(next));
  }

  const Rounds rounds;
  const ModelRule rule;
  kj::Vector<Values> versions;
  kj::Vector<Push> pushes;  // in the order in which they came
  kj::Vector<Worker> workers;
};

}  // namespace rpc
