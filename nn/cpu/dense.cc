#include "nn/cpu/dense.h"

#include <string.h>

#include "nn/cpu/sgemm.h"

namespace nn::cpu {
namespace {

class DenseForward final: public Task {
public:
  DenseForward(const DenseLayer& layer, Place x, Place y): layer(layer), x(x), y(y) {}

  void run(const Step& step, const Chunk& chunk) override {
    float* row = step.memory.floatsAt(y, chunk);
    multiply(chunk.images, layer.units, layer.inputs,
        {'N', step.memory.floatsAt(x, chunk), x.stride()}, {'T', layer.weights, layer.inputs}, 0,
        row, y.stride());
    size_t rest = y.stride() - layer.units;
    for (uint n = 0; n < chunk.images; ++n, row += y.stride()) {
      if (layer.bias != nullptr) step.kernels.floats.copy(layer.bias, row, Write::ADD, layer.units);
      memset(row + layer.units, 0, rest * sizeof(float));
    }
  }

private:
  const DenseLayer& layer;
  Place x, y;
};

class DenseBackwardWeights final: public Task {
public:
  DenseBackwardWeights(const DenseLayer& layer, Place x, Place dy): layer(layer), x(x), dy(dy) {}

  void run(const Step& step, const Chunk& chunk) override {
    float* sum = chunk.lane == 0
                     ? layer.gradient
                     : step.memory.floatsOf(*layer.sums, 0) + (chunk.lane - 1) * layer.parameters();
    const float* gradient = step.memory.floatsAt(dy, chunk);
    multiply(layer.units, layer.inputs, chunk.images, {'T', gradient, dy.stride()},
        {'N', step.memory.floatsAt(x, chunk), x.stride()}, chunk.opening ? 0 : 1, sum,
        layer.inputs);
    if (layer.bias == nullptr) return;
    float* bias = sum + layer.units * layer.inputs;
    for (uint n = 0; n < chunk.images; ++n, gradient += dy.stride()) {
      Write write = chunk.opening && n == 0 ? Write::SET : Write::ADD;
      step.kernels.floats.copy(gradient, bias, write, layer.units);
    }
  }

private:
  const DenseLayer& layer;
  Place x, dy;
};

class DenseBackwardData final: public Task {
public:
  DenseBackwardData(const DenseLayer& layer, Place dy, Place dx, Write write)
      : layer(layer), dy(dy), dx(dx), write(write) {}

  void run(const Step& step, const Chunk& chunk) override {
    float* row = step.memory.floatsAt(dx, chunk);
    multiply(chunk.images, layer.inputs, layer.units,
        {'N', step.memory.floatsAt(dy, chunk), dy.stride()}, {'N', layer.weights, layer.inputs},
        write == Write::ADD ? 1 : 0, row, dx.stride());
    if (write == Write::ADD) return;
    size_t rest = dx.stride() - layer.inputs;
    for (uint n = 0; n < chunk.images; ++n, row += dx.stride()) {
      memset(row + layer.inputs, 0, rest * sizeof(float));
    }
  }

private:
  const DenseLayer& layer;
  Place dy, dx;
  Write write;
};

class SumGradient final: public BatchTask {
public:
  explicit SumGradient(const DenseLayer& layer): layer(layer) {}

  void run(const Step& step, uint part, uint parts) override {
    size_t count = layer.parameters();
    size_t begin = count * part / parts, end = count * (part + 1) / parts;
    for (uint lane = 1; lane < parts; ++lane) {
      const float* sum = step.memory.floatsOf(*layer.sums, 0) + (lane - 1) * count;
      step.kernels.floats.copy(sum + begin, layer.gradient + begin, Write::ADD, end - begin);
    }
  }

private:
  const DenseLayer& layer;
};

}  // namespace

kj::Own<Task> denseForward(const DenseLayer& layer, Place x, Place y) {
  return kj::heap<DenseForward>(layer, x, y);
}
kj::Own<Task> denseBackwardWeights(const DenseLayer& layer, Place x, Place dy) {
  return kj::heap<DenseBackwardWeights>(layer, x, dy);
}
kj::Own<Task> denseBackwardData(const DenseLayer& layer, Place dy, Place dx, Write write) {
  return kj::heap<DenseBackwardData>(layer, dy, dx, write);
}
kj::Own<BatchTask> sumGradient(const DenseLayer& layer) {
  return kj::heap<SumGradient>(layer);
}

}  // namespace nn::cpu
