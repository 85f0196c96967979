#include "runner/sweep/run_errors.h"

#include <kj/map.h>

namespace runner {

namespace {

// Returns a text that is equal for the same message at the same place.
kj::String identityOf(const configs::Diagnostics::Error& error) {
  return kj::str(error.span.toString(), '\0', error.message);
}

// Whether an error at `span` shows the user which setting is wrong.
bool isAtSetting(const configs::Span& span, kj::ArrayPtr<const Setting> settings) {
  for (auto& setting: settings) {
    if (span.beginsIn(setting.key->span) || span.beginsIn(setting.value->span)) return true;
  }
  return false;
}

}  // namespace

void RunErrors::add(kj::ArrayPtr<const Setting> settings, configs::Diagnostics errors) {
  runs.add(Run{settings, kj::mv(errors)});
}

void RunErrors::tell(kj::ArrayPtr<const kj::String> shortKeys, configs::Diagnostics& all) const {
  kj::HashMap<kj::String, size_t> counts;
  for (auto& run: runs) {
    configs::Diagnostics own;
    own.addNew(run.errors);  // each error once
    for (auto& error: own.all()) {
      counts.upsert(identityOf(error), 1, [](size_t& count, size_t&&) { count++; });
    }
  }
  kj::HashSet<kj::String> told;
  for (auto& run: runs) {
    for (auto& error: run.errors.all()) {
      auto identity = identityOf(error);
      size_t count = KJ_ASSERT_NONNULL(counts.find(identity));
      if (told.contains(identity)) continue;
      told.insert(kj::mv(identity));
      kj::String which;
      if (count < runs.size() && !isAtSetting(error.span, run.settings)) {
        which = kj::str(" (in ",
            count == 1 ? kj::str("the run ") : kj::str(count, " runs, for example "),
            nameOf(run.settings, shortKeys), ")");
      }
      all.error(error.span, kj::str(error.message, which), error.help);
    }
  }
}

}  // namespace runner
