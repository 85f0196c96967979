// configs/language/reader.h: reads a section of an experiment file; the same calls check it, document it and resolve it.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/string.h>

#include "configs/language/document.h"

namespace configs {

// Bounds of a number, inclusive.
struct IntegerLimits {
  int64_t atLeast = kj::minValue;
  int64_t atMost = kj::maxValue;
};

// Bounds of a number. `above` and `below` are exclusive, `atLeast` and `atMost` inclusive. NaN is never allowed.
struct RealLimits {
  double above = -kj::inf();
  double atLeast = -kj::inf();
  double below = kj::inf();
  double atMost = kj::inf();
};

class Reader;

// A row of a table of kinds: the word in `kind = "…"`, its doc sentence, and the function that reads its other keys.
template <typename T>
struct Kind {
  const char* name;
  const char* doc;
  T (*read)(Reader&);
};

// What a run of readers over a file leaves behind.
struct Reading {
  Diagnostics& diagnostics;
  // Every key that was read, with the value used, defaults included: what `experiment.toml` holds.
  Table resolved;
};

// The reference manual in the making: one Markdown section a TOML section, one row a key.
class Manual;

// One section of an experiment file.
//
// A type reads its own section with one getter call a key: name, doc sentences, limits, default. On a table the
// calls validate and return values; every error is recorded and reading goes on with the default, or failing that
// with the nearest allowed value. On no table (a Manual) the same calls print the reference and return defaults.
//
// Key names are snake_case with the unit last. `doc` is one or two sentences. A getter without a default makes the
// key required. Strings passed as names and docs must live as long as the reader (literals do).
class Reader {
public:
  int64_t integer(kj::StringPtr key, kj::StringPtr doc, IntegerLimits limits);
  int64_t integer(kj::StringPtr key, kj::StringPtr doc, IntegerLimits limits, int64_t defaultValue);
  kj::Maybe<int64_t> maybeInteger(kj::StringPtr key, kj::StringPtr doc, IntegerLimits limits);

  // Integers are taken as reals too (`learning_rate = 1`).
  double real(kj::StringPtr key, kj::StringPtr doc, RealLimits limits);
  double real(kj::StringPtr key, kj::StringPtr doc, RealLimits limits, double defaultValue);
  kj::Maybe<double> maybeReal(kj::StringPtr key, kj::StringPtr doc, RealLimits limits);

  bool flag(kj::StringPtr key, kj::StringPtr doc, bool defaultValue);

  kj::String text(kj::StringPtr key, kj::StringPtr doc);
  kj::String text(kj::StringPtr key, kj::StringPtr doc, kj::StringPtr defaultValue);
  kj::Maybe<kj::String> maybeText(kj::StringPtr key, kj::StringPtr doc);

  // Lists. Absent = empty.
  kj::Array<int64_t> integers(kj::StringPtr key, kj::StringPtr doc, IntegerLimits limits);
  kj::Array<double> reals(kj::StringPtr key, kj::StringPtr doc, RealLimits limits);
  kj::Array<kj::String> texts(kj::StringPtr key, kj::StringPtr doc);
  kj::Array<kj::String> texts(
      kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const kj::StringPtr> defaultValue);

  // A word of a closed table. T has `const char* name` and `const char* doc`. An unknown word is reported with the
  // nearest row and all rows, and the first row comes back.
  template <typename T>
  const T& choose(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const T> rows);
  template <typename T>
  const T& choose(
      kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const T> rows, kj::StringPtr defaultName);

  // `key = { kind = "word", … }`: the row named by `kind` reads the other keys. With a default the key may be absent,
  // and is then read as { kind = defaultKind }.
  template <typename T>
  T kind(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Kind<T>> rows);
  template <typename T>
  T kind(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Kind<T>> rows,
      kj::StringPtr defaultKind);
  template <typename T>
  kj::Maybe<T> maybeKind(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Kind<T>> rows);

  // A list of such tables (`[[model.layers]]`), in order. Absent = empty. A table of rows may refer to itself
  // (composites): the reference prints it once.
  template <typename T>
  kj::Array<T> kinds(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Kind<T>> rows);

  // A list of lists of such tables (`branches = [[…], […]]`).
  template <typename T>
  kj::Array<kj::Array<T>> kindLists(
      kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Kind<T>> rows);

  // A sub-table, read by `read(Reader&) -> T`. An absent one is read as an empty one: all its defaults.
  template <typename Func>
  auto section(kj::StringPtr key, kj::StringPtr doc, Func&& read);
  // The same, but absent = null.
  template <typename Func>
  auto maybeSection(kj::StringPtr key, kj::StringPtr doc, Func&& read)
      -> kj::Maybe<decltype(read(kj::instance<Reader&>()))>;

  // Whether the file has `key`. False in a manual.
  bool has(kj::StringPtr key) const;
  // Whether the calls print the reference: a check across keys has nothing to check then.
  bool isManual() const;
  // The place of `key`'s value, or of this table if the key is absent.
  Span span(kj::StringPtr key) const;
  Span span() const;
  // Reports something that the getters cannot see (a clash of two keys). `key` may be absent from the file.
  void error(kj::StringPtr key, kj::StringPtr message, kj::StringPtr help = nullptr);

  Diagnostics& diagnostics();
};

// Reads `document` with `read(Reader&) -> T` as its root section. Unknown keys anywhere are errors.
template <typename Func>
auto readDocument(const Document& document, Reading& reading, Func&& read);

// The reference of everything that `read(Reader&)` reads, as Markdown under `title`.
template <typename Func>
kj::String printReference(kj::StringPtr title, Func&& read);

}  // namespace configs
