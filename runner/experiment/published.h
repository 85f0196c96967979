// runner/experiment/published.h: the section [published]: figures that others published of the same
// experiment, to compare with a run.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "configs/language/document.h"
#include "configs/language/reader.h"

namespace runner {

using kj::uint;

// The published figures of one place of a run. Null: not published.
struct PublishedFigures {
  // The runs that the row is about: all of these dotted keys have these values. Empty: any run.
  kj::Array<configs::Entry> where;

  // After which epoch (from 1), or after which update of the whole job. Both null: at the end.
  kj::Maybe<uint> epoch;
  kj::Maybe<uint64_t> step;

  kj::Maybe<double> trainAccuracy;
  kj::Maybe<double> validationAccuracy;
  kj::Maybe<double> loss;  // of training
  kj::Maybe<double> epoch_s;
  kj::Maybe<double> images_per_s;  // of the whole job
};

// [published]
struct Published {
  kj::String source;
  kj::Array<PublishedFigures> rows;

  static Published read(configs::Reader& reader);

  // Keeps the rows about a run with the values of `resolved` (the resolved experiment), and drops
  // their conditions, which hold. Reports a condition on an absent key, unless the key is in a
  // table with a `kind`, because another kind may have the key.
  void keepRowsOf(const configs::Table& resolved, configs::Diagnostics& diagnostics);
};

}  // namespace runner
