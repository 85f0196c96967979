// runner/report/contact_sheet.h: a page that shows images with their labels.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace runner {

// An image of a sheet.
struct SheetImage {
  kj::Array<kj::byte> jpeg;
  kj::String caption;
  kj::String title;  // what a pointer on the image shows
};

// Returns an HTML page that needs nothing else. It is well-formed XML, too. `summary` stands above
// the images. So does `details`, which is HTML.
kj::String contactSheet(kj::StringPtr title, kj::StringPtr summary,
    kj::ArrayPtr<const SheetImage> images, kj::StringPtr details = nullptr);

}  // namespace runner
