// nn/program.h: the interface of a backend: programs, with their memory, and segments that run
// forward and backward.
#pragma once

#include <kj/array.h>
#include <kj/function.h>
#include <kj/memory.h>

#include "configs/language/state_visitor.h"
#include "nn/network/graph.h"
#include "nn/profile.h"
#include "nn/raw_images.h"

namespace nn {

// Training uses the statistics of the batch and updates the moving ones. Validation uses the moving
// ones and has no backward pass.
enum class Phase { TRAIN, VALIDATE };

// Sums over the rows of one batch whose label is not -1.
struct BatchResult {
  double lossSum = 0;
  uint64_t correct = 0;  // rows whose largest logit is the label's (the first of equals)
  uint64_t images = 0;
  // Rows whose label is among the k largest logits. Programs leave it 0: see countInTopK().
  uint64_t inTopK = 0;

  void add(const BatchResult& other) {
    lossSum += other.lossSum;
    correct += other.correct;
    images += other.images;
    inTopK += other.inTopK;
  }

  // Means over the images. NaN if there are no images.
  double meanLoss() const { return lossSum / images; }
  double accuracy() const { return double(correct) / images; }
  double topKAccuracy() const { return double(inTopK) / images; }
};

class ValueRules;  // see value_rules.h

// A batch of N stored images. A row whose label is -1 becomes zeros, regardless of `rows`.
struct RawBatch {
  kj::ArrayPtr<const kj::byte> images;  // N×C×H×W, those of the rows; empty if images are kept
  kj::ArrayPtr<const RawRow> rows;      // N; `image` counts only if images are kept
  kj::ArrayPtr<const int32_t> labels;   // N; see Program::setBatch()
  kj::ArrayPtr<const uint64_t> draws;   // N or none; see Program::setBatch()
};

// A program that takes raw batches. Called by the program's thread.
class RawInput {
public:
  // Returns zeroed memory of the host from which a batch reaches the program fastest. The program
  // must outlive the memory.
  virtual kj::Array<kj::byte> allocate(size_t bytes) = 0;
  // Copies images that the program keeps, N×C×H×W, from number `first` on. The copies are complete
  // when the call returns.
  virtual void keep(uint64_t first, kj::ArrayPtr<const kj::byte> images) = 0;

  // Sets the batch of the next forward(…, 0). The caller may do so once it has called forward() for
  // all segments of the previous step: the batch may be copied while the program still works on
  // that step. `batch.images` must stay unchanged until awaitBatch(). The rest is copied.
  virtual void setBatch(const RawBatch& batch) = 0;
  virtual void awaitBatch() = 0;
};

// A program that updates its parameters itself, on its own device. No gradient leaves the device.
class Trainer {
public:
  // Does a step with the batch that was set: forward, backward, and update number `number`, counted
  // from 0 without gaps. The work may be done later. result() waits for it. Until then the caller
  // must not write to parameters() and statistics().
  virtual void step(uint64_t number) = 0;
  // Returns the sums over all batches since restartSums(), including those of validation. Waits for
  // the work. The sums do not depend on when or how often they are read.
  virtual BatchResult runningSums() = 0;
  virtual void restartSums() = 0;
};

// A graph lowered for one batch size on one device. The program allocates all its memory when it is
// made, and none during a step. Libraries that it calls may allocate memory.
//
// Called by one thread. One step:
//   setBatch, forward(TRAIN, 0 … S-1), result, backward(S-1 … 0).
// Before forward(phase, s) the parameters of segment s must be in place. backward(s) may return
// before its work is done. Once hasGradients(s) returns true, the gradients of segment s are in
// place until the next backward(s). From then until the next forward of s, the program does not
// read the parameters of s, so any thread may overwrite them.
class Program {
public:
  virtual ~Program() noexcept(false) = default;

  // The flat arrays (see Graph), owned by the program unless its options say otherwise. gradients()
  // holds sums over the batch. It does not wait for work.
  virtual kj::ArrayPtr<float> parameters() = 0;
  virtual kj::ArrayPtr<float> gradients() = 0;
  virtual kj::ArrayPtr<float> statistics() = 0;

  // Makes the program update its parameters itself from now on. May be called once. Afterwards
  // step() trains, and forward() is for validation only. Returns null if the program cannot, as on
  // CPUs and in groups of devices. `rules` must outlive the program. A lookahead draws back moving
  // statistics too.
  //
  // From then on, parameters() and statistics() first fetch newer values from the device. The next
  // step() or forward(0) begins with their content, including values that the caller wrote.
  virtual kj::Maybe<Trainer&> trainBy(const ValueRules& rules) { return nullptr; }

  // Sets N×C×H×W pixels, N labels, and N numbers that decide which elements dropout removes from
  // each row. A row with label -1 does not count. The same number removes the same elements.
  // `draws` may be empty for a graph without dropout, and for validation. All three must stay
  // unchanged until the last backward of the step.
  virtual void setBatch(kj::ArrayPtr<const float> pixels, kj::ArrayPtr<const int32_t> labels,
      kj::ArrayPtr<const uint64_t> draws) = 0;
  // Makes the program take raw batches from now on, in place of floats. May be called once, before
  // the first batch and before trainBy(). Returns null if the program cannot, as on CPUs, where the
  // readers augment. Copies what `images` points to. If `kept` is above 0, the program keeps that
  // many images, and batches bring none. Throws if those images do not fit.
  virtual kj::Maybe<RawInput&> takeRaw(const RawImages& images, uint64_t kept = 0) {
    return nullptr;
  }
  virtual void forward(Phase phase, uint segment) = 0;
  virtual void backward(uint segment) = 0;
  // Whether the work of the last backward(segment) is done. awaitGradients() waits until it is. A
  // program whose backward() returns only after its work is done need not override them.
  virtual bool hasGradients(uint segment) { return true; }
  virtual void awaitGradients(uint segment) {}
  // The result of the last forward pass. Throws if there was none, as logits() does.
  virtual BatchResult result() const = 0;

  // Visits the state that the program keeps from step to step, to save and to restore it: its
  // moving statistics, and if it updates its parameters itself, the parameters and the state of the
  // updates. Waits for the work. To restore it, call it before the first step.
  virtual void visitState(configs::StateVisitor& visitor) {
    visitor.floats("program.statistics", statistics());
  }

  // The logits of the last forward pass, N×classes, for tests and comparisons.
  virtual kj::ArrayPtr<const float> logits() = 0;
  // The bytes of all arrays of the program, for `explain`.
  virtual uint64_t memory_bytes() const = 0;
};

// Does the backward part of a step, from the last segment to the first. Calls done(segment) as soon
// as the gradients of that segment are in place, while the work on earlier segments continues.
inline void backwardAll(
    Program& program, uint segments, kj::FunctionParam<void(uint segment)> done) {
  uint next = segments;
  for (uint s = segments; s-- > 0;) {
    program.backward(s);
    while (next > s && program.hasGradients(next - 1)) done(--next);
  }
  while (next > 0) {
    program.awaitGradients(--next);
    done(next);
  }
}

// What a program calculates with.
//   FP32  float32 throughout.
//   TF32  on GPUs: as FP32, but the factors within convolutions and dense layers are rounded to 11
//         bits.
//   BF16  Values (activations and their gradients) are bfloat16. They are rounded to nearest, ties
//         to even, also at each addition of a residual sum and of the gradients of several readers.
//         So are the weights of convolutions that run on bfloat16 instructions, and with AMX those
//         of dense layers. Flat arrays, sums within an op, batch norms, other dense layers, the
//         logits of a dense layer and the loss stay float32.
//   FP16  on GPUs: as BF16, with IEEE 754 halves. Their range is small, so the backward pass
//         computes the gradient of ProgramOptions::lossScale times the mean loss of the batch. The
//         gradients of parameters are converted back to sums at the end.
//   AUTO  on processors: the result of automaticPrecision() in nn/cpu/cpu.h.
enum class Precision { FP32, TF32, BF16, FP16, AUTO };

// The settings of a program besides the graph.
struct ProgramOptions {
  uint batchSize;                         // rows of a batch
  uint threads = 1;                       // threads that share the images of a batch
  kj::Maybe<Profile&> profile = nullptr;  // where to record the time of each node
  Precision precision = Precision::FP32;
  float lossScale = 1;         // of FP16
  bool deterministic = false;  // on GPUs: use only algorithms that give the same bits every time
  // The memory of gradients(): memory of the caller that outlives the program, as many floats as
  // the graph has parameters. Empty: the program's own memory.
  kj::ArrayPtr<float> gradients = nullptr;
  uint device = 0;  // which of several GPUs
  // The program makes only forward passes of VALIDATE, and takes less memory. On a processor it has
  // no gradients().
  bool validatesOnly = false;
};

// A row of the table of backends.
struct Backend {
  const char* name;
  const char* doc;
  // The graph must outlive the program.
  kj::Own<Program> (*lower)(const Graph& graph, ProgramOptions options);
  // Lowers for several devices of this kind, by their numbers. They share the rows of a batch as
  // nn/device_group.h describes. Null if the backend has nothing better than a DeviceGroup.
  kj::Own<Program> (*lowerGroup)(
      const Graph& graph, kj::ArrayPtr<const uint> devices, ProgramOptions options) = nullptr;
};

// A device of a backend, for which a program can be lowered.
struct Target {
  const Backend* backend;
  uint device = 0;
};

}  // namespace nn
