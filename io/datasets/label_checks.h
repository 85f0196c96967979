// io/datasets/label_checks.h: looks for mistakes that show only when training images, validation
// images and names of classes are considered together.
#pragma once

#include <kj/map.h>

#include "io/data_config.h"
#include "io/datasets/labels.h"
#include "io/datasets/sources.h"
#include "io/left_out.h"

namespace io {

// The numbers that label the images of one place.
struct Numbers {
  kj::TreeSet<uint32_t> all;
  // The file of the labels, by its name in messages. Null if the labels are those of folders.
  kj::Maybe<kj::String> file;

  // Returns 0 if there are no labels.
  uint32_t largest() const;
};

// Refuses a folder of training images within a folder of validation images, or the reverse, because
// the inner images would belong to both, perhaps under different labels. Warns if both are the same
// place.
void checkApart(
    const DataConfig& config, const ImagePlace& training, const ImagePlace& validation, Warn& warn);

// Refuses images in an archive within `folder` if the archives of that folder are read, too: the
// images would be both for training and for validation.
void refuseArchiveInside(kj::StringPtr folder, kj::StringPtr archive);

// Warns of images that two lists name, one for training and one for validation.
void tellOfBoth(kj::StringPtr images, const Labels& training, const Labels& validation, Warn& warn);

// Warns if labels are probably counted from 1.
void tellOfFirstLabel(const Numbers& training, Warn& warn);
// Warns of labels that only validation images have.
void tellOfUnknownLabels(const Numbers& training, const Numbers& validation, Warn& warn);

// Throws if `training` comes from a list, and the file at `path`, whose lines are `names`, has no
// line for the largest label of that list.
void requireNames(
    kj::StringPtr path, kj::ArrayPtr<const kj::String> names, const Numbers& training);

}  // namespace io
