// io/testing/scratch.h: for tests: a folder of its own, a DataConfig by hand.
#pragma once

#include <kj/array.h>
#include <kj/debug.h>
#include <kj/string.h>

#include <cstdint>

#include "io/data_config.h"

namespace io {

// A new empty folder, removed with all that is in it.
class Scratch {
public:
  Scratch();
  ~Scratch() noexcept(false);
  KJ_DISALLOW_COPY(Scratch);

  // The path of `name` in it.
  kj::String path(kj::StringPtr name) const;
  // Writes a file, with the folders on its way; returns its path.
  kj::String write(kj::StringPtr name, kj::ArrayPtr<const kj::byte> bytes) const;

private:
  kj::String folder;
};

// While it exists, root has no more rights over files than their owner, in this thread.
class AsOrdinaryUser {
public:
  AsOrdinaryUser();
  ~AsOrdinaryUser() noexcept(false);
  KJ_DISALLOW_COPY(AsOrdinaryUser);

private:
  uint32_t capabilities[2];  // the words of those that were in effect
};

// [data] with its defaults for the data set `name`, from `source`.
DataConfig testConfig(kj::StringPtr name, kj::Maybe<kj::String> source = nullptr);

// $RUNNER_DATASETS, if it has `file`.
kj::Maybe<kj::String> sharedDatasets(kj::StringPtr file);

// A row of a table by its name.
template <typename T>
const T* row(kj::ArrayPtr<const T> rows, kj::StringPtr name) {
  for (auto& row: rows) {
    if (name == row.name) return &row;
  }
  KJ_FAIL_REQUIRE("no such row", name);
}

// The description of what `function` throws; "" if nothing.
template <typename Func>
kj::String thrownBy(Func&& function) {
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { function(); })) {
    return kj::heapString(e->getDescription());
  }
  return kj::String();
}

}  // namespace io
