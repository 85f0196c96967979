// Built with -O3, so that the compiler makes vector code from the loops over a row.
#include "io/images/augment.h"

#include <immintrin.h>
#include <kj/debug.h>

#include <cmath>
#include <cstring>

#include "configs/language/each_instruction_set.h"
#include "configs/language/failure.h"
#include "configs/language/random.h"

namespace io {

namespace {

// Returns `number(x)` for each channel, where x is the list's number for the channel or its only
// one. Without a list, returns `otherwise`.
template <typename Func>
kj::Array<float> perChannel(kj::ArrayPtr<const double> numbers, uint channels, double otherwise,
    kj::StringPtr key, Func&& number) {
  if (numbers.size() > 1 && numbers.size() != channels) {
    configs::fail("data.augment.", key, " has ", numbers.size(), " numbers for images of ",
        channels, " channels. Give one number, or one per channel");
  }
  auto result = kj::heapArrayBuilder<float>(channels);
  for (uint c = 0; c < channels; ++c) {
    double x = otherwise;
    if (numbers.size() > 0) x = numbers[numbers.size() == 1 ? 0 : c];
    result.add(static_cast<float>(number(x)));
  }
  return result.finish();
}

// Uses SSE2, which every x86-64 has, because the compiler does not vectorize these loops by itself.
constexpr size_t LANES = 4;

// Returns one channel of LANES pixels.
template <size_t STRIDE>
__m128 channelOf(const kj::byte* pixels) {
  __m128i values;
  if constexpr (STRIDE == 1) {
    int bytes;
    memcpy(&bytes, pixels, sizeof(bytes));
    auto zeros = _mm_setzero_si128();
    values = _mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128(bytes), zeros), zeros);
  } else {
    values = _mm_setr_epi32(pixels[0], pixels[STRIDE], pixels[2 * STRIDE], pixels[3 * STRIDE]);
  }
  return _mm_cvtepi32_ps(values);
}

// Converts one row of one channel: `width` pixels at a distance of `STRIDE`. The mean is `mean[x]`,
// or `constant` if `mean` is null.
template <size_t STRIDE>
void convertRow(const kj::byte* pixels, const float* mean, float constant, float factor,
    size_t width, bool mirror, float* out) {
  auto factors = _mm_set1_ps(factor), constants = _mm_set1_ps(constant);
  size_t x = 0;
  for (; x + LANES <= width; x += LANES) {
    auto subtract = mean == nullptr ? constants : _mm_loadu_ps(mean + x);
    auto values = _mm_mul_ps(_mm_sub_ps(channelOf<STRIDE>(pixels + x * STRIDE), subtract), factors);
    if (mirror) values = _mm_shuffle_ps(values, values, _MM_SHUFFLE(0, 1, 2, 3));
    _mm_storeu_ps(out + (mirror ? width - LANES - x : x), values);
  }
  for (; x < width; ++x) {
    float subtract = mean == nullptr ? constant : mean[x];
    float value = static_cast<float>(pixels[x * STRIDE]) - subtract;
    out[mirror ? width - 1 - x : x] = value * factor;
  }
}

// The same for pixels that lie side by side, with AVX2, and the same bits.
__attribute__((target("avx2"))) void convertPlaneRowAvx2(const kj::byte* pixels, const float* mean,
    float constant, float factor, size_t width, bool mirror, float* out) {
  constexpr size_t LANES = 8;
  if (width < LANES) return convertRow<1>(pixels, mean, constant, factor, width, mirror, out);
  auto factors = _mm256_set1_ps(factor), constants = _mm256_set1_ps(constant);
  auto turned = _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0);
  // The last two vectors may overlap.
  for (size_t begin = 0; begin < width; begin += LANES) {
    size_t x = kj::min(begin, width - LANES);
    auto eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(pixels + x));
    auto values = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(eight));
    auto subtract = mean == nullptr ? constants : _mm256_loadu_ps(mean + x);
    values = _mm256_mul_ps(_mm256_sub_ps(values, subtract), factors);
    if (mirror) values = _mm256_permutevar8x32_ps(values, turned);
    _mm256_storeu_ps(out + (mirror ? width - LANES - x : x), values);
  }
}

using ConvertRow = void (*)(
    const kj::byte*, const float*, float, float, size_t width, bool mirror, float*);

// For pixels that lie side by side. Chosen once, when the program starts.
const ConvertRow convertPlaneRow =
    __builtin_cpu_supports("avx2") ? &convertPlaneRowAvx2 : &convertRow<1>;

EACH_INSTRUCTION_SET
void normalise(const float* __restrict__ from, bool mirror, size_t width, float mean, float factor,
    float* __restrict__ to) {
  if (mirror) {
    for (size_t x = 0; x < width; ++x) to[x] = (from[width - 1 - x] - mean) * factor;
  } else {
    for (size_t x = 0; x < width; ++x) to[x] = (from[x] - mean) * factor;
  }
}

// Returns the row or column of the image, which has `size` of them, that replaces number `at`
// inside or outside of it.
uint sourceOf(int at, uint size, Padding mode) {
  int last = int(size) - 1;
  if (at >= 0 && at <= last) return at;
  if (mode != Padding::REFLECT || last == 0) return at < 0 ? 0 : last;
  // Reflection repeats with twice the period.
  int phase = (at < 0 ? -at : at) % (2 * last);
  return phase <= last ? phase : 2 * last - phase;
}

}  // namespace

ImageShape batchShapeOf(const AugmentConfig& config, ImageShape stored) {
  if (config.crop == 0) return stored;
  return {stored.channels, config.crop, config.crop};
}

Augmenter::Augmenter(const AugmentConfig& config, ImageShape shape, ImageShape stored,
    kj::ArrayPtr<const float> meanImage)
    : shape(shape),
      stored(stored),
      padMode(config.padMode),
      padValue(config.padValue),
      meanImage(meanImage),
      means(perChannel(config.mean, shape.channels, 0, "mean", [](double x) { return x; })),
      factors(perChannel(config.deviation, shape.channels, 1, "deviation",
          [&](double deviation) { return config.scale / deviation; })),
      mirror(config.mirror),
      crops(config.crop > 0),
      cropsAtRandom((crops || config.pad > 0) && config.cropAt == CropPlace::RANDOM),
      pad(config.pad),
      colours(config.colours),
      cutout(config.cutout),
      areaMin(config.areaMin),
      areaMax(config.areaMax),
      centreCrop(config.centreCrop),
      aspectMin(config.aspectMin),
      aspectMax(config.aspectMax) {
  KJ_REQUIRE(meanImage.size() == 0 || meanImage.size() == stored.size());
  double root = aspectMin > 0 ? aspectMax / aspectMin : 1;
  for (auto& each: aspectRoots) each = root = std::sqrt(root);
}

bool Augmenter::reaches(ImageShape stored) const {
  return !crops || resizes() ||
         (stored.height + 2 * pad >= shape.height && stored.width + 2 * pad >= shape.width);
}

void Augmenter::checkSize(ImageShape stored) const {
  bool same = stored.height == shape.height && stored.width == shape.width;
  if (stored.channels == shape.channels && (crops ? reaches(stored) : same)) return;
  configs::fail("has ", stored.channels, "×", stored.height, "×", stored.width,
      " values, from which ", shape.channels, "×", shape.height, "×", shape.width,
      " cannot be cut");
}

Augmentation Augmenter::draw(
    uint64_t seed, uint64_t pass, uint64_t record, ImageShape stored) const {
  auto result = drawPlace(seed, pass, record, stored);
  if (colours.any()) {
    configs::Random random(seed, configs::Purpose::COLOURS, pass, record);
    result.colours = drawColours(colours, random);
  }
  if (cutout > 0) {
    configs::Random random(seed, configs::Purpose::CUTOUT, pass, record);
    int before = int(cutout / 2);
    result.hidden.top = int(random.below(shape.height)) - before;
    result.hidden.left = int(random.below(shape.width)) - before;
    result.hidden.side = cutout;
  }
  return result;
}

Augmentation Augmenter::drawPlace(
    uint64_t seed, uint64_t pass, uint64_t record, ImageShape stored) const {
  using configs::Purpose;
  auto result = centre(stored);
  if (resizes()) {
    configs::Random random(seed, Purpose::CROP, pass, record);
    result = drawResized(random, stored);
  } else if (cropsAtRandom) {
    configs::Random random(seed, Purpose::CROP, pass, record);
    result.top = int(random.below(stored.height + 2 * pad - shape.height + 1)) - int(pad);
    result.left = int(random.below(stored.width + 2 * pad - shape.width + 1)) - int(pad);
  }
  auto drawn = [&](uint64_t of) {
    return configs::Random(seed, Purpose::MIRROR, of, record).below(2) == 1;
  };
  switch (mirror) {
    case Mirror::NEVER:
      break;
    case Mirror::RANDOM:
      result.mirror = drawn(pass);
      break;
    case Mirror::ALTERNATE:
      result.mirror = drawn(0) != (pass % 2 == 1);
      break;
  }
  return result;
}

// As RandomResizedCrop of torchvision. Not by exp(), which may differ in its last bit between two
// machines: sqrt() is exact everywhere.
Augmentation Augmenter::drawResized(configs::Random& random, ImageShape stored) const {
  double area = double(stored.height) * stored.width;
  constexpr uint ATTEMPTS = 10;
  for (uint attempt = 0; attempt < ATTEMPTS; ++attempt) {
    double part = area * (areaMin + (areaMax - areaMin) * random.uniform());
    double aspect = aspectMin;
    uint64_t bits = random.next();
    for (auto root: aspectRoots) {
      if (bits & 1) aspect *= root;
      bits >>= 1;
    }
    auto width = uint(std::lround(std::sqrt(part * aspect)));
    auto height = uint(std::lround(std::sqrt(part / aspect)));
    if (width == 0 || height == 0 || width > stored.width || height > stored.height) continue;
    int top = random.below(stored.height - height + 1);
    int left = random.below(stored.width - width + 1);
    return {top, left, false, height, width};
  }
  // An image that is too wide or too high for these shapes.
  uint height = stored.height, width = stored.width;
  if (width < aspectMin * height) {
    height = kj::max(1, uint(std::lround(width / aspectMin)));
  } else if (width > aspectMax * height) {
    width = kj::max(1, uint(std::lround(height * aspectMax)));
  }
  return {int(stored.height - height) / 2, int(stored.width - width) / 2, false, height, width};
}

Augmentation Augmenter::centre(ImageShape stored) const {
  checkSize(stored);
  if (resizes()) {
    uint shorter = kj::min(stored.height, stored.width);
    uint side = kj::max(1, uint(std::lround(shorter * centreCrop)));
    return {int(stored.height - side) / 2, int(stored.width - side) / 2, false, side, side};
  }
  // The centre of the padded image, because a large crop may need the padding. Half a pixel is
  // rounded in the same way for every `pad`.
  auto begin = [&](uint size, uint cropped) {
    return int((size + 2 * pad - cropped) / 2) - int(pad);
  };
  return {begin(stored.height, shape.height), begin(stored.width, shape.width), false};
}

Augmentation Augmenter::view(const View& view, ImageShape stored) const {
  auto result = centre(stored);
  result.top += view.down;
  result.left += view.right;
  result.mirror = view.mirror;
  if (resizes()) {
    result.top = kj::max(0, kj::min(result.top, int(stored.height - result.height)));
    result.left = kj::max(0, kj::min(result.left, int(stored.width - result.width)));
  }
  return result;
}

void Augmenter::applyRow(
    kj::ArrayPtr<const float> planes, uint y, bool mirror, kj::ArrayPtr<float> out) const {
  size_t width = shape.width;
  KJ_REQUIRE(planes.size() >= shape.channels * width && out.size() == shape.size());
  KJ_REQUIRE(y < shape.height);
  for (uint c = 0; c < shape.channels; ++c) {
    auto to = out.begin() + (size_t(c) * shape.height + y) * width;
    normalise(planes.begin() + c * width, mirror, width, means[c], factors[c], to);
  }
}

void Augmenter::applyRow(
    kj::ArrayPtr<const kj::byte> pixels, uint y, bool mirror, kj::ArrayPtr<float> out) const {
  size_t width = shape.width;
  size_t stride = pixels.size() / width;
  KJ_REQUIRE(out.size() == shape.size() && y < shape.height && meanImage.size() == 0);
  KJ_REQUIRE(pixels.size() == stride * width && (stride == 1 || stride == 4), stride);
  ConvertRow convert = &convertRow<4>;
  if (stride == 1) convert = convertPlaneRow;
  for (uint c = 0; c < shape.channels; ++c) {
    auto to = out.begin() + (size_t(c) * shape.height + y) * width;
    convert(pixels.begin() + c, nullptr, means[c], factors[c], width, mirror, to);
  }
}

void Augmenter::apply(ImageView image, Augmentation augmentation, kj::ArrayPtr<float> out) const {
  auto& stored = image.shape;
  KJ_REQUIRE(out.size() == shape.size() && image.bytes.size() == stored.size());
  KJ_REQUIRE(stored.channels == shape.channels && !resizes());
  bool subtractImage = meanImage.size() > 0;
  KJ_REQUIRE(!subtractImage || stored == this->stored);

  size_t stride = image.layout == Layout::PLANES ? 1 : stored.channels;
  KJ_REQUIRE(stride == 1 || stride == 3, "interleaved images have 3 channels");
  ConvertRow convert = &convertRow<3>;
  if (stride == 1) convert = convertPlaneRow;
  int top = augmentation.top, left = augmentation.left;
  bool mirrored = augmentation.mirror;
  int width = shape.width;
  // The columns of the crop that are inside the image, counted from the crop's left.
  int begin = kj::max(0, kj::min(width, -left));
  int end = kj::max(begin, kj::min(width, int(stored.width) - left));
  size_t plane = size_t(stored.height) * stored.width;
  auto to = out.begin();
  for (uint c = 0; c < shape.channels; ++c) {
    auto pixels = image.bytes.begin() + (stride == 1 ? c * plane : c);
    auto mean = subtractImage ? meanImage.begin() + c * plane : nullptr;
    for (int y = top; y < top + int(shape.height); ++y, to += width) {
      int source = sourceOf(y, stored.height, padMode);
      size_t row = size_t(source) * stored.width;
      bool isImage = source == y || padMode != Padding::VALUE;
      int from = isImage ? begin : width;
      int until = isImage ? end : width;
      if (until > from) {
        size_t first = row + (left + from);
        convert(pixels + first * stride, subtractImage ? mean + first : nullptr, means[c],
            factors[c], until - from, mirrored, to + (mirrored ? width - until : from));
      }
      auto applyOutside = [&](int x) {
        size_t at = row + sourceOf(left + x, stored.width, padMode);
        float grey = padMode == Padding::VALUE ? padValue : pixels[at * stride];
        float subtract = subtractImage ? mean[at] : means[c];
        to[mirrored ? width - 1 - x : x] = (grey - subtract) * factors[c];
      };
      for (int x = 0; x < from; ++x) applyOutside(x);
      for (int x = until; x < width; ++x) applyOutside(x);
    }
  }
}

void Augmenter::finish(const Augmentation& augmentation, kj::ArrayPtr<float> image) const {
  KJ_REQUIRE(image.size() == shape.size());
  if (augmentation.colours != Colours()) {
    changeColours(augmentation.colours, shape, means, factors, image);
  }
  auto& hidden = augmentation.hidden;
  if (hidden.side == 0) return;
  int top = kj::max(0, hidden.top), left = kj::max(0, hidden.left);
  int bottom = kj::min(int(shape.height), hidden.top + int(hidden.side));
  int right = kj::min(int(shape.width), hidden.left + int(hidden.side));
  for (uint c = 0; c < shape.channels; ++c) {
    for (int y = top; y < bottom; ++y) {
      auto row = image.begin() + (size_t(c) * shape.height + y) * shape.width;
      for (int x = left; x < right; ++x) row[x] = 0;
    }
  }
}

bool Augmenter::canCut() const {
  return padMode != Padding::VALUE || padValue == float(kj::byte(padValue));
}

void Augmenter::cut(ImageView image, Augmentation augmentation, kj::ArrayPtr<kj::byte> out) const {
  auto& stored = image.shape;
  KJ_REQUIRE(out.size() == shape.size() && image.bytes.size() == stored.size());
  KJ_REQUIRE(stored.channels == shape.channels);
  bool isPlanes = image.layout == Layout::PLANES;
  size_t stride = isPlanes ? 1 : stored.channels;
  size_t plane = size_t(stored.height) * stored.width;
  auto to = out.begin();
  for (uint c = 0; c < shape.channels; ++c) {
    auto pixels = image.bytes.begin() + (isPlanes ? c * plane : c);
    for (uint y = 0; y < shape.height; ++y) {
      int top = augmentation.top + int(y);
      uint row = sourceOf(top, stored.height, padMode);
      for (uint x = 0; x < shape.width; ++x) {
        int left = augmentation.left + int(x);
        uint column = sourceOf(left, stored.width, padMode);
        bool isInside = int(row) == top && int(column) == left;
        *to++ = isInside || padMode != Padding::VALUE
                    ? pixels[(size_t(row) * stored.width + column) * stride]
                    : kj::byte(padValue);
      }
    }
  }
}

}  // namespace io
