// runner/report/class_report.h: the part of a report about single classes.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "nn/confusion.h"

namespace runner {

// Returns HTML with two parts: how often each class was recognized, the worst class first, and
// which classes were confused. The second part is a heat map if there are at most 100 classes, and
// otherwise a list of the most frequent confusions. `cells` are ordered by label, then by
// prediction. Empty if there are no cells. `names` are the names of the classes, by label. A class
// whose name is missing or "" is shown by its number.
kj::String classReport(
    kj::ArrayPtr<const nn::ConfusionCell> cells, kj::ArrayPtr<const kj::String> names = nullptr);

}  // namespace runner
