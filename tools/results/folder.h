// tools/results/folder.h: the results page and what it is made of, on disk.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace tools {

// CHECK changes nothing.
enum class PageAction { UPDATE, CHECK };

// What became of the page.
struct PageOutcome {
  kj::String errors;            // of index.toml, to be printed; empty = fine
  kj::Array<kj::String> lines;  // CHECK: what is wrong with each table; UPDATE: what was written
};

// Makes the tables of the page at `path` anew from `results/index.toml` and `results/*.log.xz`
// beside it. The page is written at once, and only if it changes. Throws if a file cannot be read
// or written, or as readPage() does.
PageOutcome makePage(kj::StringPtr path, PageAction action);

}  // namespace tools
