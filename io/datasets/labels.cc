#include "io/datasets/labels.h"

#include <kj/map.h>
#include <kj/vector.h>

#include <algorithm>

#include "configs/language/failure.h"
#include "io/left_out.h"
#include "io/paths.h"
#include "io/records/record_db.h"

namespace io {

namespace {

// The usual folder names of a data set that is already split.
constexpr kj::StringPtr TRAINING_NAMES[] = {"train"_kj, "training"_kj};
constexpr kj::StringPtr VALIDATION_NAMES[] = {"val"_kj, "valid"_kj, "validation"_kj};
constexpr kj::StringPtr TEST_NAMES[] = {"test"_kj, "testing"_kj};

// The lines of a text.
class Lines {
public:
  explicit Lines(kj::ArrayPtr<const char> text): rest(text) {
    // Some editors put UTF-8's byte-order mark before the text.
    constexpr kj::StringPtr UTF8_MARK = "\xef\xbb\xbf"_kj;
    if (rest.size() >= UTF8_MARK.size() && rest.slice(0, UTF8_MARK.size()) == UTF8_MARK) {
      rest = rest.slice(UTF8_MARK.size(), rest.size());
    }
  }

  // Goes to the next line. Returns false if there is none.
  bool next() {
    if (rest.size() == 0) return false;
    ++count;
    size_t end = std::find(rest.begin(), rest.end(), '\n') - rest.begin();
    line = rest.slice(0, end);
    rest = rest.slice(kj::min(end + 1, rest.size()), rest.size());
    if (line.size() > 0 && line.back() == '\r') line = line.slice(0, line.size() - 1);
    return true;
  }
  kj::ArrayPtr<const char> row() const { return line; }
  uint number() const { return count; }

private:
  kj::ArrayPtr<const char> rest;
  kj::ArrayPtr<const char> line;
  uint count = 0;
};

using Cell = kj::ArrayPtr<const char>;

// Returns the cells of a line, which tabs separate.
kj::Array<Cell> cellsOf(kj::ArrayPtr<const char> row) {
  kj::Vector<Cell> cells;
  for (;;) {
    size_t end = std::find(row.begin(), row.end(), '\t') - row.begin();
    cells.add(row.slice(0, end));
    if (end == row.size()) return cells.releaseAsArray();
    row = row.slice(end + 1, row.size());
  }
}

constexpr size_t NO_COLUMN = kj::maxValue;

// Returns the place of the cell `name`.
size_t columnNamed(kj::StringPtr name, kj::ArrayPtr<const Cell> cells) {
  for (auto i: kj::indices(cells)) {
    if (cells[i] == name.asArray()) return i;
  }
  return NO_COLUMN;
}

bool isBlank(char c) {
  return c == ' ' || c == '\t';
}

bool isOneOf(kj::ArrayPtr<const char> name, kj::ArrayPtr<const kj::StringPtr> names) {
  auto lower = kj::heapString(name);
  for (auto& c: lower) {
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
  }
  for (auto each: names) {
    if (lower == each) return true;
  }
  return false;
}

// Two folders side by side, for training, validation or tests. The one to train on comes first.
struct Split {
  kj::String training;
  kj::String validation;
};

// Finds such a pair among the folders that hold images, and the folders above these.
kj::Maybe<Split> findSplit(kj::ArrayPtr<const kj::String> folders) {
  // By the folder above.
  using Found = kj::HashMap<kj::String, kj::String>;
  Found training, validation, test;
  for (auto& folder: folders) {
    for (size_t begin = 0; begin < folder.size();) {
      size_t end = std::find(folder.begin() + begin, folder.end(), '/') - folder.begin();
      auto name = folder.slice(begin, end);
      auto put = [&](Found& found) {
        found.upsert(kj::heapString(folder.slice(0, begin)), kj::heapString(folder.slice(0, end)),
            [](kj::String&, kj::String&&) {});
      };
      if (isOneOf(name, TRAINING_NAMES)) put(training);
      if (isOneOf(name, VALIDATION_NAMES)) put(validation);
      if (isOneOf(name, TEST_NAMES)) put(test);
      begin = end + 1;
    }
  }
  kj::Maybe<Split> split;
  auto look = [&](const Found& first, const Found& second) {
    for (auto& entry: first) {
      if (split != nullptr) return;
      KJ_IF_MAYBE(other, second.find(entry.key)) {
        split = Split{kj::str(entry.value), kj::str(*other)};
      }
    }
  };
  look(training, validation);
  look(training, test);
  look(validation, test);
  return split;
}

// Refuses images that are beside the folders of other images, because the folder that holds all of
// them would become a class too. `folders` are sorted.
void checkNoneBeside(kj::StringPtr images, kj::ArrayPtr<const kj::String> folders,
    kj::ArrayPtr<const kj::String> paths) {
  auto& top = folders[0];
  auto below = top == "" ? kj::str() : kj::str(top, "/");
  for (auto& folder: folders.slice(1, folders.size())) {
    if (!folder.startsWith(below)) return;
  }
  LeftOut beside;
  for (auto& path: paths) {
    if (folderName(path) == top) beside.add(path);
  }
  configs::fail(counted(beside.count(), "image", "images"), " of ", images, " (", beside.names(),
      ") ", beside.count() == 1 ? "lies" : "lie", " beside the folders of the classes (",
      folders[1], folders.size() > 2 ? ", …" : "", "): put ", beside.count() == 1 ? "it" : "them",
      " into one of these, or the labels of all images into labels.tsv beside them");
}

[[noreturn]] void refuseSplit(const DataConfig& config, kj::StringPtr images, const Split& split,
    kj::ArrayPtr<const kj::String> folders) {
  kj::String wayOut;
  if (pathKind(images) != PathKind::FOLDER) {
    wayOut = kj::str("unpack it and set ", config.names.source, " to its folder ", split.training,
        " and ", config.names.validationSource, " to ", split.validation);
  } else if (pathKind(kj::str(images, "/", split.training)) == PathKind::FOLDER) {
    wayOut = kj::str("set ", config.names.source, " to ", images, "/", split.training, " and ",
        config.names.validationSource, " to ", images, "/", split.validation);
  } else {
    wayOut = kj::str("set ", config.names.source, " to the archive ", split.training,
        " in it, and ", config.names.validationSource, " to ", split.validation);
  }
  configs::fail(images, " has the folders ", split.training, " and ", split.validation,
      ", which would become one data set of ", folders.size(), " classes (",
      kj::strArray(folders.slice(0, kj::min(folders.size(), size_t(3))), ", "),
      folders.size() > 3 ? ", …" : "", "): ", wayOut,
      ", or put the labels of all images into labels.tsv beside them");
}

}  // namespace

LabelList readLabels(kj::StringPtr path) {
  return parseLabels(path, readFile(path, LABELS_FILE_BYTES_MAX), "");
}

LabelList parseLabels(
    kj::StringPtr file, kj::ArrayPtr<const kj::byte> content, kj::StringPtr folder) {
  bool isList = file.endsWith(".lst");
  LabelList list;
  kj::Vector<kj::String> names;
  size_t nameColumn = NO_COLUMN;
  Lines lines(content.asChars());
  while (lines.next()) {
    auto row = lines.row();
    if (row.size() == 0) continue;
    if (row[0] == '#') {
      if (lines.number() == 1) nameColumn = columnNamed("name", cellsOf(row.slice(1, row.size())));
      continue;
    }
    auto cells = cellsOf(row);
    Cell path, label;
    bool isWrong = false;
    if (isList) {
      isWrong = cells.size() != 3;
      if (!isWrong) path = cells[2], label = cells[1];
    } else if (cells.size() > 1) {
      path = cells[0], label = cells[1];
    } else {
      size_t space = row.size();
      while (space > 0 && row[space - 1] != ' ') --space;
      isWrong = space == 0;
      if (!isWrong) path = row.slice(0, space - 1), label = row.slice(space, row.size());
    }
    auto number = isWrong ? kj::Maybe<uint32_t>() : parseLabel(label);
    KJ_IF_MAYBE(l, number) {
      auto& entry = list.labels.upsert(kj::str(folder, withoutDot(kj::heapString(path))),
          Label{.number = *l, .line = lines.number()}, [](Label&, Label&&) {});
      auto& first = entry.value;
      if (first.line != lines.number()) {
        auto labels = first.number == *l
                          ? kj::str()
                          : kj::str(", with label ", first.number, " instead of ", *l);
        configs::fail(file, ":", lines.number(), ": ", printable(entry.key), " is on line ",
            first.line, " already", labels, ". Remove one of the two lines");
      }
      if (nameColumn >= cells.size()) continue;
      auto name = kj::heapString(cells[nameColumn]);
      if (names.size() <= *l) names.resize(*l + 1);
      if (names[*l].size() > 0 && names[*l] != name) {
        configs::fail(file, ":", lines.number(), ": class ", *l, " is called ", printable(name),
            " here, and ", printable(names[*l]), " above");
      }
      names[*l] = kj::mv(name);
    } else {
      configs::fail(file, ":", lines.number(), ": each line must have ",
          isList ? "a number, a tab, a label from 0 to " : "a path, a tab and a label from 0 to ",
          LABEL_MAX, isList ? ", a tab and a path" : "");
    }
  }
  list.classNames = names.releaseAsArray();
  return list;
}

kj::Maybe<uint32_t> parseLabel(kj::ArrayPtr<const char> text) {
  uint64_t label = 0;
  size_t digits = std::find(text.begin(), text.end(), '.') - text.begin();
  if (digits == 0 || digits > 9) return nullptr;
  for (char c: text.slice(0, digits)) {
    if (c < '0' || c > '9') return nullptr;
    label = label * 10 + (c - '0');
  }
  // `3.000000` is a whole number, and `3.` is not a number.
  if (text.size() == digits + 1) return nullptr;
  for (size_t i = digits + 1; i < text.size(); ++i) {
    if (text[i] != '0') return nullptr;
  }
  if (label > LABEL_MAX) return nullptr;
  return uint32_t(label);
}

kj::Array<kj::String> readClassNames(kj::StringPtr path, kj::ArrayPtr<const kj::String> folders) {
  auto content = readFile(path, LABELS_FILE_BYTES_MAX);
  kj::HashMap<kj::StringPtr, size_t> labels;
  for (auto i: kj::indices(folders)) {
    labels.upsert(baseName(folders[i]), i, [](size_t&, size_t) {});
  }
  kj::Vector<kj::String> names;
  auto byFolder = kj::heapArray<kj::String>(folders.size());
  Lines lines(content.asChars());
  while (lines.next()) {
    auto row = lines.row();
    if (row.size() == 0) configs::fail(path, ":", lines.number(), ": each line must name a class");
    if (names.size() > LABEL_MAX) {
      configs::fail(path, ":", lines.number(), ": there are more than ", LABEL_MAX, " classes");
    }
    size_t end = std::find_if(row.begin(), row.end(), isBlank) - row.begin();
    auto first = kj::heapString(row.slice(0, end));
    KJ_IF_MAYBE(label, labels.find(first)) {
      while (end < row.size() && isBlank(row[end])) ++end;
      if (byFolder[*label].size() > 0) {
        configs::fail(path, ":", lines.number(), ": the folder ", first,
            " has a line above. Remove one of the two");
      }
      byFolder[*label] =
          end < row.size() ? kj::heapString(row.slice(end, row.size())) : kj::mv(first);
    }
    names.add(kj::heapString(row));
  }
  // A list of all classes of ImageNet may be used for a part of them.
  bool namesAll = folders.size() > 0;
  for (auto& name: byFolder) namesAll = namesAll && name.size() > 0;
  if (namesAll) return byFolder;
  if (folders.size() > 0 && names.size() != folders.size()) {
    configs::fail(path, " names ", counted(names.size(), "class", "classes"), ", but there are ",
        folders.size(), ". Give each class a line, in the order of their folders");
  }
  return names.releaseAsArray();
}

kj::Array<kj::String> namesOfFolders(kj::ArrayPtr<const kj::String> folders) {
  kj::HashSet<kj::StringPtr> names;
  bool isUnique = true;
  for (auto& folder: folders) {
    auto name = baseName(folder);
    if (names.contains(name))
      isUnique = false;
    else
      names.insert(name);
  }
  return KJ_MAP(folder, folders) {
    return isUnique ? kj::str(baseName(folder)) : kj::str(folder);
  };
}

Labels labelsByFolder(const DataConfig& config, kj::StringPtr images, kj::Array<kj::String> paths) {
  auto names = KJ_MAP(path, paths) {
    return folderName(path);
  };
  std::sort(names.begin(), names.end());
  size_t count = std::unique(names.begin(), names.end()) - names.begin();
  auto folders = names.slice(0, count);
  if (count == 1) {
    configs::fail("all images of ", images,
        " are in one folder, so they form one class. Put the images of each class into a "
        "sub-folder of their own, or their labels into labels.tsv beside them");
  }
  KJ_IF_MAYBE(split, findSplit(folders)) refuseSplit(config, images, *split, folders);
  checkNoneBeside(images, folders, paths);
  Labels labels;
  for (auto& path: paths) {
    auto place = std::lower_bound(folders.begin(), folders.end(), folderName(path));
    labels.upsert(kj::mv(path), Label{uint32_t(place - folders.begin())}, [](Label&, Label&&) {});
  }
  return labels;
}

Labels labelsByKnownFolder(
    kj::StringPtr images, kj::Array<kj::String> paths, kj::ArrayPtr<const kj::String> classes) {
  constexpr uint32_t SEVERAL = kj::maxValue;
  kj::HashMap<kj::StringPtr, uint32_t> byPath, byName;
  for (auto i: kj::indices(classes)) {
    byPath.insert(classes[i], i);
    byName.upsert(baseName(classes[i]), i, [](uint32_t& label, uint32_t) { label = SEVERAL; });
  }
  Labels labels;
  LeftOut unknown;  // folders
  size_t images_unknown = 0;
  kj::HashSet<kj::String> known;
  for (auto& path: paths) {
    auto folder = folderName(path);
    auto label = byPath.find(folder).orDefault(byName.find(baseName(folder)).orDefault(SEVERAL));
    if (label == SEVERAL) {
      ++images_unknown;
      if (known.contains(folder)) continue;
      unknown.add(folder == "" ? "(no folder)"_kj : folder.asPtr());
      known.insert(kj::mv(folder));
    } else {
      labels.upsert(kj::mv(path), Label{label}, [](Label&, Label&&) {});
    }
  }
  if (unknown.count() > 0) {
    configs::fail(counted(images_unknown, "image", "images"), " of ", images,
        images_unknown == 1 ? " lies in " : " lie in ",
        unknown.count() == 1 ? "a folder that is not a class" : "folders that are not classes",
        " of the training images: ", unknown.names(),
        ". Rename or remove the folders, or put the labels of all images into labels.tsv");
  }
  return labels;
}

}  // namespace io
