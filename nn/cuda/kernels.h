// nn/cuda/kernels.h: the list of all our own kernels: what each of them computes, and its
// arguments. The code of the kernels is in kernel_bodies.h, for hosts and devices. Compilers for
// devices read this file: no KJ.
#pragma once

#include <array>
#include <variant>

#include "nn/cuda/element.h"
#include "nn/dropout.h"
#include "nn/optimizer/value_rule.h"
#include "nn/raw_images.h"

namespace nn::cuda {

// A batch in the memory of a device: N·H·W pixels, image by image and row by row. A pixel has
// `width` values, and pixels are `stride` values apart. The first `channels` values of a pixel are
// the tensor's. The others are zeros. Code that writes a pixel writes the zeros too, so that
// libraries may compute with them.
struct View {
  void* data = nullptr;
  uint32_t pixels = 0;    // of all images
  uint32_t channels = 0;  // of the tensor
  uint32_t width = 0;     // with the zeros; at most stride
  uint32_t stride = 0;
};

// Height and width of one image.
struct Plane {
  uint32_t height = 1;
  uint32_t width = 1;
};

// The weights of a convolution or a dense layer. The flat arrays hold them as O×I×H×W floats. The
// device also holds them as O'×H×W×I' values. O' is O, and I' is I, filled up with zeros. H×W is
// the size of the kernel. For a dense layer it is the plane of the input.
struct Filters {
  uint32_t outputs, inputs, plane;  // O, I, H·W
  uint32_t paddedOutputs, paddedInputs;
};

// The functions of nn::Activation, and no function.
enum class Function : uint8_t { NONE, RELU, TANH, SIGMOID, ELU, GELU };

// views() of a kernel are the batches that it moves: first the one that it writes, pack by pack,
// then those that it reads.

// ---- conversions between the arrays of the host and those of the device

// to = from, N×C×H×W floats.
struct ImportPixels {
  static constexpr const char* NAME = "import_pixels";
  Element element;
  const float* from;
  View to;
  Plane plane;
  std::array<View, 1> views() const { return {to}; }
};

// to = the rows, augmented according to `images`.
struct Augment {
  static constexpr const char* NAME = "augment";
  Element element;
  RawImages images;  // points to memory of the device
  const RawRow* rows;
  View to;
  Plane plane;
  std::array<View, 1> views() const { return {to}; }
};

// to = from, with zeros as padding.
struct ImportFilters {
  static constexpr const char* NAME = "import_filters";
  Element element;
  const float* from;
  void* to;
  Filters filters;
};

// to = factor · from, without the padding. `from` is a gradient.
struct ExportFilters {
  static constexpr const char* NAME = "export_filters";
  Element element;
  const void* from;
  float* to;
  Filters filters;
  float factor;
};

// to[n,k] = from, the logits as floats.
struct ExportRows {
  static constexpr const char* NAME = "export_rows";
  Element element;
  View from;
  float* to;
};

// ---- kernels that work element by element; y may be x

// y = f(x + bias). `bias` has `channels` floats, or is null.
struct Activate {
  static constexpr const char* NAME = "activate";
  Element element;
  Function function;
  View x;
  const float* bias;
  View y;
  std::array<View, 2> views() const { return {y, x}; }
};

// dx (+)= dy · f'(u), where u is what f was applied to. `from` is y, but for GELU it is u.
struct ActivateBackward {
  static constexpr const char* NAME = "activate_backward";
  Element element;
  Function function;
  View from;
  View dy;
  View dx;
  bool adds;
  std::array<View, 3> views() const { return {dx, dy, from}; }
};

// y (+)= factor · x.
struct ScaleBy {
  static constexpr const char* NAME = "scale_by";
  Element element;
  float factor;
  View x;
  View y;
  bool adds;
  std::array<View, 2> views() const { return {y, x}; }
};

// y (+)= x · m / (1 - rate), with one mask m of nn/dropout.h per row. Used forward and backward.
struct DropOut {
  static constexpr const char* NAME = "drop_out";
  Element element;
  const DropoutMask* masks;
  Plane plane;
  View x;
  View y;
  bool adds;
  std::array<View, 2> views() const { return {y, x}; }
};

// y = a + b.
struct AddUp {
  static constexpr const char* NAME = "add_up";
  Element element;
  View a;
  View b;
  View y;
  std::array<View, 3> views() const { return {y, a, b}; }
};

// ---- batch norm
//
// Sums over all pixels take two launches. In the first, each block sums its rows in a fixed order.
// It writes to `partial`, which has PARTIAL_ROWS rows of 2·width floats. The two sums of a channel
// are side by side. In the second launch, each block adds up the rows for some channels. Therefore
// the sums depend neither on scheduling nor on the number of multiprocessors.
constexpr uint32_t PARTIAL_ROWS = 256;

// Sums of x - k and (x - k)², where k is the first value of the channel. This avoids cancellation
// for channels far from 0.
struct SumMoments {
  static constexpr const char* NAME = "sum_moments";
  Element element;
  View x;
  float* partial;
};

// The numbers with which batch norm changes a channel, y = f(x · scale + shift), and which its
// gradient needs. Each array has `width` floats, which are 0 after the last channel.
struct NormArrays {
  float* scale;      // gamma / sqrt(variance + epsilon)
  float* shift;      // beta - mean · scale
  float* mean;       // of the batch
  float* deviation;  // 1 / sqrt(variance + epsilon)
};

// Computes mean and variance of the batch from the sums, updates the moving ones, and fills `to`.
struct FinishMoments {
  static constexpr const char* NAME = "finish_moments";
  Element element;
  View x;  // for the first value of each channel
  const float* partial;
  const float* gamma;  // null: 1
  const float* beta;
  const float* bias;  // not added to x, but part of the moving mean; null: none
  float* movingMean;
  float* movingVariance;
  float epsilon;
  float momentum;
  NormArrays to;
};

// For validation: computes only `scale` and `shift`, from the moving statistics.
struct FoldMoments {
  static constexpr const char* NAME = "fold_moments";
  uint32_t channels;
  uint32_t width;
  const float* gamma;  // null: 1
  const float* beta;
  const float* bias;  // as in FinishMoments
  const float* movingMean;
  const float* movingVariance;
  float epsilon;
  NormArrays to;
};

// y = f(x · scale + shift + residual). Without a residual, residual.data is null.
struct Normalize {
  static constexpr const char* NAME = "normalize";
  Element element;
  Function function;
  View x;
  const float* scale;
  const float* shift;
  View residual;
  View y;
  std::array<View, 3> views() const { return {y, x, residual}; }
};

// Let u = x · scale + shift + residual and g = dy · f'(u). Sums g, and g · (x - mean). Also writes
// g to `slope`, the gradient of the residual, unless slope.data is null.
struct SumSlopes {
  static constexpr const char* NAME = "sum_slopes";
  Element element;
  Function function;
  View x;
  View residual;
  View dy;
  NormArrays norm;
  float* partial;
  View slope;
  bool slopeAdds;
};

// From the sums of SumSlopes, writes two results. The flat gradients get dbeta and dgamma, times
// `factor`. `coefficients` gets a, b and c of dx = a · g + b · x + c: three arrays of `width`
// floats one after another.
struct FinishSlopes {
  static constexpr const char* NAME = "finish_slopes";
  uint32_t pixels;
  uint32_t channels;
  uint32_t width;
  const float* partial;
  NormArrays norm;
  float* dgamma;  // null if gamma is fixed: its gradient in the flat array stays 0
  float* dbeta;
  float factor;
  float* coefficients;
};

// dx (+)= a · g + b · x + c, with g as in SumSlopes.
struct NormalizeBackward {
  static constexpr const char* NAME = "normalize_backward";
  Element element;
  Function function;
  View x;
  View residual;
  View dy;
  NormArrays norm;
  const float* coefficients;
  View dx;
  bool adds;
  std::array<View, 4> views() const { return {dx, x, residual, dy}; }
};

// ---- biases

// Sums dy over all pixels. The second sum of each channel is 0.
struct SumColumns {
  static constexpr const char* NAME = "sum_columns";
  Element element;
  View dy;
  float* partial;
};

// to = factor · the first sum of each channel in `partial`.
struct FinishColumns {
  static constexpr const char* NAME = "finish_columns";
  uint32_t channels;
  uint32_t width;
  const float* partial;
  float* to;
  float factor;
};

// ---- pools: windows as nn::Pool has them

// The windows of a pool: from planes of `in` to planes of `out`.
struct Windows {
  Plane in;
  Plane out;
  uint32_t kernel, stride, pad;
};

// For the backward pass, writes the place of each maximum in its window, row · kernel + column, as
// one byte, in rows of y.channels. Windows are therefore at most nn::Pool::GPU_KERNEL_MAX wide.
// Writes no places if `places` is null.
struct PoolMax {
  static constexpr const char* NAME = "pool_max";
  Element element;
  Windows windows;
  View x;
  View y;
  uint8_t* places;
  std::array<View, 2> views() const { return {y, x}; }
};
// dx (+)= dy, at the places that PoolMax has written.
struct PoolMaxBackward {
  static constexpr const char* NAME = "pool_max_backward";
  Element element;
  Windows windows;
  View dy;
  const uint8_t* places;
  View dx;
  bool adds;
  std::array<View, 2> views() const { return {dx, dy}; }
};
// y = the sums of the windows / kernel².
struct PoolAverage {
  static constexpr const char* NAME = "pool_average";
  Element element;
  Windows windows;
  View x;
  View y;
  std::array<View, 2> views() const { return {y, x}; }
};
// dx (+)= dy / kernel², at all places of its window.
struct PoolAverageBackward {
  static constexpr const char* NAME = "pool_average_backward";
  Element element;
  Windows windows;
  View dy;
  View dx;
  bool adds;
  std::array<View, 2> views() const { return {dx, dy}; }
};

// ---- the loss

// The contribution of one row to nn::BatchResult.
struct RowResult {
  float loss;
  uint8_t correct;
  uint8_t counts;  // 1 if its label is not -1
};

// nn::SoftmaxCrossEntropy over N rows of logits, which are floats. `dx` gets `factor` times the
// gradient, unless dx.data is null.
struct SoftmaxLoss {
  static constexpr const char* NAME = "softmax_loss";
  Element element;  // of dx
  View x;           // of floats
  const int32_t* labels;
  float smoothing;
  RowResult* rows;
  View dx;
  float factor;
};

// The same as nn::BatchResult.
struct BatchSums {
  double lossSum;
  uint64_t correct;
  uint64_t images;
};

// to = the sums of the rows. Adds them to `total` as well, if it is not null.
struct SumRows {
  static constexpr const char* NAME = "sum_rows";
  const RowResult* rows;
  uint32_t count;
  BatchSums* to;
  BatchSums* total;
};

// ---- the update

// The values that one block updates.
struct UpdatePiece {
  uint64_t begin;
  uint32_t size;
  uint32_t rule;  // into UpdateParameters::rules
};
constexpr uint32_t MOST_OF_PIECE = 4096;  // values

// Updates `values` by the rule of each piece. The arrays of states follow one another, `stride`
// values apart. Without a lookahead `slow` is null.
struct UpdateParameters {
  static constexpr const char* NAME = "update_parameters";
  const UpdatePiece* pieces;
  uint32_t count;
  const ValueRule* rules;
  float* values;
  const float* gradients;
  float* states;
  uint64_t stride;
  float* slow;
};

using Kernel = std::variant<ImportPixels, Augment, ImportFilters, ExportFilters, ExportRows,
    Activate, ActivateBackward, ScaleBy, DropOut, AddUp, SumMoments, FinishMoments, FoldMoments,
    Normalize, SumSlopes, FinishSlopes, NormalizeBackward, SumColumns, FinishColumns, PoolMax,
    PoolMaxBackward, PoolAverage, PoolAverageBackward, SoftmaxLoss, SumRows, UpdateParameters>;

}  // namespace nn::cuda
