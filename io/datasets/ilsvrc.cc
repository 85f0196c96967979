#include "io/datasets/ilsvrc.h"

#include <kj/vector.h>

#include <algorithm>

#include "configs/language/failure.h"
#include "io/datasets/archives.h"
#include "io/datasets/mat_file.h"
#include "io/left_out.h"
#include "io/paths.h"

namespace io {

namespace {

constexpr kj::StringPtr TABLE_FILE = "meta.mat"_kj;
constexpr kj::StringPtr TRUTH_FILE = "ILSVRC2012_validation_ground_truth.txt"_kj;
constexpr size_t FILE_BYTES_MAX = size_t(1) << 26;

struct KitFiles {
  kj::Array<kj::byte> table;
  kj::Array<kj::byte> truth;
};

KitFiles readFiles(kj::StringPtr archive) {
  KitFiles files;
  auto members = Members::open(archive);
  for (;;) {
    KJ_IF_MAYBE(path, members->next()) {
      auto read = [&]() {
        return about(
            kj::str(*path, " of ", archive), [&]() { return members->read(FILE_BYTES_MAX); });
      };
      if (baseName(*path) == TABLE_FILE) files.table = read();
      if (baseName(*path) == TRUTH_FILE) files.truth = read();
    } else {
      break;
    }
  }
  if (files.table.size() == 0 || files.truth.size() == 0) {
    configs::fail(archive, " does not contain ", files.table.size() == 0 ? TABLE_FILE : TRUTH_FILE,
        ". Get the development kit of ILSVRC2012 (task 1) again");
  }
  return files;
}

// Returns the number at the end of the name of a validation image.
uint64_t numberOf(kj::StringPtr path) {
  auto name = baseName(path);
  size_t end = name.findLast('.').orDefault(name.size());
  size_t begin = end;
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  return parseLabel(name.slice(begin, end)).orDefault(0);
}

}  // namespace

IlsvrcKit readIlsvrcKit(kj::StringPtr archive) {
  auto files = readFiles(archive);
  IlsvrcKit kit;
  kj::HashMap<uint32_t, kj::String> folders;  // by the kit's number of the class
  auto table = about(
      kj::str(TABLE_FILE, " of ", archive), [&]() { return matTable(files.table, "synsets"); });
  for (auto& row: table) {
    KJ_IF_MAYBE(folder, row.texts.find("WNID"_kj)) {
      KJ_IF_MAYBE(id, row.numbers.find("ILSVRC2012_ID"_kj)) {
        if (!(*id >= 0 && *id <= 1e9)) continue;
        folders.upsert(uint32_t(*id), kj::str(*folder), [](kj::String&, kj::String&&) {});
        KJ_IF_MAYBE(words, row.texts.find("words"_kj)) {
          kit.names.upsert(kj::str(*folder), kj::str(*words), [](kj::String&, kj::String&&) {});
        }
      }
    }
  }
  kj::Vector<kj::String> truth;
  auto rest = files.truth.asPtr().asChars();
  while (rest.size() > 0) {
    size_t end = std::find(rest.begin(), rest.end(), '\n') - rest.begin();
    size_t size = end > 0 && rest[end - 1] == '\r' ? end - 1 : end;
    auto line = rest.slice(0, size);
    rest = rest.slice(kj::min(end + 1, rest.size()), rest.size());
    kj::Maybe<kj::String&> folder;
    KJ_IF_MAYBE(id, parseLabel(line)) folder = folders.find(*id);
    KJ_IF_MAYBE(found, folder) {
      truth.add(kj::str(*found));
    } else {
      configs::fail(TRUTH_FILE, " of ", archive, ", line ", truth.size() + 1,
          ": the line is not the number of a class in ", TABLE_FILE);
    }
  }
  kit.folderOfValidation = truth.releaseAsArray();
  return kit;
}

Labels labelsByKit(const IlsvrcKit& kit, kj::StringPtr images, kj::Array<kj::String> paths,
    kj::ArrayPtr<const kj::String> classes) {
  kj::HashMap<kj::StringPtr, uint32_t> labelOf;
  for (auto i: kj::indices(classes)) {
    labelOf.upsert(baseName(classes[i]), i, [](uint32_t&, uint32_t) {});
  }
  Labels labels;
  LeftOut unknown, untrained;
  for (auto& path: paths) {
    auto number = numberOf(path);
    if (number == 0 || number > kit.folderOfValidation.size()) {
      unknown.add(path);
      continue;
    }
    auto& folder = kit.folderOfValidation[number - 1];
    KJ_IF_MAYBE(label, labelOf.find(folder)) {
      labels.upsert(kj::mv(path), Label{*label}, [](Label&, Label&&) {});
    } else {
      untrained.add(path, folder);
    }
  }
  if (unknown.count() > 0) {
    configs::fail(counted(unknown.count(), "image", "images"), " of ", images,
        " cannot be labelled: ", unknown.names(), ". The name must end in a number from 1 to ",
        kit.folderOfValidation.size());
  }
  if (untrained.count() > 0) {
    configs::fail(counted(untrained.count(), "image", "images"), " of ", images,
        untrained.count() == 1 ? " is of a class" : " are of classes",
        " that no training image has: ", untrained.names());
  }
  return labels;
}

}  // namespace io
