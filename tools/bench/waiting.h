// tools/bench/waiting.h: a program that only waits for as long as a real one would compute.
#pragma once

#include "nn/program.h"
#include "tools/bench/ops.h"

namespace tools {

using kj::uint;

// Each segment's forward and backward take their share of a step's time, in proportion to their
// FLOPs. If a wait took too long, the next ones are shorter. Parameters begin as zeros. Gradients
// are normal random numbers, the same in every step.
class WaitingProgram final: public nn::Program {
public:
  // `graph` must outlive this object, and so must `gradients`, if there are any: see
  // nn::ProgramOptions. Another `seed` gives other gradients.
  WaitingProgram(const nn::Graph& graph, uint seed, kj::ArrayPtr<float> gradients);

  // Sets the time of all segments' forward and backward together, from now on. It is 0 at first.
  void setStep_ns(uint64_t ns) { step_ns = ns; }

  kj::ArrayPtr<float> parameters() override { return values; }
  kj::ArrayPtr<float> gradients() override { return pushed; }
  kj::ArrayPtr<float> statistics() override { return nullptr; }
  void setBatch(kj::ArrayPtr<const float>, kj::ArrayPtr<const int32_t>,
      kj::ArrayPtr<const uint64_t>) override {}
  void forward(nn::Phase, uint segment) override { wait(shares[segment].forward); }
  void backward(uint segment) override { wait(shares[segment].backward); }
  nn::BatchResult result() const override { return {}; }
  kj::ArrayPtr<const float> logits() override { return nullptr; }
  uint64_t memory_bytes() const override { return 2 * values.asBytes().size(); }

private:
  void wait(double share);

  kj::Array<float> values;
  kj::Array<float> own;  // the gradients, if the caller has no memory for them
  kj::ArrayPtr<float> pushed;
  kj::Array<NodeFlops> shares;  // of a step's time, one per segment
  uint64_t step_ns = 0;
  uint64_t late_ns = 0;  // how much earlier waits took too long
};

}  // namespace tools
