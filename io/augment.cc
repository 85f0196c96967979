// Built with -O3: the loops over a row are what the compiler turns into vector code.
#include "io/augment.h"

#include <kj/debug.h>

#include "configs/language/failure.h"
#include "configs/language/random.h"

namespace io {

namespace {

// `number(x)` for the x of each channel: the list's, its only one, or `otherwise` where there is no
// list.
template <typename Func>
kj::Array<float> perChannel(kj::ArrayPtr<const double> numbers, uint channels, double otherwise,
    kj::StringPtr key, Func&& number) {
  if (numbers.size() > 1 && numbers.size() != channels) {
    configs::fail("data.augment.", key, " has ", numbers.size(), " numbers for images of ",
        channels, " channels: give one, or one a channel");
  }
  auto result = kj::heapArrayBuilder<float>(channels);
  for (uint c = 0; c < channels; ++c) {
    double x = otherwise;
    if (numbers.size() > 0) x = numbers[numbers.size() == 1 ? 0 : c];
    result.add(static_cast<float>(number(x)));
  }
  return result.finish();
}

// One row of one channel, `width` pixels that lie `STRIDE` apart. The mean is that of `mean[x]`, or
// `constant`.
template <size_t STRIDE, bool MIRROR, bool IMAGE>
void applyRow(const kj::byte* __restrict__ pixels, const float* __restrict__ mean, float constant,
    float factor, size_t width, float* __restrict__ out) {
  for (size_t x = 0; x < width; ++x) {
    size_t from = MIRROR ? width - 1 - x : x;
    float subtract = IMAGE ? mean[from] : constant;
    out[x] = (static_cast<float>(pixels[from * STRIDE]) - subtract) * factor;
  }
}

using ApplyRow = void (*)(const kj::byte*, const float*, float, float, size_t, float*);

template <size_t STRIDE>
ApplyRow rowFunction(bool mirror, bool image) {
  if (mirror) return image ? &applyRow<STRIDE, true, true> : &applyRow<STRIDE, true, false>;
  return image ? &applyRow<STRIDE, false, true> : &applyRow<STRIDE, false, false>;
}

}  // namespace

ImageShape batchShapeOf(const AugmentConfig& config, ImageShape stored) {
  if (config.crop == 0) return stored;
  return {stored.channels, config.crop, config.crop};
}

Augmenter::Augmenter(const AugmentConfig& config, ImageShape shape, ImageShape stored,
    kj::ArrayPtr<const float> meanImage)
    : shape(shape),
      mirrors(config.mirror),
      crops(config.crop > 0),
      cropsAtRandom(crops && config.cropAt == CropPlace::RANDOM),
      meanShape(stored),
      meanImage(meanImage),
      means(perChannel(config.mean, shape.channels, 0, "mean", [](double x) { return x; })),
      factors(perChannel(config.deviation, shape.channels, 1, "deviation",
          [&](double deviation) { return config.scale / deviation; })) {
  KJ_REQUIRE(meanImage.size() == 0 || meanImage.size() == stored.size());
}

void Augmenter::checkSize(ImageShape stored) const {
  if (stored.channels != shape.channels || stored.height < shape.height ||
      stored.width < shape.width ||
      (!crops && (stored.height > shape.height || stored.width > shape.width))) {
    configs::fail("an image of ", stored.channels, "×", stored.height, "×", stored.width,
        " gives none of ", shape.channels, "×", shape.height, "×", shape.width);
  }
}

Augmentation Augmenter::draw(
    uint64_t seed, uint64_t pass, uint64_t record, ImageShape stored) const {
  using configs::Purpose;
  auto result = centre(stored);
  if (cropsAtRandom) {
    configs::Random random(seed, Purpose::CROP, pass, record);
    result.top = random.below(stored.height - shape.height + 1);
    result.left = random.below(stored.width - shape.width + 1);
  }
  if (mirrors) result.mirror = configs::Random(seed, Purpose::MIRROR, pass, record).below(2) == 1;
  return result;
}

Augmentation Augmenter::centre(ImageShape stored) const {
  checkSize(stored);
  return {(stored.height - shape.height) / 2, (stored.width - shape.width) / 2, false};
}

void Augmenter::apply(ImageView image, Augmentation augmentation, kj::ArrayPtr<float> out) const {
  auto& stored = image.shape;
  KJ_REQUIRE(out.size() == shape.size() && image.bytes.size() == stored.size());
  KJ_REQUIRE(stored.channels == shape.channels &&
             augmentation.top + shape.height <= stored.height &&
             augmentation.left + shape.width <= stored.width);
  bool subtractImage = meanImage.size() > 0;
  KJ_REQUIRE(!subtractImage || stored == meanShape);

  size_t stride = image.layout == Layout::PLANES ? 1 : stored.channels;
  auto applyRow = stride == 1 ? rowFunction<1>(augmentation.mirror, subtractImage)
                              : rowFunction<3>(augmentation.mirror, subtractImage);
  KJ_REQUIRE(stride == 1 || stride == 3, "interleaved images have 3 channels");
  size_t plane = size_t(stored.height) * stored.width;
  auto to = out.begin();
  for (uint c = 0; c < shape.channels; ++c) {
    auto channel = image.bytes.begin() + (stride == 1 ? c * plane : c);
    for (uint y = 0; y < shape.height; ++y) {
      size_t from = size_t(augmentation.top + y) * stored.width + augmentation.left;
      auto mean = subtractImage ? meanImage.begin() + c * plane + from : nullptr;
      applyRow(channel + from * stride, mean, means[c], factors[c], shape.width, to);
      to += shape.width;
    }
  }
}

}  // namespace io
