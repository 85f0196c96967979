// configs/language/reader.h: reads a section of an experiment file; the same calls check it,
// document it and resolve it.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/debug.h>
#include <kj/function.h>
#include <kj/string.h>

#include "configs/language/document.h"
#include "configs/language/limits.h"

namespace configs {

class Reader;

// A row of a table of kinds: the word in `kind = "…"`, its doc sentence, and the function that
// reads its other keys.
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
// A type reads its own section with one getter call a key: name, doc sentences, limits, default. On
// a table the calls validate and return values; every error is recorded and reading goes on with
// the default, or failing that with the nearest allowed value. On no table (a Manual) the same
// calls print the reference and return defaults.
//
// One mistake gives one error. Nothing counts as missing from a table that has an unknown key: that
// key may be what it was meant to be. error() is told which keys an error follows from.
//
// Key names are snake_case with the unit last. `doc` is one or two sentences. A getter without a
// default makes the key required. Strings passed as names and docs must live as long as the reader
// (literals do).
//
// A manual, and a table whose kind is unknown, are read without a file: every key is absent there,
// no error is kept, and a required key gives the lowest allowed number, an empty text or the first
// row.
class Reader {
public:
  KJ_DISALLOW_COPY(Reader);

  int64_t integer(kj::StringPtr key, kj::StringPtr doc, IntegerLimits limits);
  int64_t integer(kj::StringPtr key, kj::StringPtr doc, IntegerLimits limits, int64_t defaultValue);
  kj::Maybe<int64_t> maybeInteger(kj::StringPtr key, kj::StringPtr doc, IntegerLimits limits);

  // Integers are taken as reals too (`learning_rate = 1`).
  double real(kj::StringPtr key, kj::StringPtr doc, RealLimits limits);
  double real(kj::StringPtr key, kj::StringPtr doc, RealLimits limits, double defaultValue);
  kj::Maybe<double> maybeReal(kj::StringPtr key, kj::StringPtr doc, RealLimits limits);

  bool flag(kj::StringPtr key, kj::StringPtr doc, bool defaultValue);
  // A boolean, or the string `word`.
  kj::OneOf<bool, kj::String> flagOrWord(
      kj::StringPtr key, kj::StringPtr doc, kj::StringPtr word, bool defaultValue);

  kj::String text(kj::StringPtr key, kj::StringPtr doc);
  kj::String text(kj::StringPtr key, kj::StringPtr doc, kj::StringPtr defaultValue);
  kj::Maybe<kj::String> maybeText(kj::StringPtr key, kj::StringPtr doc);
  // The path of a file or folder, absolute. A relative one counts from the folder of the file that
  // says it, one in a `--set` or `--sweep` from the current folder. An address (`http://…`) comes
  // back as it is. Earlier versions counted from the current folder everywhere: it is an error if
  // that folder has something else at this path, or something where the file's folder has nothing.
  kj::Maybe<kj::String> maybePath(kj::StringPtr key, kj::StringPtr doc);

  // Lists. Absent = empty.
  kj::Array<int64_t> integers(kj::StringPtr key, kj::StringPtr doc, IntegerLimits limits);
  kj::Array<double> reals(kj::StringPtr key, kj::StringPtr doc, RealLimits limits);
  // The string `word`, or a list of numbers.
  kj::OneOf<kj::String, kj::Array<double>> wordOrReals(
      kj::StringPtr key, kj::StringPtr doc, kj::StringPtr word, RealLimits limits);
  kj::Array<kj::String> texts(kj::StringPtr key, kj::StringPtr doc);
  kj::Array<kj::String> texts(
      kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const kj::StringPtr> defaultValue);

  // A word of a closed table. T has `const char* name` and `const char* doc`. An unknown word is
  // reported with the nearest row and all rows, and the first row comes back.
  template <typename T>
  const T& choose(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const T> rows);
  template <typename T>
  const T& choose(
      kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const T> rows, kj::StringPtr defaultName);

  // `key = { kind = "word", … }`: the row named by `kind` reads the other keys. With a default the
  // key may be absent, and is then read as { kind = defaultKind }.
  template <typename T>
  T kind(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Kind<T>> rows);
  template <typename T>
  T kind(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Kind<T>> rows,
      kj::StringPtr defaultKind);
  template <typename T>
  kj::Maybe<T> maybeKind(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Kind<T>> rows);

  // A list of such tables (`[[model.layers]]`), in order. Absent = empty. A table of rows may refer
  // to itself (composites): the reference prints it once.
  template <typename T>
  kj::Array<T> kinds(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Kind<T>> rows);

  // A list of lists of such tables (`branches = [[…], […]]`).
  template <typename T>
  kj::Array<kj::Array<T>> kindLists(
      kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Kind<T>> rows);

  // A sub-table, read by `read(Reader&) -> T`. An absent one is read as an empty one: all its
  // defaults.
  template <typename Func>
  auto section(kj::StringPtr key, kj::StringPtr doc, Func&& read);
  // The same, but absent = null.
  template <typename Func>
  auto maybeSection(kj::StringPtr key, kj::StringPtr doc, Func&& read)
      -> kj::Maybe<decltype(read(kj::instance<Reader&>()))>;

  // A list of tables (`rows = [{ … }, …]`), each read by `read(Reader&) -> T`. Absent = empty.
  template <typename Func>
  auto sections(kj::StringPtr key, kj::StringPtr doc, Func&& read)
      -> kj::Array<decltype(read(kj::instance<Reader&>()))>;

  // A table whose keys are the user's own (`grid = { "data.batch_size" = [128, 256] }`): nobody
  // checks them here. They stay where the document has them. Absent = empty.
  kj::ArrayPtr<const Entry> entries(kj::StringPtr key, kj::StringPtr doc);

  // One of the entries of `key` that holds a table whose keys are ours, read by `read(Reader&)`.
  template <typename Func>
  auto entry(kj::StringPtr key, const Entry& entry, Func&& read);

  // Whether the file has `key`, which the section may hold: it is among the keys that the help for
  // an unknown one lists. False in a manual.
  bool has(kj::StringPtr key) const;
  // Whether nothing was found wrong so far in the value of `key`, which may be dotted, or in what
  // that value holds. A check of keys of several tables asks this first: what follows from a wrong
  // value is not worth an error.
  bool isRight(kj::StringPtr key) const;
  // Whether there is no file to read, only a reference to print (or nothing, below a table whose
  // kind is unknown): a check across keys has nothing to check then.
  bool isManual() const;
  // The place of `key`'s value, or of this table if the key is absent; it may be dotted
  // (`optimizer.kind`).
  Span span(kj::StringPtr key) const;
  Span span() const;
  // Reports something that the getters cannot see (a clash of two keys) at the value of `key`.
  // `others` are the further keys that it follows from. Each may be dotted, and absent from the
  // file. Says nothing if one of them is wrong, or is absent from a table that has an unknown key:
  // the error would follow from that one.
  void error(kj::StringPtr key, kj::StringPtr message, kj::StringPtr help = nullptr,
      kj::ArrayPtr<const kj::StringPtr> others = nullptr);

  // Reports `key`, if the file has it, with error(): its table may hold it, but not beside
  // `others`. Counts it as read, once.
  void refuse(kj::StringPtr key, kj::StringPtr message, kj::StringPtr help,
      kj::ArrayPtr<const kj::StringPtr> others);

  // Where errors go; valid while this section is read.
  Diagnostics& diagnostics();

private:
  // What messages and the manual say of a row, whatever its type.
  struct Row {
    kj::StringPtr name;
    kj::StringPtr doc;
  };
  // A table of kinds without its type. `identity` tells tables apart.
  struct Rows {
    kj::Array<Row> rows;
    const void* identity;
  };
  // Where to write to.
  struct Sink {
    Diagnostics& diagnostics;
    Table& resolved;
  };
  enum class Need { REQUIRED, DEFAULT, OPTIONAL };
  using ReadTable = kj::FunctionParam<void(Reader&)>;
  using ReadRow = kj::FunctionParam<void(size_t row, Reader&)>;

  kj::Maybe<const Table&> table;  // null: there is no file
  kj::Maybe<Manual&> manual;
  size_t manualSection = 0;  // index of this section's rows in `manual`
  Sink sink;
  Span place;
  kj::String path;  // "train.optimizer", "model.layers[2]"
  bool complete;    // false: what is missing may stand where the file could not be read
  // That the table has no unknown key. An absent table has the premise of the one that lacks it.
  Diagnostics::Premise allKnown = 0;
  // The keys that this section may hold, in the order in which they were first asked for.
  struct Known {
    kj::StringPtr key;
    bool isRead;  // by a getter, and not only asked for by has()
  };
  mutable kj::Vector<Known> known;

  // `allKnown` is that of the table that lacks this one; 0: the file has it.
  Reader(const Table& table, Span place, Sink sink, kj::String path, bool complete,
      Diagnostics::Premise allKnown = 0);
  Reader(Manual& manual, size_t section, kj::String path);
  explicit Reader(Sink nowhere);

  template <typename T>
  static kj::Array<Row> rowsOf(kj::ArrayPtr<const T> rows);

  // Getters in parts: `find` notes that the key is known; `missing` and `wrongType` report; `keep`
  // resolves.
  kj::Maybe<const Value&> find(kj::StringPtr key);
  void note(kj::StringPtr key, bool isRead) const;
  bool isWritten(kj::StringPtr key) const;
  void missing(kj::StringPtr key, kj::StringPtr type, kj::StringPtr doc);
  void wrongType(
      kj::StringPtr name, const Value& value, kj::StringPtr expected, kj::StringPtr help = nullptr);
  void keep(kj::StringPtr key, kj::Own<Value> value);
  void describe(
      kj::StringPtr key, kj::StringPtr type, kj::StringPtr defaultValue, kj::StringPtr doc);
  // Reports the keys that nobody asked for.
  void finish();
  kj::String pathOf(kj::StringPtr key) const;

  // The value if it fits, else the fallback, else the nearest allowed.
  int64_t numberOf(
      kj::StringPtr name, const Value& value, IntegerLimits limits, kj::Maybe<int64_t> fallback);
  double numberOf(
      kj::StringPtr name, const Value& value, RealLimits limits, kj::Maybe<double> fallback);
  // What the getters of integers and of reals do, for both.
  template <typename T, typename Limits>
  T number(kj::StringPtr key, kj::StringPtr doc, Limits limits);
  template <typename T, typename Limits>
  T number(kj::StringPtr key, kj::StringPtr doc, Limits limits, T defaultValue);
  template <typename T, typename Limits>
  kj::Maybe<T> maybeNumber(kj::StringPtr key, kj::StringPtr doc, Limits limits);
  template <typename T, typename Limits>
  kj::Array<T> numbers(kj::StringPtr key, kj::StringPtr doc, Limits limits, kj::StringPtr example);
  kj::String textOf(kj::StringPtr name, const Value& value);
  kj::String pathAt(kj::StringPtr key, kj::String given, Span span);
  void refuseIfElsewhere(kj::StringPtr key, kj::StringPtr given, kj::StringPtr meant, Span span);
  // Calls `each(name, element, resolved)` for every element of a list; none if it is no list.
  void eachOf(kj::StringPtr key, const Value& value, kj::StringPtr example,
      kj::FunctionParam<void(kj::StringPtr name, const Value& element, List& resolved)> each);

  size_t chooseRow(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Row> rows,
      kj::Maybe<kj::StringPtr> defaultName);
  // These call `read` for every table that they meet. In a manual it is called for every row that
  // is to be printed; the last call makes what the getter returns. A bool says whether there is
  // such.
  bool readKind(kj::StringPtr key, kj::StringPtr doc, const Rows& rows, Need need,
      kj::StringPtr defaultKind, ReadRow read);
  // The sizes of the lists at `depth` 1 (one list) or 2.
  kj::Array<size_t> readKindLists(
      kj::StringPtr key, kj::StringPtr doc, const Rows& rows, uint depth, ReadRow read);
  bool readSection(kj::StringPtr key, kj::StringPtr doc, Need need, ReadTable read);
  void readSections(kj::StringPtr key, kj::StringPtr doc, ReadTable read);
  void readEntry(kj::StringPtr key, const Entry& entry, ReadTable read);

  kj::Own<Value> readRow(kj::StringPtr name, kj::String path, const Value& value,
      kj::ArrayPtr<const Row> rows, ReadRow& read, Diagnostics::Premise allKnown = 0);
  List readRows(kj::StringPtr name, kj::StringPtr path, const Value& value,
      kj::ArrayPtr<const Row> rows, ReadRow& read);
  static void readNothing(size_t row, ReadRow& read);
  void printKinds(kj::StringPtr key, kj::StringPtr doc, const Rows& rows, kj::StringPtr shape,
      kj::StringPtr defaultValue, ReadRow& read);

  static void readRoot(const Document& document, Reading& reading, ReadTable read);
  static kj::String printRoot(kj::StringPtr title, ReadTable read);
  template <typename Func>
  friend auto readDocument(const Document& document, Reading& reading, Func&& read);
  template <typename Func>
  friend kj::String printReference(kj::StringPtr title, Func&& read);
};

// Reads `document` with `read(Reader&) -> T` as its root section. Unknown keys anywhere are errors.
// Where a text of the document could not be read, nothing is reported as missing.
template <typename Func>
auto readDocument(const Document& document, Reading& reading, Func&& read);

// The reference of everything that `read(Reader&)` reads, as Markdown under `title`.
template <typename Func>
kj::String printReference(kj::StringPtr title, Func&& read);

// -------------------------------------------------------------------------------------------------
// Inline details: the types are put around what reader_tables.cc does without them.

template <typename T>
kj::Array<Reader::Row> Reader::rowsOf(kj::ArrayPtr<const T> rows) {
  auto result = kj::heapArrayBuilder<Row>(rows.size());
  for (auto& row: rows) result.add(Row{row.name, row.doc});
  return result.finish();
}

template <typename T>
const T& Reader::choose(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const T> rows) {
  return rows[chooseRow(key, doc, rowsOf(rows), nullptr)];
}

template <typename T>
const T& Reader::choose(
    kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const T> rows, kj::StringPtr defaultName) {
  return rows[chooseRow(key, doc, rowsOf(rows), defaultName)];
}

template <typename T>
T Reader::kind(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Kind<T>> rows) {
  kj::Maybe<T> result;
  readKind(key, doc, {rowsOf(rows), rows.begin()}, Need::REQUIRED, nullptr,
      [&](size_t row, Reader& reader) { result = rows[row].read(reader); });
  return kj::mv(KJ_ASSERT_NONNULL(result));
}

template <typename T>
T Reader::kind(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Kind<T>> rows,
    kj::StringPtr defaultKind) {
  kj::Maybe<T> result;
  readKind(key, doc, {rowsOf(rows), rows.begin()}, Need::DEFAULT, defaultKind,
      [&](size_t row, Reader& reader) { result = rows[row].read(reader); });
  return kj::mv(KJ_ASSERT_NONNULL(result));
}

template <typename T>
kj::Maybe<T> Reader::maybeKind(
    kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Kind<T>> rows) {
  kj::Maybe<T> result;
  if (!readKind(key, doc, {rowsOf(rows), rows.begin()}, Need::OPTIONAL, nullptr,
          [&](size_t row, Reader& reader) { result = rows[row].read(reader); })) {
    return nullptr;
  }
  return result;
}

template <typename T>
kj::Array<T> Reader::kinds(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Kind<T>> rows) {
  kj::Vector<T> all;
  auto sizes = readKindLists(key, doc, {rowsOf(rows), rows.begin()}, 1,
      [&](size_t row, Reader& reader) { all.add(rows[row].read(reader)); });
  if (sizes.size() == 0) return nullptr;
  return all.releaseAsArray();
}

template <typename T>
kj::Array<kj::Array<T>> Reader::kindLists(
    kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Kind<T>> rows) {
  kj::Vector<T> all;
  auto sizes = readKindLists(key, doc, {rowsOf(rows), rows.begin()}, 2,
      [&](size_t row, Reader& reader) { all.add(rows[row].read(reader)); });
  size_t next = 0;
  return KJ_MAP(size, sizes) {
    auto list = kj::heapArrayBuilder<T>(size);
    for (size_t i = 0; i < size; ++i) list.add(kj::mv(all[next++]));
    return list.finish();
  };
}

template <typename Func>
auto Reader::section(kj::StringPtr key, kj::StringPtr doc, Func&& read) {
  kj::Maybe<decltype(read(kj::instance<Reader&>()))> result;
  readSection(key, doc, Need::DEFAULT, [&](Reader& reader) { result = read(reader); });
  return kj::mv(KJ_ASSERT_NONNULL(result));
}

template <typename Func>
auto Reader::maybeSection(kj::StringPtr key, kj::StringPtr doc, Func&& read)
    -> kj::Maybe<decltype(read(kj::instance<Reader&>()))> {
  kj::Maybe<decltype(read(kj::instance<Reader&>()))> result;
  if (!readSection(key, doc, Need::OPTIONAL, [&](Reader& reader) { result = read(reader); })) {
    return nullptr;
  }
  return result;
}

template <typename Func>
auto Reader::sections(kj::StringPtr key, kj::StringPtr doc, Func&& read)
    -> kj::Array<decltype(read(kj::instance<Reader&>()))> {
  kj::Vector<decltype(read(kj::instance<Reader&>()))> all;
  readSections(key, doc, [&](Reader& reader) { all.add(read(reader)); });
  return all.releaseAsArray();
}

template <typename Func>
auto Reader::entry(kj::StringPtr key, const Entry& entry, Func&& read) {
  kj::Maybe<decltype(read(kj::instance<Reader&>()))> result;
  readEntry(key, entry, [&](Reader& reader) { result = read(reader); });
  return kj::mv(KJ_ASSERT_NONNULL(result));
}

template <typename Func>
auto readDocument(const Document& document, Reading& reading, Func&& read) {
  kj::Maybe<decltype(read(kj::instance<Reader&>()))> result;
  Reader::readRoot(document, reading, [&](Reader& reader) { result = read(reader); });
  return kj::mv(KJ_ASSERT_NONNULL(result));
}

template <typename Func>
kj::String printReference(kj::StringPtr title, Func&& read) {
  return Reader::printRoot(title, [&](Reader& reader) { (void)read(reader); });
}

}  // namespace configs
