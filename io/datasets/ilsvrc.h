// io/datasets/ilsvrc.h: ImageNet's ILSVRC2012 as it is downloaded from image-net.org: a tar of tars
// with the training images, a tar with the validation images, and a development kit with the labels
// of these.
#pragma once

#include "io/datasets/labels.h"

namespace io {

// The content of the development kit.
struct IlsvrcKit {
  // The name of a class ("tench, Tinca tinca"), by the name of its folder of training images
  // ("n01440764").
  kj::HashMap<kj::String, kj::String> names;
  // The folder to which each validation image belongs. Images count from 1 in their file names.
  kj::Array<kj::String> folderOfValidation;
};

// Reads data/meta.mat and data/ILSVRC2012_validation_ground_truth.txt of the archive. Throws with
// its path if they are not there, or are not what the kit's readme describes.
IlsvrcKit readIlsvrcKit(kj::StringPtr archive);

// Labels the validation images `paths` of `images`, such as ILSVRC2012_val_00000001.JPEG, with the
// numbers that `classes` (folders, by label) have for the training images. Throws if an image has
// no number that the kit knows.
Labels labelsByKit(const IlsvrcKit& kit, kj::StringPtr images, kj::Array<kj::String> paths,
    kj::ArrayPtr<const kj::String> classes);

}  // namespace io
