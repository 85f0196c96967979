// runner/roles/confusion_message.h: the confusion matrix of a validation in messages from a worker
// to the coordinator.
#pragma once

#include "nn/confusion.h"
#include "runner/logs/job.capnp.h"

namespace runner {

using kj::uint;

// Writes `cells` to `list`, which has as many elements.
void setCells(
    capnp::List<ConfusionCell>::Builder list, kj::ArrayPtr<const nn::ConfusionCell> cells);

// Reads them. Empty if the worker sent none. Throws unless the cells are ordered, name classes
// below `classes`, have images, and together have `images`.
kj::Array<nn::ConfusionCell> cellsOf(
    capnp::List<ConfusionCell>::Reader list, uint classes, uint64_t images);

}  // namespace runner
