#include "runner/sweep/run_errors.h"

#include <kj/map.h>

namespace runner {

namespace {

using Error = configs::Diagnostics::Error;

// Returns `text` without its numbers.
kj::String withoutNumbers(kj::StringPtr text) {
  auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
  kj::Vector<char> rest;
  for (size_t i = 0; i < text.size();) {
    if (!isDigit(text[i])) {
      rest.add(text[i++]);
      continue;
    }
    if (!rest.empty() && rest.back() == '-') rest.removeLast();
    while (isDigit(text[i]) || text[i] == '.' || text[i] == 'e' || text[i] == '+' || text[i] == '-')
      i++;
  }
  return kj::heapString(rest.asPtr());
}

// Whether an error at `span` shows the user which setting is wrong.
bool isAtSetting(const configs::Span& span, kj::ArrayPtr<const Setting> settings) {
  for (auto& setting: settings) {
    if (span.beginsIn(setting.key->span) || span.beginsIn(setting.value->span)) return true;
  }
  return false;
}

// Returns a text that is equal for errors of one kind at one place. At the place of a setting,
// errors whose messages differ only in numbers are of one kind, because all values of a range have
// the place of the range, and messages name the value.
kj::String kindOf(const Error& error, kj::ArrayPtr<const Setting> settings) {
  auto message =
      isAtSetting(error.span, settings) ? withoutNumbers(error.message) : kj::str(error.message);
  return kj::str(error.span.toString(), '\0', message);
}

}  // namespace

void RunErrors::add(kj::ArrayPtr<const Setting> settings, configs::Diagnostics errors) {
  runs.add(Run{settings, kj::mv(errors)});
}

void RunErrors::tell(kj::ArrayPtr<const kj::String> shortKeys, configs::Diagnostics& all) const {
  struct Found {
    const Error& first;
    kj::ArrayPtr<const Setting> settings;  // of the first run
    size_t runs = 0;
    bool differs = false;  // whether the numbers in the messages differ
  };
  kj::Vector<Found> found;
  kj::HashMap<kj::String, size_t> places;  // in `found`
  for (auto& run: runs) {
    kj::HashSet<size_t> own;
    for (auto& error: run.errors.all()) {
      size_t place = places.findOrCreate(kindOf(error, run.settings), [&]() {
        found.add(Found{error, run.settings});
        return kj::HashMap<kj::String, size_t>::Entry{
            kindOf(error, run.settings), found.size() - 1};
      });
      auto& kind = found[place];
      kind.differs = kind.differs || error.message != kind.first.message;
      if (own.contains(place)) continue;
      own.insert(place);
      kind.runs++;
    }
  }
  for (auto& kind: found) {
    size_t withSetting = 0;
    for (auto& run: runs) withSetting += isAtSetting(kind.first.span, run.settings);
    bool isClear = kind.runs == runs.size() || kind.runs == withSetting;
    kj::String which;
    if (!isClear || kind.differs) {
      which = kj::str(" (in ",
          kind.runs == 1 ? kj::str("the run ") : kj::str(kind.runs, " runs, for example "),
          nameOf(kind.settings, shortKeys), ")");
    }
    all.error(kind.first.span, kj::str(kind.first.message, which), kind.first.help);
  }
}

}  // namespace runner
