// tools/results/folder.h: reads and writes the results page and its sources on disk.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace tools {

// CHECK changes nothing.
enum class PageAction { UPDATE, CHECK };

// The result of makePage().
struct PageOutcome {
  kj::String errors;            // errors of index.toml, ready to print; empty if there are none
  kj::Array<kj::String> lines;  // CHECK: what is wrong with each table; UPDATE: what was written
};

// Makes the tables of the page at `path` again from `results/index.toml` and `results/*.log.xz`
// beside it. Writes the page in one piece, and only if it changes. Throws if a file cannot be read
// or written, or as readPage() does.
PageOutcome makePage(kj::StringPtr path, PageAction action);

}  // namespace tools
