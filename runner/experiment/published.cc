#include "runner/experiment/published.h"

#include <kj/vector.h>

namespace runner {

namespace {

// Returns an integer as a real, because an experiment may say 1 for a real number. Null for other
// values.
kj::Maybe<double> numberOf(const configs::Value& value) {
  if (value.content.is<int64_t>()) return double(value.content.get<int64_t>());
  if (value.content.is<double>()) return value.content.get<double>();
  return nullptr;
}

bool same(const configs::Value& a, const configs::Value& b) {
  KJ_IF_MAYBE(left, numberOf(a)) {
    KJ_IF_MAYBE(right, numberOf(b)) return *left == *right;
  }
  return configs::print(a) == configs::print(b);
}

// Whether `key` is in a table with a `kind`. Other kinds have other keys.
bool dependsOnKind(kj::StringPtr key, kj::ArrayPtr<const configs::Entry> values) {
  KJ_IF_MAYBE(dot, key.findLast('.')) {
    auto kind = kj::str(key.slice(0, *dot), ".kind");
    for (auto& value: values) {
      if (value.key == kind) return true;
    }
  }
  return false;
}

// Whether all conditions in `where` hold for `values`. A condition on a key that is absent does not
// hold.
bool holds(kj::ArrayPtr<const configs::Entry> where, kj::ArrayPtr<const configs::Entry> values,
    configs::Diagnostics& diagnostics) {
  bool result = true;
  for (auto& condition: where) {
    bool found = false;
    for (auto& value: values) {
      if (value.key != condition.key) continue;
      found = true;
      if (condition.value->content.is<kj::String>() && numberOf(*value.value) != nullptr) {
        diagnostics.error(condition.value->span,
            kj::str("`", condition.key, "` is a number, so this string matches no run"),
            "write a number without quotes");
      }
      result = result && same(*condition.value, *value.value);
    }
    if (found) continue;
    result = false;
    if (dependsOnKind(condition.key, values)) continue;
    auto keys = KJ_MAP(value, values)->kj::StringPtr {
      return value.key;
    };
    auto help = kj::str("`runner explain` shows all keys of a run");
    KJ_IF_MAYBE(key, configs::nearest(condition.key, keys)) {
      help = kj::str("did you mean `", *key, "`?");
    }
    diagnostics.error(
        condition.keySpan, kj::str("this experiment has no key `", condition.key, "`"), help);
  }
  return result;
}

PublishedFigures readFigures(configs::Reader& reader) {
  PublishedFigures row;
  auto where = configs::leavesOf(reader.entries("where",
      "The runs that the row applies to, as dotted keys with their values: `{ \"cluster.workers\" "
      "= 2 }`. Default: all runs."));
  row.where = where.releaseAsArray();
  KJ_IF_MAYBE(epoch, reader.maybeInteger("epoch",
                         "The epoch after which the figures were taken. Without `epoch` and "
                         "`step`, they were taken at the end.",
                         {.atLeast = 1, .atMost = 1000000})) {
    row.epoch = uint(*epoch);
  }
  KJ_IF_MAYBE(step,
      reader.maybeInteger("step",
          "The number of updates of the whole job after which the figures were taken.",
          {.atLeast = 1})) {
    row.step = uint64_t(*step);
  }
  if (row.epoch != nullptr && row.step != nullptr) {
    reader.error("step", "`epoch` and `step` cannot both be given", "leave one of them out");
  }
  row.trainAccuracy = reader.maybeReal("train_accuracy",
      "Accuracy on the training images, from 0 to 1.", {.atLeast = 0, .atMost = 1});
  row.validationAccuracy = reader.maybeReal("validation_accuracy",
      "Accuracy on the validation images, from 0 to 1.", {.atLeast = 0, .atMost = 1});
  row.loss = reader.maybeReal("loss", "Training loss.", {.atLeast = 0});
  row.epoch_s = reader.maybeReal("epoch_s", "Seconds per epoch.", {.above = 0});
  row.images_per_s =
      reader.maybeReal("images_per_s", "Images per second of the whole job.", {.above = 0});
  bool empty = row.trainAccuracy == nullptr && row.validationAccuracy == nullptr &&
               row.loss == nullptr && row.epoch_s == nullptr && row.images_per_s == nullptr;
  if (empty && !reader.isManual()) {
    reader.error("", "this row has no figure",
        "add train_accuracy, validation_accuracy, loss, epoch_s or images_per_s");
  }
  return row;
}

}  // namespace

Published Published::read(configs::Reader& reader) {
  Published published;
  published.source = reader.text(
      "source", "Where the figures were published: a web page, or a paper and its table.");
  published.rows = reader.sections("rows",
      "The figures of one run at one time: after an epoch, after a step, or at the end.",
      readFigures);
  return published;
}

void Published::keepRowsOf(const configs::Table& resolved, configs::Diagnostics& diagnostics) {
  auto values = configs::leavesOf(resolved.entries);
  kj::Vector<PublishedFigures> kept;
  for (auto& row: rows) {
    if (!holds(row.where, values, diagnostics)) continue;
    row.where = nullptr;
    kept.add(kj::mv(row));
  }
  rows = kept.releaseAsArray();
}

}  // namespace runner
