#include "runner/logs/confusion_file.h"

#include <kj/vector.h>

#include "configs/language/failure.h"
#include "io/paths.h"
#include "runner/system/files.h"
#include "runner/text/numbers.h"

namespace runner {

using kj::uint;

namespace {

// Enough for ten million cells.
constexpr uint64_t CONFUSION_BYTES_MAX = 1 << 28;

// A double does not count more images exactly.
constexpr uint64_t IMAGES_MAX = 1ull << 53;

// Takes a number of at most `digits` digits, followed by `end`, from the front of `rest`. Null if
// there is none.
kj::Maybe<uint64_t> takeNumber(kj::StringPtr& rest, uint digits, char end) {
  size_t size = rest.findFirst(end).orDefault(rest.size());
  if (size > digits || size == rest.size()) return nullptr;
  auto number = parseWhole(rest.slice(0, size));
  rest = rest.slice(size + 1);
  return number;
}

// Parses a line. Null if it is malformed.
kj::Maybe<nn::ConfusionCell> takeCell(kj::StringPtr& rest) {
  constexpr uint CLASS_DIGITS = 9, IMAGES_DIGITS = 15;
  KJ_IF_MAYBE(label, takeNumber(rest, CLASS_DIGITS, ',')) {
    KJ_IF_MAYBE(predicted, takeNumber(rest, CLASS_DIGITS, ',')) {
      KJ_IF_MAYBE(images, takeNumber(rest, IMAGES_DIGITS, '\n')) {
        if (*images > 0) return nn::ConfusionCell{uint(*label), uint(*predicted), *images};
      }
    }
  }
  return nullptr;
}

bool isBefore(const nn::ConfusionCell& a, const nn::ConfusionCell& b) {
  return a.label != b.label ? a.label < b.label : a.predicted < b.predicted;
}

}  // namespace

kj::String confusionText(kj::ArrayPtr<const nn::ConfusionCell> cells) {
  auto lines = KJ_MAP(cell, cells) {
    return kj::str(cell.label, ',', cell.predicted, ',', cell.images, '\n');
  };
  return kj::str(CONFUSION_BEGIN, kj::strArray(lines, ""));
}

kj::Array<nn::ConfusionCell> parseConfusion(kj::StringPtr text, kj::StringPtr path) {
  constexpr auto WAY_OUT = "another program wrote or changed the file; remove it"_kj;
  if (!text.startsWith(CONFUSION_BEGIN)) {
    configs::fail(path, " does not begin with `label,predicted,images`: ", WAY_OUT);
  }
  kj::Vector<nn::ConfusionCell> cells;
  uint64_t images = 0;
  for (auto rest = text.slice(CONFUSION_BEGIN.size()); rest.size() > 0;) {
    auto cell = takeCell(rest);
    KJ_IF_MAYBE(known, cell) {
      images += known->images;
      bool isNext = cells.empty() || isBefore(cells.back(), *known);
      if (isNext && images <= IMAGES_MAX) {
        cells.add(*known);
        continue;
      }
    }
    configs::fail(path, ":", cells.size() + 2,
        " is not the next label, prediction and number of images: ", WAY_OUT);
  }
  return cells.releaseAsArray();
}

kj::String classesText(kj::ArrayPtr<const kj::String> names) {
  auto lines = KJ_MAP(name, names) {
    return kj::str(io::replaced(name, "\n", " "), "\n");
  };
  return kj::strArray(lines, "");
}

kj::Array<kj::String> readClasses(kj::StringPtr path) {
  constexpr uint64_t CLASSES_BYTES_MAX = 1 << 28;
  auto text = readRegular(path, CLASSES_BYTES_MAX);
  kj::Vector<kj::String> names;
  for (kj::StringPtr rest = text; rest.size() > 0;) {
    size_t end = rest.findFirst('\n').orDefault(rest.size());
    names.add(kj::heapString(rest.slice(0, end)));
    rest = rest.slice(kj::min(end + 1, rest.size()));
  }
  return names.releaseAsArray();
}

kj::Array<nn::ConfusionCell> readConfusion(kj::StringPtr path) {
  return parseConfusion(readRegular(path, CONFUSION_BYTES_MAX), path);
}

}  // namespace runner
