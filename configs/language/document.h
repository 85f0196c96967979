// configs/language/document.h: an experiment file as a tree of values, each with its place in the
// file.
#pragma once

#include <kj/common.h>
#include <kj/filesystem.h>
#include <kj/memory.h>
#include <kj/one-of.h>
#include <kj/string.h>
#include <kj/vector.h>

#include "configs/language/diagnostics.h"

namespace configs {

struct Value;

// A line `key = value`, with the place of the key.
struct Entry {
  kj::String key;
  Span keySpan;
  kj::Own<Value> value;
};

// The entries of a table, in the order of the file. `span` is the place of its header, or of its
// opening brace.
struct Table {
  Span span;
  kj::Vector<Entry> entries;

  // Returns the entry of `key` in this table, without dots. Null if there is none.
  kj::Maybe<const Entry&> find(kj::StringPtr key) const;
  kj::Maybe<Entry&> find(kj::StringPtr key);
};

using List = kj::Vector<kj::Own<Value>>;

// One TOML value. Dates and times have no meaning in experiment files. Reading one reports an error
// and leaves its content empty.
struct Value {
  Span span;
  kj::OneOf<bool, int64_t, double, kj::String, List, Table> content;
};

// Returns a value with this content and no place. T is one of the types of `content`.
template <typename T>
kj::Own<Value> newValue(T content) {
  auto result = kj::heap<Value>();
  result->content.init<T>(kj::mv(content));
  return result;
}

// Returns a deep copy with the same places.
kj::Own<Value> clone(const Value& value);

// Returns all values in `entries` that are not tables, with dotted keys, in the order of the file:
// `cluster = { workers = 2 }` becomes `cluster.workers = 2`.
kj::Vector<Entry> leavesOf(kj::ArrayPtr<const Entry> entries);
Table clone(const Table& table);

// Returns the value at a dotted key (`train.optimizer.learning_rate`) below `root`, or null.
kj::Maybe<const Value&> valueAt(const Table& root, kj::StringPtr key);

// Which of the two layers of lay() gives a table its header, if both layers have the table. For a
// `--set`, it is the file below (UNDER), because users add missing keys below a header of the file.
enum class HeaderOf { OVER, UNDER };

// Lays the keys of `over` over those of `under`. Where both have a table, their keys are merged,
// unless the tables differ in their `kind`: the upper table then takes the place of the lower one.
// A table that is made by dotted keys, as in `optimizer.kind = "adam"`, is always merged.
void lay(Table over, Table& under, HeaderOf header);

// Lays a copy of `value` over what is at a dotted key below `root`, as lay() does. Makes missing
// tables on the path, with the place of the key. Returns false and changes nothing if a value on
// the path is not a table.
bool putAt(Table& root, kj::StringPtr key, Span keySpan, const Value& value);

// A file, laid over everything that it extends, with every `--set` laid over it.
//
// Owns the texts that spans point into. It must outlive every Span, Diagnostics and Graph made from
// it.
class Document {
public:
  Table root;
  kj::Vector<kj::Own<Source>> sources;
  // The path as the user gave it. Messages use it.
  kj::String file;
  // False if one of the texts could not be read. That error is reported, but keys of that text may
  // now seem to be missing.
  bool complete = true;
};

// Reads the file at `path` and lays it over the file that its `extends` names (relative to the
// extending file). Then lays each of `overrides` (`a.b=value`, the value in TOML, or else a bare
// string without the spaces around it) over the result. Tables are merged key by key; everything
// else is replaced. A table in braces or below a header also replaces one that has another `kind`.
// Errors go to `diagnostics`, and all readable parts are returned.
//
// `path` is relative to `current`, a place in `folder`. A program passes the root folder and the
// current path, so that absolute paths and `..` work, also above symbolic links. A test passes a
// folder in memory. Reads regular files only. Throws only if the file at `path` itself cannot be
// read.
kj::Own<Document> load(const kj::ReadableDirectory& folder, kj::StringPtr path,
    kj::ArrayPtr<const kj::StringPtr> overrides, Diagnostics& diagnostics,
    kj::PathPtr current = nullptr);

// Does the same for a text in memory, which extends nothing. `name` is its name in messages. For
// tests, and for texts without a file.
kj::Own<Document> parse(kj::StringPtr name, kj::StringPtr text, Diagnostics& diagnostics,
    kj::ArrayPtr<const kj::StringPtr> overrides = nullptr);

// Returns the key of `key=value`: the text before the `=`, without the spaces around it.
kj::ArrayPtr<const char> keyOf(kj::StringPtr assignment);

// Reads one `key=v1,v2,…` of the command line. Each value is TOML, or else a bare string. Spaces
// around keys and values are ignored. The key of the result is keyOf(), and its value is a list.
// `option` (`--sweep`) is the option's name for messages. Returns null after reporting an error.
// `document` keeps the text.
kj::Maybe<Entry> parseValues(
    Document& document, kj::StringPtr option, kj::StringPtr text, Diagnostics& diagnostics);

// Whether `span` is in an option of a command, such as `--set` or `--sweep`. A shell has changed
// the quotes of such a text.
bool isOnCommandLine(Span span);

// Whether `span` is in a `--set`.
bool isOverride(Span span);

// Returns `table` as TOML text: scalars, then one `[section]` per sub-table, with values below that
// inline. Numbers have the fewest digits that mean the same. Reals always have a point or an
// exponent. load() of the text gives the same tree.
kj::String print(const Table& table);

// Returns one value in the form that follows `key = `, on one line.
kj::String print(const Value& value);

}  // namespace configs
