// nn/optimizer/update_rules.h: which rule updates which key, from the optimizer, schedule, groups
// and lookahead of [train].
#pragma once

#include <kj/array.h>
#include <kj/memory.h>
#include <kj/string.h>

#include "configs/language/reader.h"
#include "nn/network/conventions.h"
#include "nn/network/graph.h"
#include "nn/optimizer/lookahead.h"
#include "nn/optimizer/optimizer.h"
#include "nn/optimizer/schedule.h"

namespace nn {

// One of [[train.groups]]: keys with their own update rule.
struct KeyGroup {
  kj::Array<kj::String> patterns;  // names of keys; `*` stands for any characters, or none
  double learningRateFactor;
  double decayFactor;
  kj::Maybe<kj::Own<const Optimizer>> optimizer;  // null: the common one
  kj::Maybe<kj::Own<const Schedule>> schedule;    // likewise
  kj::Maybe<double> epochs;                       // null: the whole run
  configs::Span patternsSpan;
  configs::Span optimizerSpan;  // of its kind

  bool holds(kj::StringPtr key) const;

  static KeyGroup read(configs::Reader& reader, const Conventions& conventions);
};

// How one key is updated. Points into the UpdateRules that it comes from.
struct KeyRule {
  const Optimizer* optimizer;
  const Schedule* schedule;
  double learningRateFactor;  // of the key, times that of its group
  double decayFactor;         // likewise
  kj::Maybe<double> epochs;
  bool ownSchedule;  // the schedule is the group's, and runs over `epochs`

  // Whether the key never changes: it has no step, no decay and no state.
  bool isFrozen() const { return learningRateFactor == 0; }
  // Whether update number `update` (from 0) changes the key.
  bool trainsIn(uint64_t update, const RunLength& run) const;
  // Returns the part of the whole `run` that the schedule covers.
  RunLength scheduleRun(const RunLength& run) const;
  // Returns the learning rate of this update, including all factors.
  double learningRate(uint64_t update, const RunLength& run) const;
  double decay() const { return optimizer->weightDecay() * decayFactor; }
};

// Immutable; any thread.
struct UpdateRules {
  kj::Own<const Optimizer> optimizer;  // of keys without a group
  kj::Own<const Schedule> schedule;
  kj::Array<KeyGroup> groups;      // a key belongs to the first that holds it
  kj::Maybe<Lookahead> lookahead;  // over all keys that are not frozen
  configs::Span optimizerSpan;     // of its kind

  KeyRule of(const Key& key) const;
  // Returns the index of the key's group, or null if it has none.
  kj::Maybe<size_t> groupOf(const Key& key) const;

  // Reports patterns that match no key, groups that get no key, and keys that their optimizer
  // cannot update. Sizes of keys do not matter.
  void check(kj::ArrayPtr<const Key> keys, configs::Diagnostics& diagnostics) const;

  // Reads `optimizer`, `schedule`, `groups` and `lookahead` of [train].
  static UpdateRules read(configs::Reader& reader, const Conventions& conventions);

private:
  void checkGroup(size_t g, kj::ArrayPtr<const Key> keys, configs::Diagnostics& diagnostics) const;
  void checkOptimizer(const Optimizer& rule, configs::Span span, bool isCommon,
      kj::ArrayPtr<const Key> keys, configs::Diagnostics& diagnostics) const;
};

// Whether `name` matches `pattern`, where each `*` stands for any characters, or none.
bool matches(kj::StringPtr pattern, kj::StringPtr name);

}  // namespace nn
