#include "runner/report/class_report.h"

#include <kj/vector.h>

#include <algorithm>

#include "runner/report/heat_map.h"
#include "runner/text/html.h"
#include "runner/text/numbers.h"
#include "runner/text/text_table.h"

namespace runner {

namespace {

using Cells = kj::ArrayPtr<const nn::ConfusionCell>;

constexpr size_t CLASS_ROWS_MAX = 50;
constexpr size_t CONFUSION_ROWS_MAX = 50;
constexpr uint HEAT_MAP_CLASSES_MAX = 100;

// Decimals of accuracies on the page.
constexpr uint DECIMALS = 4;

// The names of the classes on the page.
using Names = kj::ArrayPtr<const kj::String>;

kj::String classText(Names names, uint label) {
  return label < names.size() && names[label].size() > 0 ? kj::str(names[label]) : kj::str(label);
}

// The results of one class in a validation.
struct ClassFigures {
  uint label;
  uint64_t images = 0;
  uint64_t correct = 0;
  uint worst = 0;  // the other class that it was taken for most often, the first of several
  uint64_t worstImages = 0;  // how often. 0: never

  double accuracy() const { return double(correct) / images; }
};

// Returns the classes that have images, the worst one first.
kj::Array<ClassFigures> classesOf(Cells cells) {
  kj::Vector<ClassFigures> all;
  for (auto& cell: cells) {
    if (all.empty() || all.back().label != cell.label) all.add(ClassFigures{cell.label});
    auto& figures = all.back();
    figures.images += cell.images;
    if (cell.label == cell.predicted) {
      figures.correct = cell.images;
    } else if (cell.images > figures.worstImages) {
      figures.worst = cell.predicted;
      figures.worstImages = cell.images;
    }
  }
  std::stable_sort(all.begin(), all.end(),
      [](const ClassFigures& a, const ClassFigures& b) { return a.accuracy() < b.accuracy(); });
  return all.releaseAsArray();
}

kj::String classTable(kj::ArrayPtr<const ClassFigures> classes, Names names) {
  kj::Vector<kj::Array<kj::String>> rows;
  for (auto& each: classes.slice(0, kj::min(classes.size(), CLASS_ROWS_MAX))) {
    auto worst = each.worstImages == 0
                     ? kj::str()
                     : kj::str(classText(names, each.worst), " (", each.worstImages, ")");
    rows.add(kj::arr(classText(names, each.label), kj::str(each.images), kj::str(each.correct),
        figureText(each.accuracy(), DECIMALS), kj::mv(worst)));
  }
  auto header = kj::arr(kj::str("class"), kj::str("images"), kj::str("recognized"),
      kj::str("accuracy"), kj::str("most often taken for"));
  auto text = htmlOf(TextTable{kj::mv(header), rows.releaseAsArray(), nullptr});
  if (classes.size() <= CLASS_ROWS_MAX) return text;
  auto& next = classes[CLASS_ROWS_MAX];
  return kj::str(text, "<p class=\"quiet\">The table leaves out ", classes.size() - CLASS_ROWS_MAX,
      " of ", classes.size(), " classes, with accuracies from ",
      figureText(next.accuracy(), DECIMALS), " to ",
      figureText(classes.back().accuracy(), DECIMALS),
      ". The CSV file of the confusion matrix has all.</p>\n");
}

// The most frequent confusions.
kj::String confusionTable(Cells cells, kj::ArrayPtr<const ClassFigures> classes, Names names) {
  kj::Vector<nn::ConfusionCell> wrong;
  for (auto& cell: cells) {
    if (cell.label != cell.predicted) wrong.add(cell);
  }
  std::stable_sort(wrong.begin(), wrong.end(),
      [](const nn::ConfusionCell& a, const nn::ConfusionCell& b) { return a.images > b.images; });
  kj::Vector<kj::Array<kj::String>> rows;
  for (auto& cell: wrong.slice(0, kj::min(wrong.size(), CONFUSION_ROWS_MAX))) {
    uint64_t images = 0;
    for (auto& each: classes) {
      if (each.label == cell.label) images = each.images;
    }
    rows.add(kj::arr(classText(names, cell.label), classText(names, cell.predicted),
        kj::str(cell.images), figureText(double(cell.images) / images, DECIMALS)));
  }
  auto header = kj::arr(
      kj::str("class"), kj::str("taken for"), kj::str("images"), kj::str("share of the class"));
  auto note =
      wrong.size() <= CONFUSION_ROWS_MAX
          ? kj::str()
          : kj::str("<p class=\"quiet\">The ", CONFUSION_ROWS_MAX, " most frequent of ",
                wrong.size(), " confusions. The CSV file of the confusion matrix has all.</p>\n");
  return kj::str(htmlOf(TextTable{kj::mv(header), rows.releaseAsArray(), nullptr}), note);
}

}  // namespace

kj::String classReport(Cells cells, Names names) {
  if (cells.size() == 0) return nullptr;
  uint last = 0;
  uint64_t images = 0;
  for (auto& cell: cells) {
    last = kj::max(last, kj::max(cell.label, cell.predicted));
    images += cell.images;
  }
  auto classes = classesOf(cells);
  kj::String confusions;
  if (last < HEAT_MAP_CLASSES_MAX) {
    auto texts = KJ_MAP(label, kj::zeroTo(last + 1)) {
      return classText(names, label);
    };
    confusions = kj::str(
        "<figure><figcaption>Each row is a class, each column what it was taken for. Recognized "
        "images are blue, others orange. Stronger colours mean larger shares of the row."
        "</figcaption>\n",
        drawHeatMap(cells, texts), "</figure>\n");
  } else {
    confusions = confusionTable(cells, classes, names);
  }
  return kj::str("<p class=\"quiet\">", counted(images, "image"), " of ", classes.size(),
      classes.size() == 1 ? " class" : " classes",
      ", the worst class first.</p>\n<div class=\"charts\">\n<div>\n", classTable(classes, names),
      "</div>\n<div>\n", confusions, "</div>\n</div>\n");
}

}  // namespace runner
