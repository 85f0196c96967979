#include "runner/experiment/sweep.h"

#include <math.h>

#include <algorithm>
#include <charconv>

#include "configs/language/random.h"
#include "configs/language/syntax_error.h"
#include "runner/experiment/differences.h"
#include "runner/experiment/shown_experiment.h"

namespace runner {

namespace {

constexpr kj::StringPtr VALUES =
    "a list of values, or a range "
    "`{ from = 0.01, to = 1, count = 5, scale = \"log\" }`"_kj;
constexpr kj::StringPtr DRAWN_VALUES =
    "a list of values, or a range `{ from = 0.01, to = 1, scale = \"log\" }`"_kj;

constexpr int DIGITS = 4;
constexpr int DIGITS_MAX = 17;  // enough to distinguish all doubles

constexpr size_t NAME_BYTES_MAX = 180;

// Sections and keys that do not affect how a run computes.
constexpr kj::StringPtr NOT_SWEPT[] = {
    "name"_kj, "extends"_kj, "sweep"_kj, "expect"_kj, "published"_kj};

struct Scale {
  const char* name;
  const char* doc;
};
constexpr Scale SCALES[] = {{"linear", "Equal differences."}, {"log", "Equal ratios."}};

constexpr configs::Kind<AshaConfig> STOPS[] = {
    {"asha",
        "Asynchronous successive halving (Li et al. 2020). Each run is checked after the epochs "
        "first_epoch · keep_one_in^k (k = 0, 1, 2, …). It is stopped unless its validation "
        "accuracy is among the best 1 / keep_one_in of the runs that have reached this check so "
        "far.",
        AshaConfig::read},
};

// ---- Numbers of ranges.

double rounded(double value, int digits) {
  char text[64];
  auto end =
      std::to_chars(text, text + sizeof(text), value, std::chars_format::scientific, digits - 1)
          .ptr;
  double result = value;
  std::from_chars(text, end, result);
  return result;
}

// Returns the value of the range at `t` (0 … 1).
double pointOf(const SweptRange& range, double t) {
  if (range.isLog) return range.from * pow(range.to / range.from, t);
  return range.from + (range.to - range.from) * t;
}

kj::Own<configs::Value> valueOf(const SweptRange& range, double number) {
  number = kj::max(range.from, kj::min(range.to, number));
  auto value = range.isWhole ? configs::newValue(int64_t(number)) : configs::newValue(number);
  value->span = range.span;
  return value;
}

kj::Array<double> pointsOf(const SweptRange& range, uint count) {
  auto points = kj::heapArray<double>(count);
  for (int digits = DIGITS;; ++digits) {
    bool apart = true;
    for (uint i = 0; i < count; i++) {
      double point = pointOf(range, double(i) / (count - 1));
      points[i] = range.isWhole    ? round(point)
                  : i == 0         ? range.from
                  : i == count - 1 ? range.to
                                   : rounded(point, digits);
      apart = apart && (i == 0 || points[i] > points[i - 1]);
    }
    if (apart || range.isWhole || digits == DIGITS_MAX) return points;
  }
}

// ---- Reading.

bool isInteger(const configs::Value& table, kj::StringPtr key) {
  KJ_IF_MAYBE(entry, table.content.get<configs::Table>().find(key)) {
    return entry->value->content.is<int64_t>();
  }
  return false;
}

// Reads a range. `count` is null if values are drawn from the range.
SweptRange readRange(configs::Reader& reader, const configs::Value& table, kj::Maybe<uint&> count) {
  // Above 2^53, a double cannot represent every integer.
  constexpr double LARGEST = 9007199254740992.0;
  SweptRange range;
  range.from = reader.real("from", "Its lower end.", {.atLeast = -LARGEST, .atMost = LARGEST});
  range.to = reader.real("to", "Its upper end.", {.atLeast = -LARGEST, .atMost = LARGEST});
  KJ_IF_MAYBE(c, count) {
    *c = reader.integer(
        "count", "Number of values, including both ends.", {.atLeast = 2, .atMost = int(RUNS_MAX)});
  }
  auto& scale = reader.choose("scale", "How the values are spread.",
      kj::arrayPtr(SCALES, kj::size(SCALES)), kj::StringPtr("linear"));
  range.isLog = &scale == &SCALES[1];
  range.isWhole = isInteger(table, "from") && isInteger(table, "to");
  range.span = table.span;
  if (reader.has("from") && reader.has("to") && !(range.from < range.to)) {
    reader.error("to", "`to` must be greater than `from`", nullptr, {"from"_kj});
  } else if (range.isLog && !(range.from > 0)) {
    reader.error("from", "a range with scale = \"log\" must begin above 0", nullptr, {"scale"_kj});
  }
  return range;
}

kj::Maybe<SweptKey> readKey(
    configs::Reader& reader, kj::StringPtr section, const configs::Entry& entry) {
  bool drawn = section == "draw";
  auto& content = entry.value->content;
  SweptKey key{kj::str(entry.key), entry.keySpan, nullptr, nullptr};
  size_t before = reader.diagnostics().count();
  if (content.is<configs::List>()) {
    auto& list = content.get<configs::List>();
    if (list.empty()) {
      reader.diagnostics().error(entry.value->span, kj::str("`", entry.key, "` has no value"),
          "write at least one value, or leave the key out");
    }
    key.values = KJ_MAP(value, list)->kj::Own<const configs::Value> {
      return configs::clone(*value);
    };
  } else if (content.is<configs::Table>()) {
    uint count = 2;
    auto range = reader.entry(section, entry, [&](configs::Reader& range) {
      return drawn ? readRange(range, *entry.value, nullptr)
                   : readRange(range, *entry.value, count);
    });
    // The error in the range has been reported. Its numbers may be meaningless.
    if (reader.diagnostics().count() > before) return nullptr;
    if (drawn) {
      key.range = range;
    } else {
      key.values = KJ_MAP(point, pointsOf(range, count))->kj::Own<const configs::Value> {
        return valueOf(range, point);
      };
    }
  } else {
    reader.diagnostics().error(entry.value->span,
        kj::str("`", entry.key, "` must be ", drawn ? DRAWN_VALUES : VALUES, ", not ",
            configs::print(*entry.value)),
        kj::str("write [", configs::print(*entry.value), "]"));
  }
  auto first = entry.key.slice(0, entry.key.findFirst('.').orDefault(entry.key.size()));
  for (auto word: NOT_SWEPT) {
    if (first == word.asArray()) {
      reader.diagnostics().error(entry.keySpan, kj::str("`", word, "` cannot be swept"),
          "sweep only keys on which the result of a run depends");
    }
  }
  // Each part of a dotted key becomes a table within the one before it.
  if (std::count(entry.key.begin(), entry.key.end(), '.') >= configs::KEY_PARTS_MAX) {
    reader.diagnostics().error(entry.keySpan,
        kj::str("this key has more than ", configs::KEY_PARTS_MAX, " parts"),
        "configs/REFERENCE.md lists all keys");
  }
  if (reader.diagnostics().count() > before) return nullptr;
  return kj::mv(key);
}

// Whether these are keys of a section: `data = { batch_size = [128, 256] }`. A range holds only
// single values.
bool isSection(const configs::Value& value) {
  if (!value.content.is<configs::Table>()) return false;
  auto& entries = value.content.get<configs::Table>().entries;
  for (auto& entry: entries) {
    auto& content = entry.value->content;
    if (!content.is<configs::List>() && !content.is<configs::Table>()) return false;
  }
  return !entries.empty();
}

// `prefix` is empty or ends in a point.
void addKeys(configs::Reader& reader, kj::StringPtr section, kj::StringPtr prefix,
    kj::ArrayPtr<const configs::Entry> entries, kj::Vector<SweptKey>& keys) {
  for (auto& entry: entries) {
    auto dotted = kj::str(prefix, entry.key);
    if (isSection(*entry.value)) {
      auto& inner = entry.value->content.get<configs::Table>().entries;
      addKeys(reader, section, kj::str(dotted, "."), inner, keys);
      continue;
    }
    configs::Entry whole{kj::mv(dotted), entry.keySpan, configs::clone(*entry.value)};
    KJ_IF_MAYBE(key, readKey(reader, section, whole)) keys.add(kj::mv(*key));
  }
}

kj::Array<SweptKey> readKeys(configs::Reader& reader, kj::StringPtr section, kj::StringPtr doc) {
  kj::Vector<SweptKey> keys;
  size_t before = reader.diagnostics().count();
  auto entries = reader.entries(section, doc);
  addKeys(reader, section, "", entries, keys);
  if (reader.has(section) && entries.size() == 0 && reader.diagnostics().count() == before) {
    reader.error(section, kj::str("`", section, "` names no key"),
        kj::str("write { \"data.batch_size\" = [128, 256] }, or leave `", section, "` out"));
  }
  return keys.releaseAsArray();
}

// Checks the keys together.
void check(const SweepConfig& config, bool hasDraws, configs::Reader& reader) {
  auto keys = config.keys();
  for (size_t i: kj::indices(keys)) {
    for (size_t j = 0; j < i; j++) {
      if (keys[i]->key != keys[j]->key) continue;
      reader.diagnostics().error(keys[i]->span, kj::str("`", keys[i]->key, "` is swept twice"),
          "leave it in one of `grid`, `zip` and `draw`");
    }
  }
  for (auto& key: config.zip) {
    size_t length = config.zip[0].values.size();
    if (key.values.size() == length) continue;
    reader.diagnostics().error(key.span,
        kj::str("`", key.key, "` has ", key.values.size(),
            key.values.size() == 1 ? " value, and `" : " values, and `", config.zip[0].key,
            "` has ", length),
        "`zip` takes one value of each list at a time: give all lists the same length");
  }
  if (config.draw.size() > 0 && !hasDraws) {
    reader.error("draw", "the number of draws is missing", "write draws = 20", {"draws"_kj});
  }
  if (hasDraws && !reader.has("draw")) {
    reader.error("draws", "there is nothing to draw", "write draw = { … }, or leave `draws` out",
        {"draw"_kj});
  }
  if (!reader.has("grid") && !reader.has("zip") && !reader.has("draw")) {
    reader.error("grid", "this sweep has no keys",
        "write grid = { \"data.batch_size\" = [128, 256] }, or leave [sweep] out",
        {"zip"_kj, "draw"_kj});
  }
  double runs = double(config.draws) * (config.zip.size() > 0 ? config.zip[0].values.size() : 1);
  for (auto& key: config.grid) runs *= key.values.size();
  if (runs > RUNS_MAX) {
    reader.diagnostics().error(reader.span(),
        kj::str("a sweep has at most ", RUNS_MAX, " runs, and this one has ", runs),
        "take fewer values, or draw some of them");
  }
}

// ---- Listing.

kj::String nameOfValue(const configs::Value& value, size_t place) {
  if (value.content.is<configs::List>() || value.content.is<configs::Table>()) {
    return kj::str(place + 1);
  }
  auto name = shortValue(value);
  // Names of folders are in tables and messages.
  bool isSecret = withoutSecretsOfValue(name) != name;
  return isSecret ? kj::str(place + 1) : kj::mv(name);
}

Setting settingOf(const SweptKey& key, size_t place) {
  auto& value = *key.values[place];
  return {&key, configs::clone(value), nameOfValue(value, place)};
}

// FNV-1a.
uint64_t hashOf(kj::StringPtr text) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (char c: text) hash = (hash ^ uint8_t(c)) * 0x100000001b3ull;
  return hash;
}

Setting drawnSetting(const SweptKey& key, uint64_t seed, uint draw) {
  configs::Random random(seed, configs::Purpose::SWEEP, draw, hashOf(key.key));
  KJ_IF_MAYBE(range, key.range) {
    double t = random.uniform();
    double number;
    if (range->isWhole && !range->isLog) {
      number = range->from + floor(t * (range->to - range->from + 1));
    } else {
      number = pointOf(*range, t);
      number = range->isWhole ? round(number) : rounded(number, DIGITS);
    }
    auto value = valueOf(*range, number);
    auto name = nameOfValue(*value, 0);
    return {&key, kj::mv(value), kj::mv(name)};
  }
  return settingOf(key, random.below(key.values.size()));
}

}  // namespace

SweepConfig SweepConfig::read(configs::Reader& reader) {
  SweepConfig config;
  config.grid = readKeys(reader, "grid",
      "Runs every combination of the values of these dotted keys: `{ \"data.batch_size\" = [128, "
      "256], \"train.optimizer.learning_rate\" = { from = 0.01, to = 1, count = 5, scale = \"log\" "
      "} }`. Each key has a list of values or a range. The scale is `\"linear\"` (the default) or "
      "`\"log\"`. If both ends of a range are written as integers, all its values are integers. "
      "The first key changes slowest.");
  config.zip = readKeys(reader, "zip",
      "Keys whose values are used together. The first row has the first value of each key, the "
      "second row has the second values, and so on. With `grid`, every combination of `grid` is "
      "run with each row.");
  config.draw = readKeys(reader, "draw",
      "Keys whose values are drawn at random: each key from a list, or from a range without "
      "`count`. All values of a range are equally likely. With scale `\"log\"`, all logarithms are "
      "equally likely. Equal draws give only one run.");
  auto draws =
      reader.maybeInteger("draws", "Number of draws.", {.atLeast = 1, .atMost = int64_t(RUNS_MAX)});
  KJ_IF_MAYBE(n, draws) config.draws = *n;
  config.seed =
      reader.integer("seed", "The drawn values depend only on this number.", {.atLeast = 0}, 1);
  auto parallel = reader.maybeInteger("parallel_runs",
      "Number of runs at the same time. Default: as many as the machine has cores for, with one "
      "core per thread. Does not change the results of a run, but can change which runs `stop` "
      "ends early.",
      {.atLeast = 1, .atMost = 1024});
  KJ_IF_MAYBE(n, parallel) config.parallelRuns = uint(*n);
  config.stop = reader.maybeKind("stop", "A rule by which runs are stopped before their end.",
      kj::arrayPtr(STOPS, kj::size(STOPS)));
  if (!reader.isManual()) check(config, draws != nullptr, reader);
  return config;
}

kj::Array<const SweptKey*> SweepConfig::keys() const {
  kj::Vector<const SweptKey*> keys;
  for (auto list: {&grid, &zip, &draw}) {
    for (auto& key: *list) keys.add(&key);
  }
  return keys.releaseAsArray();
}

kj::Array<Settings> listRuns(const SweepConfig& config) {
  size_t rows = config.zip.size() > 0 ? config.zip[0].values.size() : 1;
  size_t combinations = 1;
  for (auto& key: config.grid) combinations *= key.values.size();
  kj::Vector<Settings> runs;
  for (size_t c = 0; c < combinations; c++) {
    for (size_t row = 0; row < rows; row++) {
      for (uint draw = 0; draw < config.draws; draw++) {
        kj::Vector<Setting> settings;
        size_t rest = c, block = combinations;
        for (auto& key: config.grid) {
          block /= key.values.size();
          settings.add(settingOf(key, rest / block));
          rest %= block;
        }
        for (auto& key: config.zip) settings.add(settingOf(key, row));
        for (auto& key: config.draw) settings.add(drawnSetting(key, config.seed, draw));
        runs.add(settings.releaseAsArray());
      }
    }
  }
  return runs.releaseAsArray();
}

kj::String nameOf(kj::ArrayPtr<const Setting> settings, kj::ArrayPtr<const kj::String> shortKeys) {
  kj::Vector<char> name;
  for (size_t i: kj::indices(settings)) {
    for (char c: kj::str(i > 0 ? "," : "", shortKeys[i], "=", settings[i].name)) {
      bool fits = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
                  c == '.' || c == '_' || c == '+' || c == '=' || c == ',' || c == '-';
      name.add(fits ? c : '_');
    }
  }
  name.resize(kj::min(name.size(), NAME_BYTES_MAX));
  return kj::heapString(name);
}

}  // namespace runner
