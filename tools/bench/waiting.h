// tools/bench/waiting.h: a program that only waits, as long as a real one would compute.
#pragma once

#include "nn/program.h"

namespace tools {

using kj::uint;

// Each segment's forward and backward take their share of a step's time, by their FLOPs; what a
// wait took too long, the next ones make up for. Parameters begin as zeros. Gradients are normal
// numbers of its own, the same in every step.
class WaitingProgram final: public nn::Program {
public:
  // `graph` must outlive it, and so must `gradients`, if there are any: see nn::ProgramOptions.
  // Another `seed`, other gradients.
  WaitingProgram(const nn::Graph& graph, uint seed, kj::ArrayPtr<float> gradients);

  // Of all segments' forward and backward together, from now on; at first 0.
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
  // Of a step's time.
  struct Share {
    double forward = 0;
    double backward = 0;
  };

  void wait(double share);

  kj::Array<float> values;
  kj::Array<float> own;  // the gradients, if they lie nowhere else
  kj::ArrayPtr<float> pushed;
  kj::Array<Share> shares;  // of the segments
  uint64_t step_ns = 0;
  uint64_t late_ns = 0;  // waited too long
};

}  // namespace tools
