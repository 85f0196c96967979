#include "nn/cpu/dense.h"

#include <string.h>

#include "nn/cpu/sgemm.h"

namespace nn::cpu {

kj::Own<Task> denseForward(const DenseLayer& layer, Place x, Place y) {
  return newTask([&layer, x, y](const Step& step, const Chunk& chunk) {
    float* row = step.memory.floatsAt(y, chunk);
    multiply(chunk.images, layer.units, layer.inputs,
        {'N', step.memory.floatsAt(x, chunk), x.stride()}, {'T', layer.weights, layer.inputs}, 0,
        row, y.stride());
    size_t rest = y.stride() - layer.units;
    for (uint n = 0; n < chunk.images; ++n, row += y.stride()) {
      if (layer.bias != nullptr) step.kernels.floats.copy(layer.bias, row, Write::ADD, layer.units);
      memset(row + layer.units, 0, rest * sizeof(float));
    }
  });
}

kj::Own<Task> denseBackwardWeights(const DenseLayer& layer, Place x, Place dy) {
  return newTask([&layer, x, dy](const Step& step, const Chunk& chunk) {
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
  });
}

kj::Own<Task> denseBackwardData(const DenseLayer& layer, Place dy, Place dx, Write write) {
  return newTask([&layer, dy, dx, write](const Step& step, const Chunk& chunk) {
    float* row = step.memory.floatsAt(dx, chunk);
    multiply(chunk.images, layer.inputs, layer.units,
        {'N', step.memory.floatsAt(dy, chunk), dy.stride()}, {'N', layer.weights, layer.inputs},
        write == Write::ADD ? 1 : 0, row, dx.stride());
    if (write == Write::ADD) return;
    size_t rest = dx.stride() - layer.inputs;
    for (uint n = 0; n < chunk.images; ++n, row += dx.stride()) {
      memset(row + layer.inputs, 0, rest * sizeof(float));
    }
  });
}

kj::Own<BatchTask> sumGradient(const DenseLayer& layer) {
  return newBatchTask([&layer](const Step& step, uint part, uint parts) {
    size_t count = layer.parameters();
    size_t begin = count * part / parts, end = count * (part + 1) / parts;
    for (uint lane = 1; lane < parts; ++lane) {
      const float* sum = step.memory.floatsOf(*layer.sums, 0) + (lane - 1) * count;
      step.kernels.floats.copy(sum + begin, layer.gradient + begin, Write::ADD, end - begin);
    }
  });
}

}  // namespace nn::cpu
