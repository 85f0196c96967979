// Views of validation images: compares what runs report with the same figures, which this test
// calculates in double from the saved weights.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <string.h>

#include <cmath>

#include "configs/language/random.h"
#include "io/datasets/import.h"
#include "io/records/record_db.h"
#include "runner/logs/events.h"
#include "tests/run.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr FILE = "tests/cluster/views.toml"_kj;
constexpr int SIDE = 6;
constexpr int PIXELS = SIDE * SIDE;
constexpr uint CLASSES = 3;
// Two workers have 19 and 20 each: their last batches are not full.
constexpr uint VALIDATION = 39;

struct Image {
  kj::byte pixels[PIXELS];
  uint label;
};

// Noise, a little brighter to the left, in the middle or to the right: hard to tell apart.
kj::Array<Image> imagesOf(uint count, uint64_t seed) {
  configs::Random random(seed, configs::Purpose::ORDER);
  auto images = kj::heapArray<Image>(count);
  for (auto& image: images) {
    image.label = random.below(CLASSES);
    for (int i = 0; i < PIXELS; ++i) {
      image.pixels[i] = random.below(200) + (i % SIDE / 2 == int(image.label) ? 30 : 0);
    }
  }
  return images;
}

// Returns a folder of packed records, with these images for validation.
kj::String packed(kj::ArrayPtr<const Image> validation) {
  auto folder = newFolder();
  auto write = [&](kj::StringPtr name, kj::ArrayPtr<const Image> images) {
    auto writer = io::RecordWriter::create(kj::str(folder, "/", name));
    for (auto i: kj::indices(images)) {
      writer->add(images[i].label, i, io::Encoding::RAW, {1, SIDE, SIDE}, images[i].pixels);
    }
    writer->finish();
  };
  write(io::TRAINING_FILE, imagesOf(160, 1));
  write(io::VALIDATION_FILE, validation);
  return folder;
}

constexpr uint TOP_K = 2;

struct Found {
  double loss;
  double accuracy;
  double topK;
  kj::String confusion;  // the text of confusion.csv, of the last validation
};

// Returns what the run found in its validations, one per epoch.
kj::Array<Found> validationsOf(const Trained& run) {
  kj::Vector<Found> found;
  runner::eachEvent({kj::str(run.folder)}, [&](runner::Event::Reader event) {
    if (!event.isValidated() || event.getIndex() > 0) return;  // all workers say the same
    auto validated = event.getValidated();
    CHECK(validated.getImages() == VALIDATION);
    CHECK(validated.getTopK().getK() == TOP_K);
    found.add(
        Found{validated.getLoss(), validated.getAccuracy(), validated.getTopK().getAccuracy()});
  });
  found.back().confusion = readFile(kj::str(run.folder, "/confusion.csv"));
  found.back().confusion = readFile(kj::str(run.folder, "/confusion.csv"));
  return found.releaseAsArray();
}

// A view by airbench94's definition: moved by this much, mirrored, with this weight.
struct View {
  int shift;
  bool mirrored;
  double weight;
};
constexpr View CENTRE[] = {{0, false, 1}};
constexpr View MIRROR[] = {{0, false, 0.5}, {0, true, 0.5}};
constexpr View MIRROR_SHIFT[] = {{0, false, 0.25}, {0, true, 0.25}, {-1, false, 0.125},
    {-1, true, 0.125}, {1, false, 0.125}, {1, true, 0.125}};

// The expected result of a validation with the run's last weights.
Found expected(
    const Trained& run, kj::ArrayPtr<const Image> images, kj::ArrayPtr<const View> views) {
  auto weights = weightsOf(run);  // CLASSES×PIXELS, then CLASSES biases
  REQUIRE(weights.size() == CLASSES * (PIXELS + 1));
  auto reflected = [](int at) { return at < 0 ? -at : at < SIDE ? at : 2 * (SIDE - 1) - at; };
  Found sums = {0, 0, 0, kj::String()};
  uint confused[CLASSES][CLASSES] = {};
  for (auto& image: images) {
    double logits[CLASSES] = {};
    for (auto& view: views) {
      for (uint k = 0; k < CLASSES; ++k) {
        double logit = weights[CLASSES * PIXELS + k];
        for (int i = 0; i < PIXELS; ++i) {
          int x = view.mirrored ? SIDE - 1 - i % SIDE : i % SIDE;
          int from = reflected(i / SIDE + view.shift) * SIDE + reflected(x + view.shift);
          logit += weights[k * PIXELS + i] * (image.pixels[from] - 128.0) / 128;
        }
        logits[k] += view.weight * logit;
      }
    }
    uint best = 0;
    double sum = 0;
    uint before = 0;
    for (uint k = 0; k < CLASSES; ++k) {
      if (logits[k] > logits[best]) best = k;
      sum += std::exp(logits[k]);
      before += logits[k] > logits[image.label];
    }
    confused[image.label][best]++;
    sums.topK += before < TOP_K;
    sums.loss += std::log(sum) - logits[image.label];
    sums.accuracy += best == image.label;
  }
  kj::Vector<kj::String> lines;
  lines.add(kj::str("label,predicted,images\n"));
  for (uint label = 0; label < CLASSES; ++label) {
    for (uint k = 0; k < CLASSES; ++k) {
      if (confused[label][k] > 0) lines.add(kj::str(label, ',', k, ',', confused[label][k], '\n'));
    }
  }
  return {sums.loss / images.size(), sums.accuracy / images.size(), sums.topK / images.size(),
      kj::strArray(lines, "")};
}

void check(const Found& found, const Found& wanted) {
  CHECK(found.loss == doctest::Approx(wanted.loss).epsilon(1e-5));
  CHECK(found.accuracy == doctest::Approx(wanted.accuracy).epsilon(1e-9));
  CHECK(found.topK == doctest::Approx(wanted.topK).epsilon(1e-9));
  CHECK(found.confusion == wanted.confusion);
}

TEST_CASE("a validation judges the mean of the logits over its views, and changes no weight") {
  auto images = imagesOf(VALIDATION, 2);
  auto source = kj::str("data.source=", packed(images));
  auto centre = train(FILE, {source});
  auto mirror = train(FILE, {source, "data.validation_views=mirror"});
  auto shift = train(FILE, {source, "data.validation_views=mirror_shift"});
  CHECK(mirror.weightsSha256 == centre.weightsSha256);
  CHECK(shift.weightsSha256 == centre.weightsSha256);
  auto a = expected(centre, images, CENTRE), b = expected(centre, images, MIRROR),
       c = expected(centre, images, MIRROR_SHIFT);
  // The three expected losses differ.
  CHECK(std::abs(a.loss - b.loss) > 1e-3);
  CHECK(std::abs(b.loss - c.loss) > 1e-3);
  check(validationsOf(centre)[0], a);
  check(validationsOf(mirror)[0], b);
  check(validationsOf(shift)[0], c);
}

TEST_CASE("with views only at the last validation, earlier ones see only the centre") {
  auto images = imagesOf(VALIDATION, 2);
  auto source = kj::str("data.source=", packed(images));
  auto one = train(FILE, {source});
  auto two = train(FILE, {source, "train.epochs=2", "data.validation_views=mirror_shift",
                             "data.validation_views_at=last"});
  auto found = validationsOf(two);
  REQUIRE(found.size() == 2);
  CHECK(found[0].loss == validationsOf(one)[0].loss);
  check(found[1], expected(two, images, MIRROR_SHIFT));
  auto table = readFile(kj::str(two.folder, "/table.md"));
  CHECK(strstr(
      table.cStr(), "The last validation uses 6 views of each image, earlier ones use 1.\n"));
}

}  // namespace
}  // namespace tests
