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

// Returns the image of a JPEG or PNG file as a JPEG file for a sheet. Its shorter side has at most
// 300 pixels, twice as many as the sheet shows: a page of whole photographs would take hundreds of
// megabytes. Throws if the file cannot be decoded; the text begins with a verb.
kj::Array<kj::byte> thumbnailOf(kj::ArrayPtr<const kj::byte> file);

// Every sheet begins with these bytes.
constexpr kj::StringPtr SHEET_BEGIN = "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\""_kj;

// Returns a self-contained HTML page. It is also well-formed XML. `summary` stands above the
// images. So does `details`, which is HTML.
kj::String contactSheet(kj::StringPtr title, kj::StringPtr summary,
    kj::ArrayPtr<const SheetImage> images, kj::StringPtr details = nullptr);

}  // namespace runner
