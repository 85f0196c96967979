// runner/logs/confusion_file.h: the text of confusion.csv, the confusion matrix of a run's last
// validation. docs/formats/tables.md describes the file.
#pragma once

#include <kj/string.h>

#include "nn/confusion.h"

namespace runner {

// Returns the text of the file. `cells` are ordered by label, then by prediction.
kj::String confusionText(kj::ArrayPtr<const nn::ConfusionCell> cells);

// Returns the cells of such a text. Throws with `path`, the line and the way out if it is not one.
kj::Array<nn::ConfusionCell> parseConfusion(kj::StringPtr text, kj::StringPtr path);

// Reads the file at `path`. Throws as parseConfusion() does, or if the file cannot be read.
kj::Array<nn::ConfusionCell> readConfusion(kj::StringPtr path);

}  // namespace runner
