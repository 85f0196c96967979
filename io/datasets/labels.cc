#include "io/datasets/labels.h"

#include <kj/vector.h>

#include <algorithm>

#include "configs/language/failure.h"
#include "io/left_out.h"
#include "io/paths.h"

namespace io {

namespace {

// A larger label is a mistake in the file. The network would need that many outputs.
constexpr uint64_t LABEL_MAX = 1000000;

// The usual folder names of a data set that is already split.
constexpr kj::StringPtr TRAINING_NAMES[] = {"train"_kj, "training"_kj};
constexpr kj::StringPtr VALIDATION_NAMES[] = {"val"_kj, "valid"_kj, "validation"_kj};
constexpr kj::StringPtr TEST_NAMES[] = {"test"_kj, "testing"_kj};

kj::Maybe<uint64_t> parseLabel(kj::ArrayPtr<const char> digits) {
  uint64_t label = 0;
  if (digits.size() == 0 || digits.size() > 9) return nullptr;
  for (char c: digits) {
    if (c < '0' || c > '9') return nullptr;
    label = label * 10 + (c - '0');
  }
  return label;
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

// Finds such a pair among the folders that hold images, or above these.
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

// Refuses images that lie beside the folders of others, in the folder that holds all, because that
// folder would become a class too. `folders` are sorted.
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
  auto wayOut =
      pathKind(images) == PathKind::FOLDER
          ? kj::str("set ", config.names.source, " to ", images, "/", split.training, " and ",
                config.names.validationSource, " to ", images, "/", split.validation)
          : kj::str("unpack it and set ", config.names.source, " to its folder ", split.training,
                " and ", config.names.validationSource, " to ", split.validation);
  configs::fail(images, " has the folders ", split.training, " and ", split.validation,
      ", which would become one data set of ", folders.size(), " classes (",
      kj::strArray(folders.slice(0, kj::min(folders.size(), size_t(3))), ", "),
      folders.size() > 3 ? ", …" : "", "): ", wayOut,
      ", or put the labels of all images into labels.tsv beside them");
}

}  // namespace

Labels readLabels(kj::StringPtr path) {
  return parseLabels(path, readFile(path, LABELS_FILE_BYTES_MAX), "");
}

Labels parseLabels(kj::StringPtr file, kj::ArrayPtr<const kj::byte> content, kj::StringPtr folder) {
  auto text = content.asChars();
  // Some editors put UTF-8's byte-order mark before the text.
  constexpr kj::StringPtr UTF8_MARK = "\xef\xbb\xbf"_kj;
  if (text.size() >= UTF8_MARK.size() && text.slice(0, UTF8_MARK.size()) == UTF8_MARK) {
    text = text.slice(UTF8_MARK.size(), text.size());
  }
  Labels labels;
  uint line = 0;
  for (size_t at = 0; at < text.size();) {
    ++line;
    size_t end = std::find(text.begin() + at, text.end(), '\n') - text.begin();
    auto row = text.slice(at, end);
    at = end + 1;
    if (row.size() > 0 && row.back() == '\r') row = row.slice(0, row.size() - 1);
    if (row.size() == 0 || row[0] == '#') continue;
    size_t tab = std::find(row.begin(), row.end(), '\t') - row.begin();
    auto rest = row.slice(kj::min(tab + 1, row.size()), row.size());
    auto label =
        parseLabel(rest.slice(0, std::find(rest.begin(), rest.end(), '\t') - rest.begin()));
    KJ_IF_MAYBE(l, label) {
      if (*l > LABEL_MAX) {
        configs::fail(file, ":", line, ": the label ", *l, " is above ", LABEL_MAX);
      }
      auto path = kj::heapString(row.slice(0, tab));
      auto& entry = labels.upsert(
          kj::str(folder, withoutDot(path)), Label{uint32_t(*l)}, [](Label&, Label&&) {});
      if (entry.value.number != *l) {
        configs::fail(file, ":", line, ": ", entry.key, " has two labels");
      }
    } else {
      configs::fail(
          file, ":", line, ": each line must have a path, a tab and a label from 0 to ", LABEL_MAX);
    }
  }
  return labels;
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
  LeftOut unknown;
  for (auto& path: paths) {
    auto folder = folderName(path);
    auto label = byPath.find(folder).orDefault(byName.find(baseName(folder)).orDefault(SEVERAL));
    if (label == SEVERAL) {
      unknown.add(folder);
    } else {
      labels.upsert(kj::mv(path), Label{label}, [](Label&, Label&&) {});
    }
  }
  if (unknown.count() > 0) {
    configs::fail(counted(unknown.count(), "image", "images"), " of ", images,
        unknown.count() == 1 ? " lies in a folder" : " lie in folders",
        " that is no class of the training images: ", unknown.names(),
        ". Rename or remove the folders, or put the labels of all images into labels.tsv");
  }
  return labels;
}

}  // namespace io
