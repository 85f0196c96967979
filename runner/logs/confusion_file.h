// runner/logs/confusion_file.h: the texts of confusion.csv, the confusion matrix of a run's last
// validation, and of classes.txt beside it. docs/formats/tables.md describes the files.
#pragma once

#include <kj/string.h>

#include "nn/confusion.h"

namespace runner {

// Every such file begins with these bytes.
constexpr kj::StringPtr CONFUSION_BEGIN = "label,predicted,images\n"_kj;

// Returns the text of the file. `cells` are ordered by label, then by prediction.
kj::String confusionText(kj::ArrayPtr<const nn::ConfusionCell> cells);

// Returns the cells of such a text. If it is malformed, throws with `path`, the line and what to
// do.
kj::Array<nn::ConfusionCell> parseConfusion(kj::StringPtr text, kj::StringPtr path);

// Returns the text of classes.txt. Line breaks in a name become spaces.
kj::String classesText(kj::ArrayPtr<const kj::String> names);

// Reads the names of such a file. Throws if it cannot be read.
kj::Array<kj::String> readClasses(kj::StringPtr path);

// Reads the file at `path`. Throws as parseConfusion() does, or if the file cannot be read.
kj::Array<nn::ConfusionCell> readConfusion(kj::StringPtr path);

}  // namespace runner
