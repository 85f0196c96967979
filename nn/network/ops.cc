#include "nn/network/ops.h"

#include <kj/debug.h>

namespace nn {
namespace {

// The largest size of one image's tensor, or of one weight, so that indices fit in 31 bits.
constexpr uint64_t VALUES_MAX = (uint64_t(1) << 31) - 1;

uint64_t slidingSide(uint64_t side, uint kernel, uint stride, uint pad) {
  return (side + 2 * uint64_t(pad) - kernel) / stride + 1;
}

uint64_t poolSide(const Pool& pool, uint64_t side) {
  if (pool.rounding == Pool::FLOOR) return slidingSide(side, pool.kernel, pool.stride, pool.pad);
  uint64_t padded = side + 2 * uint64_t(pool.pad);
  return kj::min(padded - pool.kernel + pool.stride - 1, padded - 1) / pool.stride + 1;
}

kj::Maybe<kj::String> kernelMisfit(uint kernel, uint pad, Shape x) {
  uint64_t smaller = kj::min(x.height, x.width) + 2 * uint64_t(pad);
  if (kernel <= smaller) return nullptr;
  return kj::str("kernel ", kernel, " does not fit in ", x.height, "×", x.width, " with pad ", pad);
}

kj::Maybe<kj::String> tooLarge(kj::StringPtr what, uint64_t a, uint64_t b, uint64_t c) {
  // Multiplied in double: three factors of 32 bits overflow 64.
  if (double(a) * double(b) * double(c) <= double(VALUES_MAX)) return nullptr;
  return kj::str(what, " of ", a, "×", b, "×", c, " is too large: at most ", VALUES_MAX, " values");
}

kj::Maybe<kj::String> convMisfit(const Conv2d& conv, Shape x) {
  KJ_IF_MAYBE(m, kernelMisfit(conv.kernel, conv.pad, x)) return kj::mv(*m);
  KJ_IF_MAYBE(m,
      tooLarge("a weight", conv.filters, x.channels, uint64_t(conv.kernel) * conv.kernel))
    return kj::mv(*m);
  return tooLarge("an output", conv.filters,
      slidingSide(x.height, conv.kernel, conv.stride, conv.pad),
      slidingSide(x.width, conv.kernel, conv.stride, conv.pad));
}

// The CPU stores the place of a maximum in its window, kernel · row + column, in 16 bits.
constexpr uint MAX_POOL_SIDE = 255;

kj::Maybe<kj::String> poolMisfit(const Pool& pool, Shape x) {
  if (pool.function == Pool::MAX && pool.kernel > MAX_POOL_SIDE) {
    return kj::str("a max pool's window has at most ", MAX_POOL_SIDE, " rows, and not ",
        pool.kernel, ": put another pool in front of it");
  }
  KJ_IF_MAYBE(m, kernelMisfit(pool.kernel, pool.pad, x)) return kj::mv(*m);
  // The last window begins at (side - 1) · stride - pad; a stride beyond the kernel may step over
  // the edge.
  auto beginsOutside = [&](uint side) {
    return (poolSide(pool, side) - 1) * pool.stride >= side + uint64_t(pool.pad);
  };
  if (pool.pad >= pool.kernel || beginsOutside(x.height) || beginsOutside(x.width)) {
    return kj::str("with kernel ", pool.kernel, ", stride ", pool.stride, " and pad ", pool.pad,
        " a window lies outside of the ", x.height, "×", x.width, " input");
  }
  // Padding may make the output larger than the input.
  return tooLarge("an output", x.channels, poolSide(pool, x.height), poolSide(pool, x.width));
}

kj::Maybe<kj::String> concatMisfit(kj::ArrayPtr<const Shape> inputs) {
  uint64_t channels = 0;
  for (auto& x: inputs) {
    if (x.height != inputs[0].height || x.width != inputs[0].width) {
      return kj::str("branches of ", inputs[0], " and ", x,
          " cannot be concatenated: their heights and widths must be equal");
    }
    channels += x.channels;
  }
  return tooLarge("an output", channels, inputs[0].height, inputs[0].width);
}

kj::Maybe<kj::String> addMisfit(kj::ArrayPtr<const Shape> inputs) {
  for (auto& x: inputs) {
    if (x != inputs[0]) {
      return kj::str(
          "branches of ", inputs[0], " and ", x, " cannot be added: their shapes must be equal");
    }
  }
  return nullptr;
}

kj::Maybe<kj::String> lossMisfit(Shape x) {
  if (x.height == 1 && x.width == 1) return nullptr;
  return kj::str("the loss needs one number per class, but the last layer gives ", x);
}

}  // namespace

kj::String KJ_STRINGIFY(const Shape& shape) {
  return kj::str(shape.channels, "×", shape.height, "×", shape.width);
}

kj::StringPtr nameOf(const Op& op) {
  KJ_SWITCH_ONEOF(op) {
    KJ_CASE_ONEOF(_, Input) return "input";
    KJ_CASE_ONEOF(_, Conv2d) return "conv2d";
    KJ_CASE_ONEOF(_, Dense) return "dense";
    KJ_CASE_ONEOF(_, BatchNorm) return "batch_norm";
    KJ_CASE_ONEOF(_, Activation) return "activation";
    KJ_CASE_ONEOF(_, Scale) return "scale";
    KJ_CASE_ONEOF(_, Dropout) return "dropout";
    KJ_CASE_ONEOF(_, Pool) return "pool";
    KJ_CASE_ONEOF(_, Add) return "add";
    KJ_CASE_ONEOF(_, Concat) return "concat";
    KJ_CASE_ONEOF(_, SoftmaxCrossEntropy) return "softmax_cross_entropy";
  }
  KJ_UNREACHABLE;
}

kj::Maybe<kj::String> misfit(const Op& op, kj::ArrayPtr<const Shape> inputs) {
  KJ_SWITCH_ONEOF(op) {
    KJ_CASE_ONEOF(_, Input) return nullptr;
    KJ_CASE_ONEOF(conv, Conv2d) return convMisfit(conv, inputs[0]);
    KJ_CASE_ONEOF(dense, Dense) return tooLarge("a weight", dense.units, inputs[0].size(), 1);
    KJ_CASE_ONEOF(_, BatchNorm) return nullptr;
    KJ_CASE_ONEOF(_, Activation) return nullptr;
    KJ_CASE_ONEOF(_, Scale) return nullptr;
    KJ_CASE_ONEOF(_, Dropout) return nullptr;
    KJ_CASE_ONEOF(pool, Pool) return poolMisfit(pool, inputs[0]);
    KJ_CASE_ONEOF(_, Add) return addMisfit(inputs);
    KJ_CASE_ONEOF(_, Concat) return concatMisfit(inputs);
    KJ_CASE_ONEOF(_, SoftmaxCrossEntropy) return lossMisfit(inputs[0]);
  }
  KJ_UNREACHABLE;
}

Shape inferShape(const Op& op, kj::ArrayPtr<const Shape> inputs) {
  KJ_REQUIRE(!op.is<Input>(), "an input's shape is given, not inferred");
  KJ_IF_MAYBE(sentence, misfit(op, inputs)) KJ_FAIL_REQUIRE(*sentence);
  Shape x = inputs[0];
  KJ_SWITCH_ONEOF(op) {
    KJ_CASE_ONEOF(_, Input) return x;
    KJ_CASE_ONEOF(conv, Conv2d) {
      return {conv.filters, uint(slidingSide(x.height, conv.kernel, conv.stride, conv.pad)),
          uint(slidingSide(x.width, conv.kernel, conv.stride, conv.pad))};
    }
    KJ_CASE_ONEOF(dense, Dense) return {dense.units};
    KJ_CASE_ONEOF(_, BatchNorm) return x;
    KJ_CASE_ONEOF(_, Activation) return x;
    KJ_CASE_ONEOF(_, Scale) return x;
    KJ_CASE_ONEOF(_, Dropout) return x;
    KJ_CASE_ONEOF(pool, Pool) {
      return {x.channels, uint(poolSide(pool, x.height)), uint(poolSide(pool, x.width))};
    }
    KJ_CASE_ONEOF(_, Add) return x;
    KJ_CASE_ONEOF(_, Concat) {
      uint channels = 0;
      for (auto& input: inputs) channels += input.channels;
      return {channels, x.height, x.width};
    }
    KJ_CASE_ONEOF(_, SoftmaxCrossEntropy) return {1};
  }
  KJ_UNREACHABLE;
}

uint64_t forwardFlops(const Op& op, kj::ArrayPtr<const Shape> inputs) {
  if (op.is<Input>()) return 0;
  Shape x = inputs[0];
  uint64_t outputs = inferShape(op, inputs).size();
  KJ_SWITCH_ONEOF(op) {
    KJ_CASE_ONEOF(_, Input) return 0;
    KJ_CASE_ONEOF(conv, Conv2d) return 2 * outputs * x.channels * conv.kernel * conv.kernel;
    KJ_CASE_ONEOF(dense, Dense) return 2 * uint64_t(dense.units) * x.size();
    // Subtract, square, add for the statistics, then multiply and add.
    KJ_CASE_ONEOF(_, BatchNorm) return 5 * outputs;
    KJ_CASE_ONEOF(_, Activation) return outputs;
    KJ_CASE_ONEOF(_, Scale) return outputs;
    KJ_CASE_ONEOF(_, Dropout) return outputs;
    KJ_CASE_ONEOF(pool, Pool) return outputs * pool.kernel * pool.kernel;
    KJ_CASE_ONEOF(_, Add) return outputs * (inputs.size() - 1);
    KJ_CASE_ONEOF(_, Concat) return 0;
    // Maximum, subtract, exponential, sum, divide.
    KJ_CASE_ONEOF(_, SoftmaxCrossEntropy) return 5 * x.size();
  }
  KJ_UNREACHABLE;
}

}  // namespace nn
