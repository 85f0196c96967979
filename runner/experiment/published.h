// runner/experiment/published.h: what others published of the same experiment, [published], to
// stand beside what a run found.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "configs/language/document.h"
#include "configs/language/reader.h"

namespace runner {

using kj::uint;

// Figures of one place of a run. What was not published is null.
struct PublishedFigures {
  // Which runs it speaks of: all of these dotted keys have these values. Empty: any run.
  kj::Array<configs::Entry> where;

  // After which epoch (from 1) or which update of the whole job. Both null: at the end.
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

  // Keeps the rows that speak of a run with the values of `resolved` (what a file resolves to), and
  // drops their conditions, which hold. A condition on a key that is not there is reported, unless
  // it is one of a table with a `kind`, whose keys depend on that: another run may have it.
  void keepRowsOf(const configs::Table& resolved, configs::Diagnostics& diagnostics);
};

}  // namespace runner
