#include "nn/network/whitening.h"

#include <kj/debug.h>

#include <Eigen/Eigenvalues>
#include <cmath>

#include "configs/language/failure.h"

namespace nn {
namespace {

// The mean of x·xᵀ over all patches x; its lower triangle.
Eigen::MatrixXd secondMoments(kj::ArrayPtr<const float> images, Shape shape, uint kernel) {
  uint size = shape.channels * kernel * kernel;
  uint down = shape.height - kernel + 1, across = shape.width - kernel + 1;
  uint64_t plane = uint64_t(shape.height) * shape.width;
  Eigen::MatrixXd sums = Eigen::MatrixXd::Zero(size, size);
  // The patches of one row of places, one patch per column.
  Eigen::MatrixXd patches(size, across);
  for (uint64_t image = 0; image < images.size(); image += shape.size()) {
    for (uint i = 0; i < down; ++i) {
      for (uint p = 0; p < size; ++p) {
        uint c = p / (kernel * kernel), u = p / kernel % kernel, v = p % kernel;
        auto row = images.begin() + image + c * plane + uint64_t(i + u) * shape.width + v;
        for (uint j = 0; j < across; ++j) patches(p, j) = row[j];
      }
      sums.selfadjointView<Eigen::Lower>().rankUpdate(patches);
    }
  }
  return sums / (double(images.size() / shape.size()) * down * across);
}

}  // namespace

void whiten(kj::ArrayPtr<const float> images, Shape shape, uint kernel, double epsilon,
    kj::ArrayPtr<float> filters) {
  uint size = shape.channels * kernel * kernel;
  KJ_REQUIRE(size > 0 && size <= WHITENED_VALUES_MAX, size);
  KJ_REQUIRE(kernel <= shape.height && kernel <= shape.width, kernel, shape);
  KJ_REQUIRE(images.size() > 0 && images.size() % shape.size() == 0, images.size(), shape);
  KJ_REQUIRE(filters.size() == 2 * uint64_t(size) * size, filters.size(), size);

  // The eigenvalues are in ascending order.
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(secondMoments(images, shape, kernel));
  if (solver.info() != Eigen::Success) {
    configs::fail("`whitening` cannot compute filters, because the values of the images are too ",
        "large or not finite; check data.augment.scale, mean and deviation");
  }
  for (uint filter = 0; filter < size; ++filter) {
    auto vector = solver.eigenvectors().col(size - 1 - filter);
    double value = kj::max(solver.eigenvalues()[size - 1 - filter], 0.0);
    Eigen::Index largest;
    vector.cwiseAbs().maxCoeff(&largest);
    double factor = (vector[largest] < 0 ? -1 : 1) / std::sqrt(value + epsilon);
    for (uint p = 0; p < size; ++p) {
      float weight = float(factor * vector[p]);
      filters[filter * size + p] = weight;
      filters[(size + filter) * size + p] = -weight;
    }
  }
}

}  // namespace nn
