// configs/language/diagnostics.h: everything that is wrong with a file, collected, then printed in
// one go.
#pragma once

#include <kj/array.h>
#include <kj/string.h>
#include <kj/vector.h>

namespace configs {

using kj::uint;

// One text that spans point into: a file (`name` is its path as it was given), or one `--set`
// (`name` is `--set data.batch_size`).
struct Source {
  kj::String name;
  kj::String text;
  // The absolute path of the folder that relative paths in it count from; empty: the current one.
  kj::String folder;
};

// A place in a source: from (line, column) up to, not including, (endLine, endColumn). Counted from
// 1, columns in characters. A span of no width is the top of a file. A span without source has no
// place: a value that came from no file. It does not own its source, which must stay where it is.
struct Span {
  const Source* source = nullptr;
  uint line = 0;
  uint column = 0;
  uint endLine = 0;
  uint endColumn = 0;

  // `file:line:column`, or "" without source: goes into the context of exceptions, and so from a
  // remote role to the user.
  kj::String toString() const;

  // Whether this begins within `outer`, a span of the same source.
  bool beginsIn(const Span& outer) const;
};

// A line of a source (counted from 1), for those who make spans: bytes here, characters there. Its
// end is not part of it. A line past the last one is empty. The source must outlive it.
class Line {
public:
  Line(const Source& source, uint number);

  // Where it begins and ends in the source's text, in bytes.
  size_t begin() const { return beginByte; }
  size_t end() const { return endByte; }
  kj::ArrayPtr<const char> text() const;

  // The byte at which the character of `column` starts; the end if the line is shorter.
  size_t byteAt(uint column) const;
  // The span of bytes `from` … `to` - 1 of the source, at least one character wide.
  Span span(size_t from, size_t to) const;

private:
  const Source& source;
  uint number;
  size_t beginByte = 0;
  size_t endByte;
};

// Collects errors; nothing is thrown while a file is read, so that one run reports all of them.
class Diagnostics {
public:
  using Premise = uint;
  struct Error {
    Span span;
    kj::String message;
    kj::String help;
    Premise premise;  // see withdraw(); 0: it stands in any case
  };

  // `message` is one sentence without a full stop. `help`, if given, says the way out.
  void error(Span span, kj::StringPtr message, kj::StringPtr help = nullptr, Premise premise = 0);

  // A new premise: something that errors follow from, and that is not known when they are reported.
  Premise newPremise() { return ++lastPremise; }
  // Removes the errors that rest on `premise`, which does not hold.
  void withdraw(Premise premise);

  // Adds those of `others` that are not here yet: the same message for the same place.
  void addNew(const Diagnostics& others);

  size_t count() const;
  // All errors in the order in which they were found.
  kj::ArrayPtr<const Error> all() const { return errors; }
  // Whether an error begins within `span`.
  bool hasErrorIn(const Span& span) const;

  // All errors in the order of their places (those of `file` first), or "" if there are none. Each
  // reads
  //
  //     configs/x.toml:5:1: error: unknown key `learning_rat` in [train.optimizer]
  //       5 | learning_rat = 0.1
  //         | ^^^^^^^^^^^^
  //       help: did you mean `learning_rate`? (kind, learning_rate, momentum, weight_decay)
  //
  // and last `1 error in <file>; nothing was started.` Every line ends with \n. A span of no width
  // shows no line. The carets stand under the place on a terminal, where a character may take two
  // columns, or none. Tabs are spaces. Of a line that is too long for `columns`, those of a
  // terminal, only what is around the place is shown; sentences are not shortened. Control
  // characters in names and values are shown as printable() has them.
  // `end` is that second clause of the last line.
  kj::String format(kj::StringPtr file, kj::Maybe<uint> columns = nullptr,
      kj::StringPtr end = "nothing was started") const;

private:
  kj::Vector<Error> errors;
  Premise lastPremise = 0;
};

// The word of `known` that is most likely meant by `word`: the smallest edit distance (insertion,
// deletion, replacement, swap of neighbours; Damerau 1964), at most a third of the longer one's
// length; null if none is near. Upper and lower case count as the same letter.
kj::Maybe<kj::StringPtr> nearest(kj::StringPtr word, kj::ArrayPtr<const kj::StringPtr> known);

// The help for a `word` that is not in `known`: "did you mean `x`? (x, y)", or "known: x, y". Words
// that begin with `word` go before the nearest one: "did you mean `x-1` or `x-2`? (…)".
kj::String suggest(kj::StringPtr word, kj::ArrayPtr<const kj::StringPtr> known);

}  // namespace configs
