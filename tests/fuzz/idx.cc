// Images and labels in MNIST's format. The first two bytes say how many of the others are the file
// of images.
#include "io/datasets/idx.h"

#include "tests/fuzz/fuzz.h"

namespace fuzz {

void feed(Bytes input) {
  Dice dice(input);
  auto images = dice.take(dice.number(2)), labels = dice.all();
  auto found = io::parseIdx("the files", images, labels);
  uint64_t sum = 0;
  for (auto i: kj::indices(found.labels)) {
    auto image = found.image(i);
    must(image.bytes.size() == found.shape.size(), "an image has all its pixels");
    for (auto pixel: image.bytes) sum += pixel;
  }
  uint64_t all = 0;
  for (auto pixel: found.pixels) all += pixel;
  must(sum == all, "each pixel belongs to one image");
}

}  // namespace fuzz
