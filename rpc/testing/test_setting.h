// rpc/testing/test_setting.h: draws modes with their keys, workers and slices at random, for
// property tests.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>

#include <random>

#include "rpc/placement.h"
#include "rpc/rounds.h"
#include "rpc/testing/mode_model.h"

namespace rpc {

// A random number generator whose numbers are the same everywhere.
class Dice {
public:
  explicit Dice(uint64_t seed): engine(seed) {}
  // Returns a number from `least` to `most`.
  uint64_t roll(uint64_t least, uint64_t most) { return least + engine() % (most - least + 1); }
  // Returns true once in `n` calls on average.
  bool onceIn(uint64_t n) { return roll(1, n) == 1; }

private:
  std::mt19937_64 engine;
};

// The ways of counting that schedules are made of.
enum class Way {
  ALL,
  FIRST,
  ANY,
  EACH,
  BOUNDED,
  COMPENSATED,
  STALENESS_AWARE,
  SUMS,
  OWN_SHARDS,
  ELASTIC
};
constexpr uint WAYS = 10;

// What a test runs, drawn from a seed: a mode with its keys, workers, slices and shards.
struct Setting {
  Way way;
  Rounds rounds;
  ModelRule rule;
  kj::Array<uint64_t> sizes;  // of the keys, in floats
  Placement placement;
  kj::Array<float> initial;  // the flat array
  bool rough = false;        // whether sums of gradients depend on the order

  static Setting draw(Way way, Dice& dice);
  // Assigns the slices to `shards` shards.
  void deal(uint shards);
  // Whether the worker calls its own shard directly, so that no connection can break.
  bool isOwn(uint rank, uint shard) const { return way == Way::OWN_SHARDS && rank == shard; }
  // Rounds a number in [-1, 1) to one of those whose sums are exact, unless the rule is inexact
  // anyway.
  float gradient(float noise) const;
  // Makes the updater of servers, with the rule of the model.
  kj::Own<Updater> newUpdater() const;
};

}  // namespace rpc
