// tools/logs/line_text.h: reads a line of a log from left to right.
#pragma once

#include <kj/common.h>
#include <kj/function.h>
#include <kj/string.h>
#include <stdint.h>

namespace tools {

using kj::uint;

// A line, or the rest of one that is not read yet. Points into the log's text.
using LineText = kj::ArrayPtr<const char>;

// Calls `use` with each line of `log`, without its newline, and with the line's number in the file,
// from 1. A backslash followed by `n` also ends a line, because that is how notebooks store
// newlines. The text after it keeps the same number.
void eachLine(LineText log, kj::FunctionParam<void(LineText line, uint64_t number)> use);

bool startsWith(LineText text, kj::StringPtr word);
bool endsWith(LineText text, kj::StringPtr word);

// Returns the place of the first `word` in `text`, or null. Takes one pass.
kj::Maybe<size_t> find(LineText text, kj::StringPtr word);

// Removes `word` from the front of `rest` and returns true, if `rest` begins with it.
bool take(LineText& rest, kj::StringPtr word);

// Removes all spaces from the front of `rest`.
void takeSpaces(LineText& rest);

// Removes a number of one to nine digits (which always fit into a uint) from the front of `rest`.
// Returns null and removes nothing if there is no number or a longer one.
kj::Maybe<uint> takeCount(LineText& rest);

// Removes such a number from the end of `rest`.
kj::Maybe<uint> takeCountFromEnd(LineText& rest);

// Removes a number from the front of `rest`: anything that printf writes for a double, including
// nan.
kj::Maybe<double> takeValue(LineText& rest);

// Removes the gap between two columns of a line: spaces, tabs, and a backslash followed by `t`, by
// which notebooks write a tab. Returns false and removes nothing if there is no gap.
bool takeGap(LineText& rest);

// Whether the line or the word ends here: no character follows, or a space, a control character, or
// the quote that ends a quoted line. If not, the number before may be half of a number, or two
// lines may have run into each other.
bool endsHere(LineText rest);

}  // namespace tools
