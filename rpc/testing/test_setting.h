// rpc/testing/test_setting.h: modes with their keys, workers and slices, drawn at random for
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
  // From `least` to `most`.
  uint64_t roll(uint64_t least, uint64_t most) { return least + engine() % (most - least + 1); }
  // Once in `n`.
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

// What is tested, drawn from a seed: a mode with its keys, workers, slices, shards.
struct Setting {
  Way way;
  Rounds rounds;
  ModelRule rule;
  kj::Array<uint64_t> sizes;  // of the keys, in floats
  Placement placement;
  kj::Array<float> initial;  // the flat array
  bool rough = false;        // gradients whose sums depend on the order

  static Setting draw(Way way, Dice& dice);
  // Deals the slices to so many shards.
  void deal(uint shards);
  // Whether the shard is the worker's own, which it calls directly: no connection can break.
  bool isOwn(uint rank, uint shard) const { return way == Way::OWN_SHARDS && rank == shard; }
  // Of a number in [-1, 1): one of those that sum exactly, unless the rule is inexact anyway.
  float gradient(float noise) const;
  // What servers update by: the rule of the model.
  kj::Own<Updater> newUpdater() const;
};

}  // namespace rpc
