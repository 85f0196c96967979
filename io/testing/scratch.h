// io/testing/scratch.h: a temporary folder and a DataConfig for tests.
#pragma once

#include <kj/array.h>
#include <kj/debug.h>
#include <kj/string.h>

#include <cstdint>

#include "io/data_config.h"

namespace io {

// A new empty folder. The destructor removes it with everything in it.
class Scratch {
public:
  Scratch();
  ~Scratch() noexcept(false);
  KJ_DISALLOW_COPY(Scratch);

  // Returns the path of `name` in the folder.
  kj::String path(kj::StringPtr name) const;
  // Writes a file, and makes the folders on its way. Returns its path.
  kj::String write(kj::StringPtr name, kj::ArrayPtr<const kj::byte> bytes) const;

private:
  kj::String folder;
};

// While it exists, root has no special rights over files in this thread, only those that their
// owner has.
class AsOrdinaryUser {
public:
  AsOrdinaryUser();
  ~AsOrdinaryUser() noexcept(false);
  KJ_DISALLOW_COPY(AsOrdinaryUser);

private:
  uint32_t capabilities[2];  // the capabilities that were in effect
};

// Returns [data] with its defaults for the data set `name`, from `source`.
DataConfig testConfig(kj::StringPtr name, kj::Maybe<kj::String> source = nullptr);

// Returns $RUNNER_DATASETS if it contains `file`, else null.
kj::Maybe<kj::String> sharedDatasets(kj::StringPtr file);

// Returns the row `name` of a table.
template <typename T>
const T* row(kj::ArrayPtr<const T> rows, kj::StringPtr name) {
  for (auto& row: rows) {
    if (name == row.name) return &row;
  }
  KJ_FAIL_REQUIRE("no such row", name);
}

// Returns the description of the exception that `function` throws, or "" if it throws none.
template <typename Func>
kj::String thrownBy(Func&& function) {
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { function(); })) {
    return kj::heapString(e->getDescription());
  }
  return kj::String();
}

}  // namespace io
