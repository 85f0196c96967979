#include "nn/optimizer/update_rules.h"

#include <kj/debug.h>
#include <kj/vector.h>

namespace nn {
namespace {

kj::StringPtr wordFor(Key::Role role) {
  switch (role) {
    case Key::WEIGHT:
      return "weight";
    case Key::BIAS:
      return "bias";
    case Key::GAMMA:
      return "gamma";
    case Key::BETA:
      return "beta";
  }
  KJ_UNREACHABLE;
}

// Returns the help for a pattern that matches no key: the key that is most likely meant, or the
// existing keys.
kj::String suggestKey(kj::StringPtr pattern, kj::ArrayPtr<const Key> keys) {
  constexpr size_t SHOWN = 4;
  auto names = KJ_MAP(key, keys)->kj::StringPtr {
    return key.name;
  };
  KJ_IF_MAYBE(name, configs::nearest(pattern, names)) return kj::str("did you mean `", *name, "`?");
  auto shown = names.slice(0, kj::min(SHOWN, names.size()));
  return kj::str("its keys: ", kj::strArray(shown, ", "),
      names.size() > SHOWN ? kj::str(", … (", names.size(), " in all)") : kj::str());
}

}  // namespace

bool matches(kj::StringPtr pattern, kj::StringPtr name) {
  // Where to continue if the text after the last `*` does not match.
  constexpr size_t NONE = ~size_t(0);
  size_t behindStar = NONE, tried = 0;
  size_t p = 0, n = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      behindStar = ++p;
      tried = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      p++, n++;
    } else if (behindStar != NONE) {
      p = behindStar;
      n = ++tried;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') p++;
  return p == pattern.size();
}

bool KeyGroup::holds(kj::StringPtr key) const {
  for (auto& pattern: patterns) {
    if (matches(pattern, key)) return true;
  }
  return false;
}

KeyGroup KeyGroup::read(configs::Reader& reader, const Conventions& conventions) {
  KeyGroup group;
  group.patterns = reader.texts("keys",
      "The keys of the group, by their names in weights.safetensors (`conv1_weight`, `conv1_bias`, "
      "`bn1_gamma`, `bn1_beta`). `*` matches any characters, or none. A key belongs to the first "
      "group that names it.");
  if (!reader.isManual() && group.patterns.size() == 0) {
    reader.error("keys", "a group needs `keys`", "write keys = [\"*_bias\"]");
  }
  group.learningRateFactor = reader.real("learning_rate_factor",
      "Multiplies the learning rate of the group's optimizer. 0 freezes the keys: weight decay "
      "does not change them either.",
      {.atLeast = 0}, 1);
  group.decayFactor = reader.real(
      "decay_factor", "Multiplies the weight decay of the group's optimizer.", {.atLeast = 0}, 1);
  group.optimizer = maybeReadOptimizer(
      reader, "optimizer", "The group's own optimizer, instead of `train.optimizer`.", conventions);
  group.schedule = maybeReadSchedule(reader, "schedule",
      "The group's own schedule, instead of `train.schedule`. If the group has `epochs`, the "
      "schedule covers these epochs.");
  group.epochs = reader.maybeReal("epochs",
      "Number of epochs after which the keys are no longer updated. May be a fraction. Default: "
      "the keys are updated until the end.",
      {.above = 0});
  group.patternsSpan = reader.span("keys");
  group.optimizerSpan = reader.span("optimizer.kind");
  return group;
}

bool KeyRule::trainsIn(uint64_t update, const RunLength& run) const {
  if (isFrozen()) return false;
  KJ_IF_MAYBE(e, epochs) return update < run.updatesIn(*e);
  return true;
}

RunLength KeyRule::scheduleRun(const RunLength& run) const {
  RunLength own = run;
  KJ_IF_MAYBE(e, epochs) {
    if (ownSchedule) own.updates = kj::min(run.updates, run.updatesIn(*e));
  }
  return own;
}

double KeyRule::learningRate(uint64_t update, const RunLength& run) const {
  double factor = schedule->factor(update, scheduleRun(run));
  return optimizer->learningRate() * factor * learningRateFactor;
}

KeyRule UpdateRules::of(const Key& key) const {
  KeyRule rule{.optimizer = optimizer,
      .schedule = schedule,
      .learningRateFactor = key.learningRateFactor,
      .decayFactor = key.decayFactor,
      .epochs = nullptr,
      .ownSchedule = false};
  KJ_IF_MAYBE(g, groupOf(key)) {
    auto& group = groups[*g];
    KJ_IF_MAYBE(own, group.optimizer) rule.optimizer = *own;
    KJ_IF_MAYBE(own, group.schedule) {
      rule.schedule = *own;
      rule.ownSchedule = true;
    }
    rule.learningRateFactor *= group.learningRateFactor;
    rule.decayFactor *= group.decayFactor;
    rule.epochs = group.epochs;
  }
  return rule;
}

kj::Maybe<size_t> UpdateRules::groupOf(const Key& key) const {
  for (size_t g: kj::indices(groups)) {
    if (groups[g].holds(key.name)) return g;
  }
  return nullptr;
}

void UpdateRules::checkGroup(
    size_t g, kj::ArrayPtr<const Key> keys, configs::Diagnostics& diagnostics) const {
  auto& group = groups[g];
  uint own = 0, held = 0;
  kj::Vector<kj::String> before;  // the lines of groups that have its keys
  for (auto& key: keys) {
    if (!group.holds(key.name)) continue;
    auto& first = groups[KJ_ASSERT_NONNULL(groupOf(key))];
    if (&first == &group) {
      own++;
      held += key.isHeld();
      continue;
    }
    auto line = kj::str(first.patternsSpan.line);
    bool known = false;
    for (auto& other: before) known = known || other == line;
    if (!known) before.add(kj::mv(line));
  }
  if (own == 0) {
    diagnostics.error(group.patternsSpan,
        kj::str("all keys of this group belong to ",
            before.size() > 1 ? "earlier groups (lines " : "an earlier group (line ",
            kj::strArray(before, ", "), ")"),
        "a key belongs to the first group that names it: move this group up, or leave it out");
  } else if (held == own) {
    diagnostics.error(group.patternsSpan,
        "all keys of this group are gammas that their layers keep fixed at 1",
        "leave the group out, or set fixed_gamma = false in these layers");
  }
}

void UpdateRules::checkOptimizer(const Optimizer& rule, configs::Span span, bool isCommon,
    kj::ArrayPtr<const Key> keys, configs::Diagnostics& diagnostics) const {
  if (!rule.isForWeightsAlone()) return;
  uint others = 0;
  kj::StringPtr first;
  kj::Vector<kj::String> patterns;
  for (auto& key: keys) {
    auto chosen = of(key);
    if (chosen.optimizer != &rule || chosen.isFrozen() || key.role == Key::WEIGHT) continue;
    if (others++ == 0) first = key.name;
    auto pattern = kj::str("\"*_", wordFor(key.role), "\"");
    bool known = false;
    for (auto& other: patterns) known = known || other == pattern;
    if (!known) patterns.add(kj::mv(pattern));
  }
  if (others == 0) return;
  diagnostics.error(span,
      kj::str("`", rule.name(), "` updates only weights, but it would also get `", first, "`",
          others > 1 ? kj::str(" (", others, " such keys)") : kj::str()),
      isCommon ? kj::str("add a group before all others: [[train.groups]] with keys = [",
                     kj::strArray(patterns, ", "), "] and optimizer = { kind = \"sgd\" }")
               : kj::str("narrow its keys to weights, whose names end with `_weight`"));
}

void UpdateRules::check(kj::ArrayPtr<const Key> keys, configs::Diagnostics& diagnostics) const {
  for (size_t g: kj::indices(groups)) {
    bool allFound = true;
    for (auto& pattern: groups[g].patterns) {
      bool found = false;
      for (auto& key: keys) found = found || matches(pattern, key.name);
      if (found) continue;
      allFound = false;
      diagnostics.error(groups[g].patternsSpan,
          kj::str("no key of the network is called `", pattern, "`"), suggestKey(pattern, keys));
    }
    if (allFound) checkGroup(g, keys, diagnostics);
  }
  checkOptimizer(*optimizer, optimizerSpan, true, keys, diagnostics);
  for (auto& group: groups) {
    KJ_IF_MAYBE(own, group.optimizer) {
      checkOptimizer(**own, group.optimizerSpan, false, keys, diagnostics);
    }
  }
}

UpdateRules UpdateRules::read(configs::Reader& reader, const Conventions& conventions) {
  UpdateRules rules;
  rules.optimizer = readOptimizer(reader, "optimizer", conventions);
  rules.schedule = readSchedule(reader, "schedule");
  rules.groups = reader.sections("groups", "Groups of keys with their own settings for updates.",
      [&](configs::Reader& group) { return KeyGroup::read(group, conventions); });
  rules.lookahead = reader.maybeSection("lookahead",
      "Keeps a slow copy of the parameters and moving statistics. Every few updates, the slow copy "
      "moves towards the trained values, and training continues from the slow copy (Zhang et al. "
      "2019). A run ends with the slow copy, unless it makes fewer or more updates than planned.",
      Lookahead::read);
  rules.optimizerSpan = reader.span("optimizer.kind");
  return rules;
}

}  // namespace nn
