#include "runner/report/contact_sheet.h"

#include <kj/encoding.h>
#include <kj/vector.h>

#include "io/images/kept_image.h"
#include "runner/report/report_style.h"
#include "runner/text/html.h"

namespace runner {

namespace {

using kj::uint;

// Small images are enlarged without smoothing, so that their pixels can be seen.
constexpr kj::StringPtr SHEET_STYLE = R"(
.sheet { display: flex; flex-wrap: wrap; gap: 12px; }
.sheet figure { margin: 0; width: 150px; }
.sheet img {
  width: 150px; height: 150px; object-fit: contain; background: var(--band);
  image-rendering: pixelated;
}
.sheet figcaption { overflow-wrap: anywhere; font-size: 12.5px; }
)"_kj;

kj::String figureOf(const SheetImage& image) {
  auto title = escaped(image.title);
  return kj::str("<figure title=\"", title, "\"><img alt=\"", title,
      "\" src=\"data:image/jpeg;base64,", kj::encodeBase64(image.jpeg), "\"/><figcaption>",
      escaped(image.caption), "</figcaption></figure>\n");
}

}  // namespace

kj::Array<kj::byte> thumbnailOf(kj::ArrayPtr<const kj::byte> file) {
  constexpr uint SIDE_MAX = 300;
  io::DataConfig config{};
  config.encoding = io::Encoding::JPEG;
  io::ImageTools tools;
  auto kept = io::keepFile(config, file, tools);
  if (kj::min(kept.shape.height, kept.shape.width) > SIDE_MAX) {
    config.resizeShortSide = SIDE_MAX;
    kept = io::keepFile(config, file, tools);
  }
  return kj::heapArray(kept.bytes);
}

kj::String contactSheet(kj::StringPtr title, kj::StringPtr summary,
    kj::ArrayPtr<const SheetImage> images, kj::StringPtr details) {
  auto figures = KJ_MAP(image, images) {
    return figureOf(image);
  };
  return kj::str(SHEET_BEGIN, "http://www.w3.org/1999/xhtml\">\n",
      "<head><meta charset=\"utf-8\"/><title>", escaped(title), "</title><style>", REPORT_STYLE,
      SHEET_STYLE, "</style></head>\n<body>\n<h1>", escaped(title), "</h1>\n<p class=\"quiet\">",
      escaped(summary), "</p>\n", details, "<div class=\"sheet\">\n", kj::strArray(figures, ""),
      "</div>\n</body>\n</html>\n");
}

}  // namespace runner
