// nn/optimizer/update_rules.h: which rule updates which key: optimizer, schedule, groups and
// lookahead of [train].
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

// One of [[train.groups]]: keys that are updated in a way of their own.
struct KeyGroup {
  kj::Array<kj::String> patterns;  // names of keys; `*` stands for any letters, or none
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

// How one key is updated. What it points to belongs to the UpdateRules that it came from.
struct KeyRule {
  const Optimizer* optimizer;
  const Schedule* schedule;
  double learningRateFactor;  // of the key, times that of its group
  double decayFactor;         // likewise
  kj::Maybe<double> epochs;
  bool ownSchedule;  // whose run are these epochs

  // Whether it never changes: no step, no decay, no state.
  bool isFrozen() const { return learningRateFactor == 0; }
  // Whether update number `update` (from 0) changes it.
  bool trainsIn(uint64_t update, const RunLength& run) const;
  // The run that the schedule is over, of the whole `run`.
  RunLength scheduleRun(const RunLength& run) const;
  // Of this update, all factors included.
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
  // Index of the group that it belongs to; null: none.
  kj::Maybe<size_t> groupOf(const Key& key) const;

  // Reports patterns that no key has, groups that get no key, and keys that their optimizer is not
  // for. Sizes of keys do not matter.
  void check(kj::ArrayPtr<const Key> keys, configs::Diagnostics& diagnostics) const;

  // Reads `optimizer`, `schedule`, `groups` and `lookahead` of [train].
  static UpdateRules read(configs::Reader& reader, const Conventions& conventions);

private:
  void checkGroup(size_t g, kj::ArrayPtr<const Key> keys, configs::Diagnostics& diagnostics) const;
  void checkOptimizer(const Optimizer& rule, configs::Span span, bool isCommon,
      kj::ArrayPtr<const Key> keys, configs::Diagnostics& diagnostics) const;
};

// Whether `name` is `pattern` with any letters, or none, in place of each `*`.
bool matches(kj::StringPtr pattern, kj::StringPtr name);

}  // namespace nn
