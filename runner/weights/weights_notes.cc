#include "runner/weights/weights_notes.h"

#include <kj/encoding.h>
#include <kj/vector.h>
#include <stdlib.h>
#include <string.h>

#include "configs/language/failure.h"
#include "runner/experiment/shown_experiment.h"

namespace runner {

namespace {

constexpr kj::StringPtr EXPERIMENT = "experiment"_kj;
constexpr kj::StringPtr SHAPE = "image_shape"_kj;
constexpr kj::StringPtr CLASSES = "classes"_kj;
constexpr kj::StringPtr CLASS_NAMES = "class_names"_kj;
constexpr kj::StringPtr MEAN_IMAGE = "mean_image"_kj;

// The largest side of an image, and the largest number of classes.
constexpr uint64_t NUMBER_MAX = 1 << 24;
// The largest number of values in an image that a network takes.
constexpr double VALUES_MAX = 1 << 28;

// Returns the mean of the images that the network was trained on.
kj::Array<float> meanImageOf(const io::DataConfig& config, const ModelFacts& facts) {
  // The user's own images may have changed since then. Opening them would import the new ones.
  if (facts.meanImage.size() > 0) return kj::heapArray<float>(facts.meanImage);
  kj::Array<float> mean;
  auto read = [&]() {
    auto dataset = io::openDataset(config, io::unheard());
    mean = kj::heapArray(dataset->meanImage());
  };
  // On the host of a coordinator, the data may be missing.
  if (kj::runCatchingExceptions(read) != nullptr) return nullptr;
  return mean;
}

// Returns `count` whole numbers with commas between them. Null if `text` is something else.
kj::Maybe<kj::Array<uint>> numbersIn(kj::StringPtr text, uint count) {
  kj::Vector<uint> numbers;
  auto at = text.begin();
  for (uint i = 0; i < count; i++) {
    if (i > 0 && *at++ != ',') return nullptr;
    char* end;
    auto number = strtoull(at, &end, 10);
    if (end == at || number == 0 || number > NUMBER_MAX) return nullptr;
    numbers.add(uint(number));
    at = end;
  }
  if (*at != '\0') return nullptr;
  return numbers.releaseAsArray();
}

kj::Array<kj::String> linesOf(kj::StringPtr text) {
  kj::Vector<kj::String> lines;
  for (;;) {
    KJ_IF_MAYBE(end, text.findFirst('\n')) {
      lines.add(kj::heapString(text.slice(0, *end)));
      text = text.slice(*end + 1);
    } else {
      lines.add(kj::str(text));
      return lines.releaseAsArray();
    }
  }
}

}  // namespace

kj::Array<Note> notesOf(
    kj::StringPtr resolved, const Experiment& experiment, const ModelFacts& facts) {
  kj::Vector<Note> notes;
  // People pass weights on.
  notes.add(Note{EXPERIMENT, withoutSecrets(resolved)});
  auto& shape = facts.imageShape;
  notes.add(Note{SHAPE, kj::str(shape.channels, ',', shape.height, ',', shape.width)});
  notes.add(Note{CLASSES, kj::str(facts.graph.classes)});
  if (experiment.data.augment.meanImage) {
    auto mean = kj::encodeBase64(meanImageOf(experiment.data, facts).asBytes());
    bool fits = mean.size() + resolved.size() < NOTES_BYTES_MAX / 2;
    if (mean.size() > 0 && fits) notes.add(Note{MEAN_IMAGE, kj::mv(mean)});
  }
  return notes.releaseAsArray();
}

kj::Maybe<WeightsNotes> readNotes(const WeightsFile& file) {
  auto wrong = [&](kj::StringPtr note) {
    configs::fail(file.path, " has an entry `", note, "` in its header whose value is not valid");
  };
  WeightsNotes notes;
  KJ_IF_MAYBE(text, file.note(EXPERIMENT)) {
    notes.resolved = kj::str(*text);
  } else {
    return nullptr;
  }
  constexpr uint DIMENSIONS = 3;
  KJ_IF_MAYBE(shape, numbersIn(file.note(SHAPE).orDefault(""), DIMENSIONS)) {
    if (double((*shape)[0]) * (*shape)[1] * (*shape)[2] > VALUES_MAX) wrong(SHAPE);
    notes.facts.shape = {(*shape)[0], (*shape)[1], (*shape)[2]};
  } else {
    wrong(SHAPE);
  }
  KJ_IF_MAYBE(classes, numbersIn(file.note(CLASSES).orDefault(""), 1)) {
    notes.facts.classes = (*classes)[0];
  } else {
    wrong(CLASSES);
  }
  KJ_IF_MAYBE(names, file.note(CLASS_NAMES)) {
    notes.facts.classNames = linesOf(*names);
  }
  KJ_IF_MAYBE(text, file.note(MEAN_IMAGE)) {
    auto bytes = kj::decodeBase64(*text);
    notes.meanImage = kj::heapArray<float>(bytes.size() / sizeof(float));
    if (bytes.hadErrors || notes.meanImage.size() != notes.facts.shape.size()) wrong(MEAN_IMAGE);
    memcpy(notes.meanImage.begin(), bytes.begin(), notes.meanImage.asBytes().size());
  }
  return kj::mv(notes);
}

}  // namespace runner
