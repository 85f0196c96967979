// runner/logs/log_writers.h: one LineWriter per log style, and a RowWriter for each style with
// lines per step. The table of styles is in log_styles.cc.
#pragma once

#include "runner/logs/log_styles.h"

namespace runner {

// MXNet's, from December 2015 to 0.9.3.
kj::Own<LineWriter> newMxnetWriter();

// The line after each step of TensorFlow's example mnist_replica.py.
kj::Own<LineWriter> newTfReplicaWriter();
kj::Own<RowWriter> newTfReplicaRows();

// The lines of a TensorFlow trainer on several GPU servers, every 100 steps.
kj::Own<LineWriter> newTfAwsWriter();
kj::Own<RowWriter> newTfAwsRows();

// The lines of I. Schlag's distributed TensorFlow example, every 100 batches.
kj::Own<LineWriter> newSchlagWriter();
kj::Own<RowWriter> newSchlagRows();

// Returns a line by which TensorFlow logs where a variable is: `fc1_weight: (VariableV2):
// /job:ps/replica:0/task:1/cpu:0`. A key whose slices are on several servers has one line for each
// server.
kj::String placementLine(Event::Placed::Reader placed);

}  // namespace runner
