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
};

using List = kj::Vector<kj::Own<Value>>;

// One TOML value. Dates and times do not occur in experiment files: reading one is an error.
struct Value {
  Span span;
  kj::OneOf<bool, int64_t, double, kj::String, List, Table> content;
};

// A file with everything that it extends and every `--set` laid over it.
//
// Owns the texts that spans point into: it must outlive every Span, Diagnostics and Graph made from it.
class Document {
public:
  Table root;
  kj::Vector<kj::Own<Source>> sources;
  // The last component of the file's path; what messages call it.
  kj::String file;
};

// Reads `path` (from the current folder), lays it over what its `extends` names (relative to the file that says
// so), then lays each of `overrides` (`a.b=value`, the value in TOML) over that. Tables are merged key by key,
// everything else is replaced. What is wrong goes to `diagnostics`; what could be read comes back.
// Throws only if `path` itself cannot be read.
kj::Own<Document> load(const kj::ReadableDirectory& folder, kj::StringPtr path,
    kj::ArrayPtr<const kj::StringPtr> overrides, Diagnostics& diagnostics);

// The same for a text at hand; `name` is what messages call it. For tests, and for texts without a file.
kj::Own<Document> parse(kj::StringPtr name, kj::StringPtr text, Diagnostics& diagnostics);

// `table` as TOML text: scalars, then one `[section]` a sub-table, values below that inline.
// load() of the text gives the same tree.
kj::String print(const Table& table);

}  // namespace configs
