// configs/language/word.h: a row of a closed table of words. Each word stands for one value of an
// enum.
#pragma once

#include "configs/language/reader.h"

namespace configs {

// A row: the word, its text in the manual, and its value.
template <typename T>
struct Word {
  const char* name;
  const char* doc;
  T value;
};

// Reader::choose for a table of words. Without `defaultName` the key is required.
template <typename T, size_t count>
T chooseWord(Reader& reader, kj::StringPtr key, kj::StringPtr doc, const Word<T> (&rows)[count],
    kj::StringPtr defaultName = nullptr) {
  kj::ArrayPtr<const Word<T>> table = rows;
  if (defaultName == nullptr) return reader.choose(key, doc, table).value;
  return reader.choose(key, doc, table, defaultName).value;
}

// Reader::maybeChoose for a table of words.
template <typename T, size_t count>
kj::Maybe<T> maybeChooseWord(
    Reader& reader, kj::StringPtr key, kj::StringPtr doc, const Word<T> (&rows)[count]) {
  kj::ArrayPtr<const Word<T>> table = rows;
  return reader.maybeChoose(key, doc, table).map([](const Word<T>& row) { return row.value; });
}

// Returns the name of the row for `value`. `rows` must have one.
template <typename T>
kj::StringPtr nameIn(kj::ArrayPtr<const Word<T>> rows, T value) {
  for (auto& row: rows) {
    if (row.value == value) return row.name;
  }
  KJ_UNREACHABLE;
}

}  // namespace configs
