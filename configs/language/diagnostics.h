// configs/language/diagnostics.h: everything that is wrong with a file, collected, then printed in one go.
#pragma once

#include <kj/string.h>
#include <kj/vector.h>

namespace configs {

using kj::uint;

// One text that spans point into: a file, or one `--set`. `name` is what messages call it.
struct Source {
  kj::String name;
  kj::String text;
};

// A place in a source: from (line, column) up to, not including, (endLine, endColumn). Counted from 1, columns in
// characters. A span without source has no place: a value that came from no file. It does not own its source.
struct Span {
  const Source* source = nullptr;
  uint line = 0;
  uint column = 0;
  uint endLine = 0;
  uint endColumn = 0;

  // `file:line:column`, or "" without source: goes into the context of exceptions, and so from a remote role to the user.
  kj::String toString() const;
};

// Collects errors; nothing is thrown while a file is read, so that one run reports all of them.
class Diagnostics {
public:
  // `message` is one sentence without a full stop. `help`, if given, says the way out.
  void error(Span span, kj::StringPtr message, kj::StringPtr help = nullptr);

  size_t count() const;

  // All errors in the order of their places, each as
  //
  //     configs/x.toml:5:1: error: unknown key `learning_rat` in [train.optimizer]
  //       5 | learning_rat = 0.1
  //         | ^^^^^^^^^^^^
  //       help: did you mean `learning_rate`? (kind, learning_rate, momentum, weight_decay)
  //
  // and last `1 error in <file>; nothing was started.`
  kj::String format(kj::StringPtr file) const;

private:
  struct Error {
    Span span;
    kj::String message;
    kj::String help;
  };
  kj::Vector<Error> errors;
};

// The word of `known` that is most likely meant by `word`: the smallest edit distance (insertion, deletion,
// replacement, swap of neighbours; Damerau 1964), at most a third of the length; null if none is near.
kj::Maybe<kj::StringPtr> nearest(kj::StringPtr word, kj::ArrayPtr<const kj::StringPtr> known);

}  // namespace configs
