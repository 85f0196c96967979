// Compares the kernel that augments images with the code of io/, which defines the result.
#include "io/images/augment.h"

#include <doctest/doctest.h>
#include <string.h>

#include "nn/cuda/testing/host_kernels.h"
#include "nn/cuda/testing/test_batch.h"
#include "runner/roles/batches.h"
#include "tests/input/images.h"

namespace tests {
namespace {

using nn::Element;
using nn::cuda::Batch;
using nn::cuda::Form;
using nn::cuda::Order;

// Two rows of the same image, of which the second is mirrored, and one row without an image.
struct Rows {
  explicit Rows(const ImagesCase& c)
      : config(c.augment()),
        stored(c.stored),
        shape(io::batchShapeOf(config, stored)),
        pixels(kj::heapArray<kj::byte>(stored.size())),
        mean(kj::heapArray<float>(config.meanImage ? stored.size() : 0)),
        augmenter(config, shape, stored, mean) {
    for (auto i: kj::indices(pixels)) pixels[i] = i * 53 % 256;
    for (auto i: kj::indices(mean)) mean[i] = 100 + i * 0.37f;
  }

  nn::reference::Tensor expected(int top, int left) const {
    nn::reference::Tensor all(3, {shape.channels, shape.height, shape.width});
    for (auto& value: all.values) value = 0;
    for (uint row: {0u, 1u}) {
      auto out = kj::heapArray<float>(shape.size());
      augmenter.apply({stored, io::Layout::PLANES, pixels}, {top, left, row == 1}, out);
      for (auto i: kj::indices(out)) all.values[row * out.size() + i] = out[i];
    }
    return all;
  }

  void run(Batch& to, Element element, int top, int left, Order order) const {
    auto image = reinterpret_cast<uint64_t>(pixels.begin());
    nn::RawRow rows[] = {{image, top, left, false}, {image, top, left, true}, {0, top, left, true}};
    runOnHost(nn::cuda::Augment{.element = element,
                  .images = runner::rawImagesOf(augmenter),
                  .rows = rows,
                  .to = to.view(),
                  .plane = to.plane()},
        order);
  }

  io::AugmentConfig config;
  io::ImageShape stored, shape;
  kj::Array<kj::byte> pixels;
  kj::Array<float> mean;
  io::Augmenter augmenter;
};

TEST_CASE("Augment: every crop equals the readers' to the last bit") {
  for (auto& c: IMAGES_CASES) {
    INFO(c.name);
    Rows rows(c);
    for (auto element: {Element::FLOAT32, Element::BFLOAT16}) {
      for (auto form: {Form::PADDED, Form::PART}) {
        uint wrong = 0;
        for (int top = -8; top <= 8; ++top) {
          for (int left = -8; left <= 8; ++left) {
            auto order = left % 2 == 0 ? Order::ASCENDING : Order::DESCENDING;
            auto values = rows.expected(top, left);
            Batch expected(element, form, values);
            Batch found(
                element, form, 3, {rows.shape.channels, rows.shape.height, rows.shape.width});
            rows.run(found, element, top, left, order);
            auto a = found.values(), b = expected.values();
            wrong +=
                memcmp(a.values.begin(), b.values.begin(), a.values.asPtr().asBytes().size()) != 0;
          }
        }
        CHECK(wrong == 0);
      }
    }
  }
}

}  // namespace
}  // namespace tests
