#include "nn/cpu/direct_convolution.h"

#include <string.h>

#include "nn/cpu/direct_primitives.h"

namespace nn::cpu {
namespace {

class Direct final: public Convolution {
public:
  Direct(ConvolutionShape shape, ConvolutionArrays arrays, dnnl_engine_t engine)
      : arrays(arrays), primitives(shape, engine) {}

  bool isFast() const { return primitives.areFast(); }

  InputLayouts inputLayouts() const override { return primitives.inputs; }
  kj::Own<Task> forward(Place x, Place y, Buffer& scratch) override;
  kj::Own<Task> backwardWeights(Place x, Place dy, Buffer& scratch) override;
  kj::Own<Task> backwardData(Place dy, Place dx, Write write, Buffer& scratch) override;
  bool canAdd() const override { return primitives.canAdd(); }
  kj::Own<BatchTask> packForward(uint turn) override;
  kj::Own<BatchTask> packBackward(uint turn) override;
  kj::Own<BatchTask> sumGradient(uint turn) override;
  kj::Array<kj::String> implementations() const override {
    return KJ_MAP(name, primitives.names()) {
      return kj::str(name);
    };
  }

private:
  const ConvolutionArrays arrays;
  DirectPrimitives primitives;

  // The size of the sums of a lane. Those of the bias follow those of the weights.
  size_t sumFloats() const { return primitives.gradientFloats() + primitives.biasFloats(); }

  class ForwardTask;
  class BackwardDataTask;
  class BackwardWeightsTask;
};

class Direct::ForwardTask final: public Task {
public:
  ForwardTask(Direct& direct, Place x, Place y, Buffer& scratch)
      : direct(direct), x(x), y(y), scratch(scratch) {}

  void prepare(kj::ArrayPtr<const uint> images) override {
    auto& primitives = direct.primitives;
    for (uint n: images) sizes.add(n, primitives.forward(n, scratch.values));
    // The bias follows the weights.
    direct.arrays.forwardWeights->values = primitives.forwardFloats() + primitives.biasFloats();
  }

  void run(const Step& step, const Chunk& chunk) override {
    auto& memory = step.memory;
    float* weights = memory.floatsOf(*direct.arrays.forwardWeights, 0);
    sizes.of(chunk.images)
        .run(step, chunk.lane,
            {memory.at(x, chunk), weights, memory.at(y, chunk), memory.of(scratch, chunk.lane),
                weights + direct.primitives.forwardFloats()});
  }

private:
  Direct& direct;
  Place x, y;
  Buffer& scratch;
  Sizes sizes;
};

class Direct::BackwardDataTask final: public Task {
public:
  BackwardDataTask(Direct& direct, Place dy, Place dx, Write write, Buffer& scratch)
      : direct(direct), dy(dy), dx(dx), write(write), scratch(scratch) {}

  void prepare(kj::ArrayPtr<const uint> images) override {
    auto& primitives = direct.primitives;
    for (uint n: images) sizes.add(n, primitives.backwardData(n, write, scratch.values));
    direct.arrays.backwardWeights->values = primitives.backwardFloats();
  }

  void run(const Step& step, const Chunk& chunk) override {
    auto& memory = step.memory;
    sizes.of(chunk.images)
        .run(step, chunk.lane,
            {memory.at(dy, chunk), memory.of(*direct.arrays.backwardWeights, 0),
                memory.at(dx, chunk), memory.of(scratch, chunk.lane)});
  }

private:
  Direct& direct;
  Place dy, dx;
  Write write;
  Buffer& scratch;
  Sizes sizes;
};

class Direct::BackwardWeightsTask final: public Task {
public:
  BackwardWeightsTask(Direct& direct, Place x, Place dy, Buffer& scratch)
      : direct(direct), x(x), dy(dy), scratch(scratch) {}

  void prepare(kj::ArrayPtr<const uint> images) override {
    for (uint n: images) sizes.add(n, direct.primitives.backwardWeights(n, padFloats));
    // After the primitive's scratch memory: a chunk's gradient, before it is added to the sum.
    padFloats = (padFloats + 15) / 16 * 16;
    scratch.values = padFloats + direct.sumFloats();
    direct.arrays.sums->values = direct.primitives.shape.lanes * direct.sumFloats();
  }

  void run(const Step& step, const Chunk& chunk) override {
    auto& memory = step.memory;
    float* pad = memory.floatsOf(scratch, chunk.lane);
    float* sum = memory.floatsOf(*direct.arrays.sums, 0) + chunk.lane * direct.sumFloats();
    float* weights = chunk.opening ? sum : pad + padFloats;
    sizes.of(chunk.images)
        .run(step, chunk.lane,
            {memory.at(x, chunk), memory.at(dy, chunk), weights, pad,
                weights + direct.primitives.gradientFloats()});
    if (!chunk.opening) step.kernels.floats.copy(weights, sum, Write::ADD, direct.sumFloats());
  }

private:
  Direct& direct;
  Place x, dy;
  Buffer& scratch;
  Sizes sizes;
  size_t padFloats = 0;
};

kj::Own<Task> Direct::forward(Place x, Place y, Buffer& scratch) {
  return kj::heap<ForwardTask>(*this, x, y, scratch);
}

kj::Own<Task> Direct::backwardWeights(Place x, Place dy, Buffer& scratch) {
  return kj::heap<BackwardWeightsTask>(*this, x, dy, scratch);
}

kj::Own<Task> Direct::backwardData(Place dy, Place dx, Write write, Buffer& scratch) {
  return kj::heap<BackwardDataTask>(*this, dy, dx, write, scratch);
}

kj::Own<BatchTask> Direct::packForward(uint turn) {
  auto pack = [this, primitive = primitives.packForward()](const Step& step, uint lane) mutable {
    float* packed = step.memory.floatsOf(*arrays.forwardWeights, 0);
    primitive.run(step, lane, {arrays.weightsIn(step.memory), packed});
    if (!primitives.shape.addsBias) return;
    float* bias = packed + primitives.forwardFloats();
    size_t count = primitives.shape.out.channels;
    memcpy(bias, arrays.biasIn(step.memory, primitives.plainFloats()), count * sizeof(float));
    memset(bias + count, 0, (primitives.biasFloats() - count) * sizeof(float));
  };
  return newWholeTask(turn, kj::mv(pack));
}

kj::Own<BatchTask> Direct::packBackward(uint turn) {
  auto pack = [this, primitive = primitives.packBackward()](const Step& step, uint lane) mutable {
    primitive.run(step, lane, {arrays.weights, step.memory.of(*arrays.backwardWeights, 0)});
  };
  return newWholeTask(turn, kj::mv(pack));
}

kj::Own<BatchTask> Direct::sumGradient(uint turn) {
  auto sum = [this, primitive = primitives.unpackGradient()](const Step& step, uint lane) mutable {
    auto weights =
        sumLanes(step, primitives.shape, arrays, primitives.gradientFloats(), sumFloats());
    primitive.run(step, lane, {weights, arrays.weightsGradient});
  };
  return newWholeTask(turn, kj::mv(sum));
}

}  // namespace

kj::Maybe<kj::Own<Convolution>> makeDirectConvolution(
    ConvolutionShape shape, ConvolutionArrays arrays, dnnl_engine_t engine) {
  auto direct = kj::heap<Direct>(shape, arrays, engine);
  if (!direct->isFast()) return nullptr;
  return kj::Own<Convolution>(kj::mv(direct));
}

}  // namespace nn::cpu
