// nn/program.h: what a backend makes of a graph: memory, and segments that run forward and
// backward.
#pragma once

#include <kj/array.h>
#include <kj/function.h>
#include <kj/memory.h>

#include "nn/network/graph.h"
#include "nn/profile.h"
#include "nn/raw_batch.h"

namespace nn {

// Training uses batch statistics and updates the moving ones; validation uses the moving ones and
// has no backward.
enum class Phase { TRAIN, VALIDATE };

// Sums over the rows of one batch whose label is not -1.
struct BatchResult {
  double lossSum = 0;
  uint64_t correct = 0;  // rows whose largest logit is the label's (the first of equals)
  uint64_t images = 0;
};

class ValueRules;  // see value_rules.h

// A program that updates its parameters itself, where it has them: no gradient leaves it.
class Trainer {
public:
  // A step with the batch that was set: forward, backward, and update number `number` (from 0, one
  // after another). Its work may be done later; result() waits for it, and until then what
  // parameters() and statistics() hold must stay as it is.
  virtual void step(uint64_t number) = 0;
  // Sums over all batches since restartSums(), those of validation included; waits for them. When
  // they are looked at changes no bit of them.
  virtual BatchResult runningSums() = 0;
  virtual void restartSums() = 0;
};

// A graph lowered for one batch size on one device. All memory is laid out when it is made: a step
// allocates nothing of ours (what a library does inside is its own).
//
// Called by one thread. One step:
//   setBatch, forward(TRAIN, 0 … S-1), result, backward(S-1 … 0).
// Before forward(phase, s) the parameters of segment s must be in place. backward(s) may return
// before its work is done: once hasGradients(s), the gradients of segment s are in place until the
// next backward(s), and its parameters are not read before the next forward of s, so they may be
// overwritten then, also by another thread.
class Program {
public:
  virtual ~Program() noexcept(false) = default;

  // The flat arrays (see Graph), owned by the program unless its options say otherwise. gradients()
  // holds sums over the batch; it waits for none.
  virtual kj::ArrayPtr<float> parameters() = 0;
  virtual kj::ArrayPtr<float> gradients() = 0;
  virtual kj::ArrayPtr<float> statistics() = 0;

  // Has the program update its parameters itself from now on; at most once. From then on step() is
  // how it trains: forward() is for validation. Null if it cannot, as on CPUs, where the host's
  // arrays are the program's. `rules` must outlive it; moving statistics are drawn back too.
  //
  // parameters() and statistics() fetch what is newer elsewhere; what they hold at the next step()
  // or forward(0) is what that begins with.
  virtual kj::Maybe<Trainer&> trainBy(const ValueRules& rules) { return nullptr; }

  // N×C×H×W pixels, N labels (-1 = the row counts nothing), and N numbers that decide what dropout
  // takes away of each row: the same number, the same elements. A graph without dropout, and a
  // batch for validation, need none (an empty array). Must stay unchanged until the step's last
  // backward.
  virtual void setBatch(kj::ArrayPtr<const float> pixels, kj::ArrayPtr<const int32_t> labels,
      kj::ArrayPtr<const uint64_t> draws) = 0;
  // Has the program take raw batches from now on, and none of floats; at most once, before its
  // first batch and before trainBy(). Null if it cannot, as on CPUs, where whoever reads augments.
  // `images` is copied. Throws if those that are to be kept do not fit.
  virtual kj::Maybe<RawInput&> takeRaw(const RawImages& images) { return nullptr; }
  virtual void forward(Phase phase, uint segment) = 0;
  virtual void backward(uint segment) = 0;
  // Whether the work of the last backward(segment) is done; awaitGradients() waits until it is.
  // Programs whose work is done when it is asked for have nothing to add.
  virtual bool hasGradients(uint segment) { return true; }
  virtual void awaitGradients(uint segment) {}
  // Of the last forward of all segments; there must have been one, here and for the logits.
  virtual BatchResult result() const = 0;

  // The logits of the last forward, N×classes, in plain order: for tests and comparisons.
  virtual kj::ArrayPtr<const float> logits() = 0;
  // Bytes of all its arrays, for `explain`.
  virtual uint64_t memory_bytes() const = 0;
};

// The backward part of a step: from the last segment to the first, calls done(segment) when its
// gradients are in place, while the work on those before it is under way.
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

// What a program calculates with. FP32: float32 alone. TF32, on GPUs: the same, but factors within
// convolutions and dense layers are rounded to 11 bits. BF16: values (activations and their
// gradients) are bfloat16, rounded to nearest, ties to even, at each addition of a residual sum or
// of gradients of several readers too; so are the weights of convolutions that run on instructions
// for it. Flat arrays, sums within an op, what batch norms and dense layers calculate, the logits
// of a dense layer and the loss stay float32. FP16, on GPUs: the same with halves of IEEE 754,
// whose range is small: what goes backward is the gradient of ProgramOptions::lossScale times the
// batch's mean loss, and those of parameters become sums at the end.
enum class Precision { FP32, TF32, BF16, FP16 };

struct ProgramOptions {
  uint batchSize;                         // rows of a batch
  uint threads = 1;                       // threads that share the images of a batch
  kj::Maybe<Profile&> profile = nullptr;  // where to note what each node takes
  Precision precision = Precision::FP32;
  float lossScale = 1;         // of FP16
  bool deterministic = false;  // on GPUs: only what gives the same bits every time
  // Where gradients() lies, as many floats as the graph has parameters: the caller's, and outlives
  // the program. Empty: the program's own.
  kj::ArrayPtr<float> gradients = nullptr;
  uint device = 0;  // which of several GPUs
};

// A row of the table of backends.
struct Backend {
  const char* name;
  const char* doc;
  // The graph must outlive the program.
  kj::Own<Program> (*lower)(const Graph& graph, ProgramOptions options);
  // For several devices of this kind, by their numbers, which share the rows of a batch as
  // nn/device_group.h says; null: it has no better way than that.
  kj::Own<Program> (*lowerGroup)(
      const Graph& graph, kj::ArrayPtr<const uint> devices, ProgramOptions options) = nullptr;
};

// What a program can be lowered for: which of those that a backend knows.
struct Target {
  const Backend* backend;
  uint device = 0;
};

}  // namespace nn
