// nn/device_group.h: one program over several devices, which share the rows of a batch.
#pragma once

#include <kj/vector.h>

#include "nn/program.h"

namespace nn {

// The rows of a batch that device `device` of `devices` computes: floor(batchSize / devices) rows
// one after another. The last device also computes the rest. 1 ≤ devices ≤ batchSize.
Range rowsOf(uint device, uint devices, uint batchSize);

// A program, and its rows of a batch.
struct RowShare {
  Program* program;
  Range rows;
};

// Divides a batch among programs, and gathers their results. It has no threads, and does not run
// the programs.
class RowShares {
public:
  // Adds a program. Call it in the order of the rows, which together make a batch. All programs
  // have the same `graph`.
  void add(const Graph& graph, Program& program, Range rows);

  void setBatch(kj::ArrayPtr<const float> pixels, kj::ArrayPtr<const int32_t> labels,
      kj::ArrayPtr<const uint64_t> draws);
  BatchResult result() const;
  // Writes the mean of all moving statistics, weighted by rows.
  void averageStatistics(kj::ArrayPtr<float> mean) const;
  void gatherLogits(kj::ArrayPtr<float> all) const;
  // Visits the moving statistics of each program, to save and to restore them.
  void visitStatistics(configs::StateVisitor& visitor) const;

private:
  kj::Vector<RowShare> all;
  uint images = 0;
  uint64_t pixelsOfImage = 0;
  uint classes = 0;
};

// Makes a program whose batch is divided among `targets`. Uses Backend::lowerGroup if all targets
// share a backend that has it. options.threads is per device. options.device is ignored. The
// calling thread runs the first device, and one thread runs each of the others. They wait without
// spinning.
//
// The content of its arrays, beyond Program's contract:
//   parameters()  forward(s) copies those of segment s to every device
//   gradients()   the sum over the devices, added in their order: the same bits every time
//   statistics()  the mean over the devices, weighted by rows. The next forward after this call
//                 copies the array to all devices, so the caller may write values to it
// Batch norm normalizes the rows of each device separately. forward() may return before the other
// devices have done their part. So after a validation, result() must be called before
// parameters are overwritten.
//
// The next call that waits for a device throws the exception of that device: setBatch, backward,
// result, logits or statistics. The graph must outlive the program.
kj::Own<Program> newDeviceGroup(
    const Graph& graph, kj::ArrayPtr<const Target> targets, ProgramOptions options);

}  // namespace nn
