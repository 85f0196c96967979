// configs/language/document.h: an experiment file as a tree of values that know their place.
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

// `key = value`, with the place of the key.
struct Entry {
  kj::String key;
  Span keySpan;
  kj::Own<Value> value;
};

// Entries in the order of the file. `span` is the place of its header, or of its opening brace.
struct Table {
  Span span;
  kj::Vector<Entry> entries;

  kj::Maybe<const Entry&> find(kj::StringPtr key) const;
  kj::Maybe<Entry&> find(kj::StringPtr key);
};

using List = kj::Vector<kj::Own<Value>>;

// One TOML value. Dates and times do not occur in experiment files: one is reported, and its
// content stays empty.
struct Value {
  Span span;
  kj::OneOf<bool, int64_t, double, kj::String, List, Table> content;
};

// A value with this content and no place. T is one of the contents.
template <typename T>
kj::Own<Value> newValue(T content) {
  auto result = kj::heap<Value>();
  result->content.init<T>(kj::mv(content));
  return result;
}

// The same content in the same place.
kj::Own<Value> clone(const Value& value);

// What `entries` hold that is no table, with dotted keys, in the order of the file:
// `cluster = { workers = 2 }` is `cluster.workers = 2`.
kj::Vector<Entry> leavesOf(kj::ArrayPtr<const Entry> entries);
Table clone(const Table& table);

// The value at a dotted key (`train.optimizer.learning_rate`) below `root`.
kj::Maybe<const Value&> valueAt(const Table& root, kj::StringPtr key);

// Puts a copy of `value` there, in place of what is there. A table on the way that is absent is
// made, with the place of the key. False, and nothing changes, if the way leads through a value
// that is no table.
bool putAt(Table& root, kj::StringPtr key, Span keySpan, const Value& value);

// A file with everything that it extends and every `--set` laid over it.
//
// Owns the texts that spans point into: it must outlive every Span, Diagnostics and Graph made from
// it.
class Document {
public:
  Table root;
  kj::Vector<kj::Own<Source>> sources;
  // The path as it was given: what messages call it.
  kj::String file;
  // False if a text of it had to be left out (the error is reported): keys may be missing that were
  // written.
  bool complete = true;
};

// Reads `path`, lays it over what its `extends` names (relative to the file that says so), then
// lays each of `overrides` (`a.b=value`, the value in TOML, or else a bare string) over that.
// Tables are merged key by key, everything else is replaced. What is wrong goes to `diagnostics`;
// what could be read comes back.
//
// `path` is seen from `current`, a place in `folder`. A program passes the root folder and the
// current path, so that absolute paths and `..` work; a test a folder in memory. Reads regular
// files only. Throws only if `path` itself cannot be read.
kj::Own<Document> load(const kj::ReadableDirectory& folder, kj::StringPtr path,
    kj::ArrayPtr<const kj::StringPtr> overrides, Diagnostics& diagnostics,
    kj::PathPtr current = nullptr);

// The same for a text at hand, which extends nothing; `name` is what messages call it. For tests,
// and for texts without a file.
kj::Own<Document> parse(kj::StringPtr name, kj::StringPtr text, Diagnostics& diagnostics);

// The list of one `key=v1,v2,…` on the command line, whose `option` (`--sweep`) names it in
// messages: each value in TOML, or else a bare string. Its key is the text before the `=`. Null
// after reporting what is wrong with it. `document` keeps the text.
kj::Maybe<Entry> parseValues(
    Document& document, kj::StringPtr option, kj::StringPtr text, Diagnostics& diagnostics);

// Whether `span` lies in an option of a command, such as `--set` or `--sweep`, whose words the user
// gave to a shell.
bool isOnCommandLine(Span span);

// Whether `span` lies in a `--set`.
bool isOverride(Span span);

// `table` as TOML text: scalars, then one `[section]` a sub-table, values below that inline.
// Numbers in the fewest digits that mean the same; reals always with a point or an exponent. load()
// of the text gives the same tree.
kj::String print(const Table& table);

// One value as it would stand behind `key = `, on one line.
kj::String print(const Value& value);

}  // namespace configs
