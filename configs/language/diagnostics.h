// configs/language/diagnostics.h: collects all errors of a file, and prints them together.
#pragma once

#include <kj/array.h>
#include <kj/string.h>
#include <kj/vector.h>

namespace configs {

using kj::uint;

// A text that spans point into. For a file, `name` is the path as the user gave it. For an option
// `--set`, `name` is `--set data.batch_size`.
struct Source {
  kj::String name;
  kj::String text;
  // The absolute path of the folder that relative paths in this text start from. Empty: the current
  // folder.
  kj::String folder;
};

// A place in a source: from (line, column) up to, not including, (endLine, endColumn). Lines and
// columns count from 1, and columns count characters. A span of zero width is the top of a file. A
// span without a source has no place: its value came from no file. The span does not own its
// source, which must outlive it and stay at its address.
struct Span {
  const Source* source = nullptr;
  uint line = 0;
  uint column = 0;
  uint endLine = 0;
  uint endColumn = 0;

  // Returns `file:line:column`, or "" without a source. Exceptions carry this text as context, so
  // that the user also sees it for an error in a remote role.
  kj::String toString() const;

  // Whether this span begins inside `outer`, a span of the same source.
  bool beginsIn(const Span& outer) const;
};

// A line of a source, counted from 1. It converts between bytes and characters for code that makes
// spans. The newline is not part of the line. A line after the last one is empty. The source must
// outlive this object.
class Line {
public:
  Line(const Source& source, uint number);

  // Where the line begins and ends in the source's text, in bytes.
  size_t begin() const { return beginByte; }
  size_t end() const { return endByte; }
  kj::ArrayPtr<const char> text() const;

  // Returns the byte at which the character of `column` starts, or the end if the line is shorter.
  size_t byteAt(uint column) const;
  // Returns the span of bytes `from` … `to` - 1 of the source. It is at least one character wide.
  Span span(size_t from, size_t to) const;

private:
  const Source& source;
  uint number;
  size_t beginByte = 0;
  size_t endByte;
};

// Collects the errors of a file. Reading a file throws nothing, so that one run reports all errors.
class Diagnostics {
public:
  using Premise = uint;
  struct Error {
    Span span;
    kj::String message;
    kj::String help;
    Premise premise;  // see withdraw(); 0: the error depends on no premise
  };

  // Adds an error. `message` is one sentence without a full stop. `help`, if given, is advice for
  // the user.
  void error(Span span, kj::StringPtr message, kj::StringPtr help = nullptr, Premise premise = 0);

  // Returns a new premise: a fact on which errors may depend, and which is not known yet when they
  // are reported.
  Premise newPremise() { return ++lastPremise; }
  // Removes the errors that depend on `premise`, because the premise turned out to be false.
  void withdraw(Premise premise);

  // Adds those errors of `others` that are new. An error with the same message at the same place is
  // not new.
  void addNew(const Diagnostics& others);

  size_t count() const;
  // All errors in the order in which they were found.
  kj::ArrayPtr<const Error> all() const { return errors; }
  // Whether an error begins within `span`.
  bool hasErrorIn(const Span& span) const;

  // Returns all errors in the order of their places, those of `file` first, or "" if there are
  // none. Each error reads
  //
  //     configs/x.toml:5:1: error: unknown key `learning_rat` in [train.optimizer]
  //       5 | learning_rat = 0.1
  //         | ^^^^^^^^^^^^
  //       help: did you mean `learning_rate`? (kind, learning_rate, momentum, weight_decay)
  //
  // The last line is `1 error in <file>; nothing was started.`, where `end` replaces its second
  // clause. `in <file>` is left out if all errors have other places. Every line ends with \n.
  //
  // A span of zero width shows no source line. The carets stand under the place as a terminal shows
  // it: a character may take two columns there, or none. Tabs become spaces. Sentences are
  // printable(): without control characters, and without the middle of a very long name.
  //
  // If a source line is longer than `columns` (the width of the terminal), only the part around the
  // place is shown.
  kj::String format(kj::StringPtr file, kj::Maybe<uint> columns = nullptr,
      kj::StringPtr end = "nothing was started") const;

private:
  kj::Vector<Error> errors;
  Premise lastPremise = 0;
};

// Returns the word of `known` that `word` most likely means, or null if none is near. The nearest
// word has the smallest edit distance (insertion, deletion, replacement, swap of neighbours;
// Damerau 1964), which may be at most a third of the longer word. Upper and lower case count as the
// same letter.
kj::Maybe<kj::StringPtr> nearest(kj::StringPtr word, kj::ArrayPtr<const kj::StringPtr> known);

// Returns the help for a `word` that is not in `known`: "did you mean `x`? (x, y)", or "known: x,
// y". If words of `known` begin with `word`, the help names these instead of the nearest one: "did
// you mean `x-1` or `x-2`? (…)".
kj::String suggest(kj::StringPtr word, kj::ArrayPtr<const kj::StringPtr> known);

}  // namespace configs
