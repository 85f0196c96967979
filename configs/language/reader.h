// configs/language/reader.h: reads a section of an experiment file. The same calls check, document
// and resolve it.
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
// reads the other keys.
template <typename T>
struct Kind {
  const char* name;
  const char* doc;
  T (*read)(Reader&);
};

// The result of reading a file.
struct Reading {
  Diagnostics& diagnostics;
  // Every key that was read, with the value used, defaults included. `experiment.toml` holds this
  // tree.
  Table resolved;
};

// The reference manual while it is being made: one Markdown section per TOML section, one row per
// key.
class Manual;

// Reads one section of an experiment file.
//
// A type reads its own section with one getter call per key: name, doc sentences, limits, default.
// With a table, the calls check and return values. Every error is recorded. Reading continues with
// the default, or with the nearest allowed value if there is no default. Without a table (in a
// Manual), the same calls print the reference and return defaults.
//
// One mistake gives one error. If a table has an unknown key, no key counts as missing from it: the
// unknown key may be the missing one, misspelt. The caller of error() names the keys that the error
// follows from.
//
// Key names are snake_case with the unit last. `doc` is one or two sentences. A getter without a
// default makes the key required. Strings passed as names and docs must live as long as the reader
// (literals do).
//
// A manual has no file to read, and neither has a table whose kind is unknown. Every key is absent
// there, and no error is kept. A required key gives the lowest allowed number, an empty text or the
// first row.
class Reader {
public:
  KJ_DISALLOW_COPY(Reader);

  // Read one number, flag or text. The getters called maybe…() return null for an absent key.
  int64_t integer(kj::StringPtr key, kj::StringPtr doc, IntegerLimits limits);
  int64_t integer(kj::StringPtr key, kj::StringPtr doc, IntegerLimits limits, int64_t defaultValue);
  kj::Maybe<int64_t> maybeInteger(kj::StringPtr key, kj::StringPtr doc, IntegerLimits limits);

  // Accepts integers too (`learning_rate = 1`).
  double real(kj::StringPtr key, kj::StringPtr doc, RealLimits limits);
  double real(kj::StringPtr key, kj::StringPtr doc, RealLimits limits, double defaultValue);
  kj::Maybe<double> maybeReal(kj::StringPtr key, kj::StringPtr doc, RealLimits limits);

  bool flag(kj::StringPtr key, kj::StringPtr doc, bool defaultValue);
  kj::Maybe<bool> maybeFlag(kj::StringPtr key, kj::StringPtr doc);
  // Reads a boolean, or the string `word`.
  kj::OneOf<bool, kj::String> flagOrWord(
      kj::StringPtr key, kj::StringPtr doc, kj::StringPtr word, bool defaultValue);

  kj::String text(kj::StringPtr key, kj::StringPtr doc);
  kj::String text(kj::StringPtr key, kj::StringPtr doc, kj::StringPtr defaultValue);
  kj::Maybe<kj::String> maybeText(kj::StringPtr key, kj::StringPtr doc);
  // Reads a text, or an integer as the text of its digits. The resolved value is the text.
  kj::Maybe<kj::String> maybeTextOrInteger(kj::StringPtr key, kj::StringPtr doc);
  // Reads the path of a file or folder and returns it as an absolute path. A relative path starts
  // from the folder of the file that contains it. In a `--set` or `--sweep` it starts from the
  // current folder. An address (`http://…`) is returned unchanged.
  //
  // Earlier versions started from the current folder everywhere. Therefore it is an error if the
  // current folder has something else at this path, or has something where the file's folder has
  // nothing.
  //
  // With `followsLink`, a path that names a symbolic link becomes the path of the link's present
  // target, because others may move the link.
  kj::Maybe<kj::String> maybePath(kj::StringPtr key, kj::StringPtr doc, bool followsLink = false);

  // Lists. An absent list is empty.
  kj::Array<int64_t> integers(kj::StringPtr key, kj::StringPtr doc, IntegerLimits limits);
  kj::Array<double> reals(kj::StringPtr key, kj::StringPtr doc, RealLimits limits);
  // Reads the string `word`, or a list of numbers.
  kj::OneOf<kj::String, kj::Array<double>> wordOrReals(
      kj::StringPtr key, kj::StringPtr doc, kj::StringPtr word, RealLimits limits);
  kj::Array<kj::String> texts(kj::StringPtr key, kj::StringPtr doc);
  kj::Array<kj::String> texts(
      kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const kj::StringPtr> defaultValue);

  // A text of a list, and its place.
  struct ListedText {
    kj::String text;
    kj::String place;  // `hosts.txt:3: `, for messages. Empty if the list is in this file
    Span span;         // of the text, or of the path of its file
  };
  // Reads a list of strings, or the path of a text file that has one string per line. The path is
  // relative as in maybePath(). In the file, `#` begins a comment, and empty lines are ignored. The
  // resolved value is the list. An absent list is empty.
  kj::Array<ListedText> textsOrLines(kj::StringPtr key, kj::StringPtr doc);

  // Reads a word of a closed table and returns its row. T has `const char* name` and `const char*
  // doc`. For an unknown word, reports the nearest row and all rows, and returns the first row.
  template <typename T>
  const T& choose(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const T> rows);
  template <typename T>
  const T& choose(
      kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const T> rows, kj::StringPtr defaultName);

  // Does the same for a key that may be absent and has no default.
  template <typename T>
  kj::Maybe<const T&> maybeChoose(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const T> rows);

  // Reads `key = { kind = "word", … }`. The function of the row that `kind` names reads the other
  // keys. With a default, the key may be absent; it then means { kind = defaultKind }.
  template <typename T>
  T kind(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Kind<T>> rows);
  template <typename T>
  T kind(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Kind<T>> rows,
      kj::StringPtr defaultKind);
  template <typename T>
  kj::Maybe<T> maybeKind(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Kind<T>> rows);

  // Reads a list of such tables (`[[model.layers]]`), in order. An absent list is empty. A table of
  // rows may refer to itself (composites). The reference prints it once.
  template <typename T>
  kj::Array<T> kinds(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Kind<T>> rows);

  // Reads a list of lists of such tables (`branches = [[…], […]]`).
  template <typename T>
  kj::Array<kj::Array<T>> kindLists(
      kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Kind<T>> rows);

  // Reads a sub-table by `read(Reader&) -> T`. An absent one is read like an empty one, with all
  // defaults.
  template <typename Func>
  auto section(kj::StringPtr key, kj::StringPtr doc, Func&& read);
  // The same, but an absent table gives null.
  template <typename Func>
  auto maybeSection(kj::StringPtr key, kj::StringPtr doc, Func&& read)
      -> kj::Maybe<decltype(read(kj::instance<Reader&>()))>;

  // Reads a list of tables (`rows = [{ … }, …]`), each by `read(Reader&) -> T`. An absent list is
  // empty.
  template <typename Func>
  auto sections(kj::StringPtr key, kj::StringPtr doc, Func&& read)
      -> kj::Array<decltype(read(kj::instance<Reader&>()))>;

  // Returns the entries of a table with keys of the user's choice (`grid = { "data.batch_size" =
  // [128, 256] }`). Nothing checks the keys. The entries stay in the document. An absent table is
  // empty.
  kj::ArrayPtr<const Entry> entries(kj::StringPtr key, kj::StringPtr doc);

  // Reads the value of `entry`, which is one of entries(key), as a table with fixed keys, by
  // `read(Reader&)`.
  template <typename Func>
  auto entry(kj::StringPtr key, const Entry& entry, Func&& read);

  // Whether the file has `key`. The key becomes known: the help for an unknown key lists it too.
  // False in a manual.
  bool has(kj::StringPtr key) const;
  // Whether no error was found so far in the value of `key`, or inside that value. `key` may be
  // dotted. A check of keys of several tables asks this first, because a wrong value needs no
  // further error.
  bool isRight(kj::StringPtr key) const;
  // Whether there is no file, only a reference to print. Also true below a table whose kind is
  // unknown. Keys then have no values: a check that compares keys asks this first.
  bool isManual() const;
  // Returns the place of `key`'s value, or of this table if the key is absent. `key` may be dotted
  // (`optimizer.kind`).
  Span span(kj::StringPtr key) const;
  Span span() const;
  // Reports an error that the getters cannot see, such as a clash of two keys, at the value of
  // `key`. `others` are the further keys that the error follows from. Each may be dotted, and
  // absent from the file. Reports nothing if one of these keys is wrong, or is absent from a table
  // that has an unknown key: then that mistake may be the only one.
  void error(kj::StringPtr key, kj::StringPtr message, kj::StringPtr help = nullptr,
      kj::ArrayPtr<const kj::StringPtr> others = nullptr);

  // For a key that contradicts the values of `others`. If the file has the key, and no getter has
  // read it, reports it with error() and counts it as read.
  void refuse(kj::StringPtr key, kj::StringPtr message, kj::StringPtr help,
      kj::ArrayPtr<const kj::StringPtr> others);

  // The destination of errors. Valid while this section is read.
  Diagnostics& diagnostics();

private:
  // The texts of a row for messages and the manual, whatever its type.
  struct Row {
    kj::StringPtr name;
    kj::StringPtr doc;
  };
  // A table of kinds without its type. `identity` distinguishes tables.
  struct Rows {
    kj::Array<Row> rows;
    const void* identity;
  };
  // The destinations of this reader's output.
  struct Sink {
    Diagnostics& diagnostics;
    Table& resolved;
  };
  enum class Need { REQUIRED, DEFAULT, OPTIONAL };
  using ReadTable = kj::FunctionParam<void(Reader&)>;
  using ReadRow = kj::FunctionParam<void(size_t row, Reader&)>;

  kj::Maybe<const Table&> table;  // null if there is no file
  kj::Maybe<Manual&> manual;
  size_t manualSection = 0;  // index of this section in `manual`
  Sink sink;
  Span place;
  kj::String path;  // "train.optimizer", "model.layers[2]"
  bool complete;    // false: a missing key may be in the text that could not be read
  // The premise that this table has no unknown key. An absent table has the premise of its parent.
  Diagnostics::Premise allKnown = 0;
  // The keys that this section may hold, in the order of the first calls that named them.
  struct Known {
    kj::StringPtr key;
    bool isRead;  // by a getter, not only by has()
  };
  mutable kj::Vector<Known> known;

  // `allKnown` is the premise of the parent if the table is absent, and 0 if the file has the
  // table.
  Reader(const Table& table, Span place, Sink sink, kj::String path, bool complete,
      Diagnostics::Premise allKnown = 0);
  Reader(Manual& manual, size_t section, kj::String path);
  explicit Reader(Sink nowhere);

  template <typename T>
  static kj::Array<Row> rowsOf(kj::ArrayPtr<const T> rows);

  // Steps of the getters. `find` notes that the key is known, `missing` and `wrongType` report, and
  // `keep` resolves.
  kj::Maybe<const Value&> find(kj::StringPtr key);
  void note(kj::StringPtr key, bool isRead) const;
  bool isWritten(kj::StringPtr key) const;
  void missing(kj::StringPtr key, kj::StringPtr type, kj::StringPtr doc);
  void wrongType(
      kj::StringPtr name, const Value& value, kj::StringPtr expected, kj::StringPtr help = nullptr);
  void keep(kj::StringPtr key, kj::Own<Value> value);
  void describe(
      kj::StringPtr key, kj::StringPtr type, kj::StringPtr defaultValue, kj::StringPtr doc);
  // Reports the keys that no getter asked for.
  void finish();
  kj::String pathOf(kj::StringPtr key) const;

  // Returns the value if it is allowed, else the fallback, else the nearest allowed value.
  int64_t numberOf(
      kj::StringPtr name, const Value& value, IntegerLimits limits, kj::Maybe<int64_t> fallback);
  double numberOf(
      kj::StringPtr name, const Value& value, RealLimits limits, kj::Maybe<double> fallback);
  // The common part of the getters of integers and of reals.
  template <typename T, typename Limits>
  T number(kj::StringPtr key, kj::StringPtr doc, Limits limits);
  template <typename T, typename Limits>
  T number(kj::StringPtr key, kj::StringPtr doc, Limits limits, T defaultValue);
  template <typename T, typename Limits>
  kj::Maybe<T> maybeNumber(kj::StringPtr key, kj::StringPtr doc, Limits limits);
  template <typename T, typename Limits>
  kj::Array<T> numbers(kj::StringPtr key, kj::StringPtr doc, Limits limits, kj::StringPtr example);
  kj::String textOf(kj::StringPtr name, const Value& value);
  bool flagOf(kj::StringPtr key, const Value& value, bool otherwise);
  kj::String pathAt(kj::StringPtr key, kj::String given, Span span);
  void refuseIfElsewhere(kj::StringPtr key, kj::StringPtr given, kj::StringPtr meant, Span span);
  kj::Vector<ListedText> linesOfFile(kj::StringPtr key, kj::StringPtr given, Span span);
  // Calls `each(name, element, resolved)` for every element of a list. Calls nothing if the value
  // is not a list.
  void eachOf(kj::StringPtr key, const Value& value, kj::StringPtr example,
      kj::FunctionParam<void(kj::StringPtr name, const Value& element, List& resolved)> each);

  // Null only for an absent key that is OPTIONAL. `defaultName` counts for DEFAULT alone.
  kj::Maybe<size_t> chooseRow(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const Row> rows,
      Need need, kj::StringPtr defaultName);
  // These call `read` for every table that they find. In a manual they call it for every row to be
  // printed, and the last call makes the result of the getter. They return whether there was a
  // table.
  bool readKind(kj::StringPtr key, kj::StringPtr doc, const Rows& rows, Need need,
      kj::StringPtr defaultKind, ReadRow read);
  // Returns the sizes of the lists at `depth` 1 (one list) or 2.
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
  static kj::String printRoot(kj::StringPtr title, kj::StringPtr intro, ReadTable read);
  template <typename Func>
  friend auto readDocument(const Document& document, Reading& reading, Func&& read);
  template <typename Func>
  friend kj::String printReference(kj::StringPtr title, kj::StringPtr intro, Func&& read);
};

// Reads `document` with `read(Reader&) -> T` as its root section. Unknown keys anywhere are errors.
// If a text of the document could not be read, no key is reported as missing.
template <typename Func>
auto readDocument(const Document& document, Reading& reading, Func&& read);

// Returns the reference of everything that `read(Reader&)` reads, as Markdown with the title
// `title` and a paragraph `intro` below it, unless that is empty.
template <typename Func>
kj::String printReference(kj::StringPtr title, kj::StringPtr intro, Func&& read);

// -------------------------------------------------------------------------------------------------
// Inline details. The work is done in reader_tables.cc, which does not know the types of rows.
// These templates add them.

template <typename T>
kj::Array<Reader::Row> Reader::rowsOf(kj::ArrayPtr<const T> rows) {
  auto result = kj::heapArrayBuilder<Row>(rows.size());
  for (auto& row: rows) result.add(Row{row.name, row.doc});
  return result.finish();
}

template <typename T>
const T& Reader::choose(kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const T> rows) {
  return rows[KJ_ASSERT_NONNULL(chooseRow(key, doc, rowsOf(rows), Need::REQUIRED, nullptr))];
}

template <typename T>
const T& Reader::choose(
    kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const T> rows, kj::StringPtr defaultName) {
  return rows[KJ_ASSERT_NONNULL(chooseRow(key, doc, rowsOf(rows), Need::DEFAULT, defaultName))];
}

template <typename T>
kj::Maybe<const T&> Reader::maybeChoose(
    kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const T> rows) {
  return chooseRow(key, doc, rowsOf(rows), Need::OPTIONAL, nullptr)
      .map([&](size_t row) -> const T& { return rows[row]; });
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
kj::String printReference(kj::StringPtr title, kj::StringPtr intro, Func&& read) {
  return Reader::printRoot(title, intro, [&](Reader& reader) { (void)read(reader); });
}

}  // namespace configs
