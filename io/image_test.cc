#include "io/image.h"

#include <doctest/doctest.h>

namespace io {

TEST_CASE("toPlanes: separates interleaved pixels") {
  const kj::byte pixels[] = {1, 2, 3, 4, 5, 6};
  auto planes = toPlanes({{3, 1, 2}, Layout::PIXELS, pixels});
  const kj::byte expected[] = {1, 4, 2, 5, 3, 6};
  CHECK(planes == kj::arrayPtr(expected, 6));
}

TEST_CASE(
    "resizedShape: the shorter side gets the requested size, and the longer keeps the ratio") {
  CHECK(resizedShape({3, 375, 500}, 256) == ImageShape{3, 256, 341});
  CHECK(resizedShape({3, 500, 375}, 256) == ImageShape{3, 341, 256});
  CHECK(resizedShape({1, 28, 28}, 32) == ImageShape{1, 32, 32});
  // Larger than any image may be, and not 0.
  CHECK(resizedShape({3, 1, 1u << 26}, 256) == ImageShape{3, 256, ~0u});
}

TEST_CASE("resize: interpolates between the centres of pixels and repeats the edge") {
  const kj::byte pixels[] = {0, 100};
  // The centres of the four new pixels lie at -0.25, 0.25, 0.75 and 1.25 of the old ones.
  auto wider = resize({{1, 1, 2}, Layout::PLANES, pixels}, {1, 1, 4});
  const kj::byte expected[] = {0, 25, 75, 100};
  CHECK(wider == kj::arrayPtr(expected, 4));

  const kj::byte square[] = {0, 10, 20, 30};
  auto one = resize({{1, 2, 2}, Layout::PLANES, square}, {1, 1, 1});
  CHECK(one[0] == 15);
}

TEST_CASE("resize: planes and pixels of one image give the same result") {
  kj::byte pixels[3 * 4 * 5];
  for (uint i = 0; i < sizeof(pixels); ++i) pixels[i] = i * 37 % 256;
  ImageView interleaved = {{3, 4, 5}, Layout::PIXELS, pixels};
  auto planes = toPlanes(interleaved);
  CHECK(resize(interleaved, {3, 7, 3}) == resize({{3, 4, 5}, Layout::PLANES, planes}, {3, 7, 3}));
}

}  // namespace io
