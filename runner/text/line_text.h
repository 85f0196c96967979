// runner/text/line_text.h: reading a line of a log from left to right.
#pragma once

#include <kj/common.h>
#include <kj/function.h>
#include <kj/string.h>
#include <stdint.h>

namespace runner {

using kj::uint;

// A line, or what is left of it. Points into the log's text.
using LineText = kj::ArrayPtr<const char>;

// Calls `use` with each line of `log`, without its newline, and its place in the file, from 1. A
// backslash and an `n`, by which notebooks write a newline into a text, ends a line as well: what
// follows has the same place.
void eachLine(LineText log, kj::FunctionParam<void(LineText line, uint64_t number)> use);

bool startsWith(LineText text, kj::StringPtr word);
bool endsWith(LineText text, kj::StringPtr word);

// The place of the first `word` in `text`. Takes one pass.
kj::Maybe<size_t> find(LineText text, kj::StringPtr word);

// Takes `word` off the front of `rest`, if it stands there.
bool take(LineText& rest, kj::StringPtr word);

// Takes spaces off the front of `rest`, if there are any.
void takeSpaces(LineText& rest);

// Takes a number of one to nine digits (what a uint holds for certain) off the front of `rest`.
// Null, and nothing taken, if there is none, or a longer one.
kj::Maybe<uint> takeCount(LineText& rest);

// Takes such a number off the end of `rest`.
kj::Maybe<uint> takeCountFromEnd(LineText& rest);

// Takes a number off the front of `rest`: anything that printf writes for a double, nan included.
kj::Maybe<double> takeValue(LineText& rest);

// Takes what stands between two columns of a line: spaces, tabs, and a backslash and a `t`, by
// which notebooks write a tab. False, and nothing taken, if there is none of them.
bool takeGap(LineText& rest);

// Whether the line or the word ends here: nothing, a space, a control character or the quote that
// ends a quoted line follows. Half a number, or two lines run into each other, are no value.
bool endsHere(LineText rest);

}  // namespace runner
