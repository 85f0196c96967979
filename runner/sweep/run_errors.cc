#include "runner/sweep/run_errors.h"

#include <ctype.h>
#include <kj/map.h>
#include <string.h>

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

// Returns the setting that an error at `span` shows to the user. Null if it shows none.
kj::Maybe<const Setting&> settingAt(
    const configs::Span& span, kj::ArrayPtr<const Setting> settings) {
  for (auto& setting: settings) {
    if (span.beginsIn(setting.key->span) || span.beginsIn(setting.value->span)) return setting;
  }
  return nullptr;
}

// Whether `message` says `value`, and not only as a part of another word or number.
bool says(kj::StringPtr message, kj::StringPtr value) {
  auto isInside = [](unsigned char c) { return isalnum(c) || c == '.' || c == '-'; };
  for (auto at = message.cStr(); (at = strstr(at, value.cStr())) != nullptr; at++) {
    bool begins = at == message.begin() || !isInside(at[-1]);
    if (begins && !isInside(at[value.size()])) return true;
  }
  return false;
}

// Returns a text that is equal for errors of one kind at one place. At the place of a setting,
// errors whose messages differ only in numbers are of one kind, because all values of a range have
// the place of the range, and messages name the value.
kj::String kindOf(const Error& error, kj::ArrayPtr<const Setting> settings) {
  bool isAtSetting = settingAt(error.span, settings) != nullptr;
  auto message = isAtSetting ? withoutNumbers(error.message) : kj::str(error.message);
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
    auto& span = kind.first.span;
    size_t withSetting = 0, withValue = 0;  // how many runs have what the error shows
    KJ_IF_MAYBE(shown, settingAt(span, kind.settings)) {
      bool saysValue = says(kind.first.message, configs::print(*shown->value));
      for (auto& run: runs) {
        KJ_IF_MAYBE(setting, settingAt(span, run.settings)) {
          withSetting++;
          if (saysValue && setting->name == shown->name) withValue++;
        }
      }
    }
    bool isClear = kind.runs == runs.size() || kind.runs == withSetting || kind.runs == withValue;
    kj::String which;
    if (!isClear || kind.differs) {
      which = kj::str(" (in ",
          kind.runs == 1 ? kj::str("the run ") : kj::str(kind.runs, " runs, for example "),
          nameOf(kind.settings, shortKeys), ")");
    }
    all.error(span, kj::str(kind.first.message, which), kind.first.help);
  }
}

}  // namespace runner
