#include "io/datasets/label_checks.h"

#include "configs/language/failure.h"
#include "io/paths.h"

namespace io {

uint32_t Numbers::largest() const {
  uint32_t largest = 0;
  for (auto number: all) largest = kj::max(largest, number);
  return largest;
}

void checkApart(const DataConfig& config, const ImagePlace& training, const ImagePlace& validation,
    Warn& warn) {
  if (training.images == validation.images) {
    warn(kj::str("the images of ", training.images,
        " are both for training and for validation, because ", config.names.source, " and ",
        config.names.validationSource, " name the same place"));
    return;
  }
  auto refuse = [&](kj::StringPtr inner, kj::StringPtr outer) {
    if (pathKind(inner) != PathKind::FOLDER || pathKind(outer) != PathKind::FOLDER) return;
    if (!isBelow(inner, outer)) return;
    configs::fail(inner, " lies in ", outer,
        ", so its images would be both for training and for validation. Move it beside ", outer);
  };
  refuse(validation.images, training.images);
  refuse(training.images, validation.images);
}

void refuseArchiveInside(kj::StringPtr folder, kj::StringPtr archive) {
  bool isInside = pathKind(folder) == PathKind::FOLDER && pathKind(archive) == PathKind::FILE &&
                  isBelow(archive, folder);
  if (!isInside) return;
  configs::fail(archive, " lies in ", folder, ", whose archives are read, so its images would ",
      "be both for training and for validation. Move it beside ", folder);
}

void tellOfBoth(
    kj::StringPtr images, const Labels& training, const Labels& validation, Warn& warn) {
  LeftOut both;
  for (auto& entry: validation) {
    if (training.find(entry.key) != nullptr) both.add(entry.key);
  }
  if (both.count() == 0) return;
  warn(kj::str(counted(both.count(), "image", "images"), " of ", images,
      both.count() == 1 ? " is" : " are", " both for training and for validation: ", both.names()));
}

void tellOfFirstLabel(const Numbers& training, Warn& warn) {
  KJ_IF_MAYBE(file, training.file) {
    uint32_t largest = training.largest();
    if (training.all.find(0u) != nullptr || training.all.size() != largest) return;
    warn(kj::str(*file, " has all labels from 1 to ", largest,
        ", but not 0. Labels count from 0, so the network gets a class without images"));
  }
}

void tellOfUnknownLabels(const Numbers& training, const Numbers& validation, Warn& warn) {
  LeftOut unknown;
  for (auto number: validation.all) {
    if (training.all.find(number) == nullptr) unknown.add(kj::str(number));
  }
  if (unknown.count() == 0) return;
  warn(kj::str(counted(unknown.count(), "label", "labels"),
      " of validation images, but of no training image: ", unknown.names()));
}

void requireNames(
    kj::StringPtr path, kj::ArrayPtr<const kj::String> names, const Numbers& training) {
  KJ_IF_MAYBE(file, training.file) {
    uint32_t largest = training.largest();
    if (largest < names.size()) return;
    configs::fail(path, " names ", counted(names.size(), "class", "classes"), ", but ", *file,
        " has labels up to ", largest, ". Give each label from 0 on a line");
  }
}

}  // namespace io
