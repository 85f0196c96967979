// runner/report/contact_sheet.h: a page that shows images with their labels.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace runner {

// An image of a sheet.
struct SheetImage {
  kj::Array<kj::byte> jpeg;
  kj::String caption;
  kj::String title;  // the text that a mouse pointer over the image shows
};

// Returns a self-contained HTML page. It is also well-formed XML. `summary` stands above the
// images. So does `details`, which is HTML.
kj::String contactSheet(kj::StringPtr title, kj::StringPtr summary,
    kj::ArrayPtr<const SheetImage> images, kj::StringPtr details = nullptr);

}  // namespace runner
