// nn/device_group.h: one program over several devices, which share the rows of a batch.
#pragma once

#include <kj/vector.h>

#include "nn/program.h"

namespace nn {

// The rows of a batch that device `device` of `devices` computes: floor(batchSize / devices) of
// them one after another, the last device those that are left. 1 ≤ devices ≤ batchSize.
Range rowsOf(uint device, uint devices, uint batchSize);

// A program, and its rows of a batch.
struct RowShare {
  Program* program;
  Range rows;
};

// What is done with the rows of programs that share a batch, whoever asks them to work. No threads.
class RowShares {
public:
  // In the order of their rows, which together are those of a batch. `graph` is that of all.
  void add(const Graph& graph, Program& program, Range rows);

  void setBatch(kj::ArrayPtr<const float> pixels, kj::ArrayPtr<const int32_t> labels,
      kj::ArrayPtr<const uint64_t> draws);
  BatchResult result() const;
  // The mean, by rows, of all moving statistics.
  void averageStatistics(kj::ArrayPtr<float> mean) const;
  void gatherLogits(kj::ArrayPtr<float> all) const;

private:
  kj::Vector<RowShare> all;
  uint images = 0;
  uint64_t pixelsOfImage = 0;
  uint classes = 0;
};

// A program whose batch is dealt over `targets`, by their backend's own way where all have one;
// options.threads are those of each device, and options.device is not looked at. The calling thread
// runs the first device, a thread of its own each of the others; they wait without spinning.
//
// What its arrays hold, beyond Program's contract:
//   parameters()  forward(s) copies those of segment s to every device
//   gradients()   the sum over the devices, added in their order: the same bits every time
//   statistics()  the mean over the devices, by rows. What the array holds at the next forward goes
//                 to all devices, so values may be written to it, as to any program's
// Batch norm normalizes each device's rows by themselves. forward() may return before the other
// devices have done their part: so after a validation, call result() before parameters are
// overwritten.
//
// An exception of a device is thrown by the next call that waits for it: setBatch, backward,
// result, logits or statistics. The graph must outlive the program.
kj::Own<Program> newDeviceGroup(
    const Graph& graph, kj::ArrayPtr<const Target> targets, ProgramOptions options);

}  // namespace nn
