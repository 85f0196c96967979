#include "runner/export/torch_preprocess.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include "runner/text/numbers.h"

namespace runner {

namespace {

constexpr kj::StringPtr HEAD = R"(def preprocess(image):
    """Returns the centre view of an image, normalised as in validation: C×H×W.

    `image` is a PIL image, or a tensor of grey levels from 0 to 255: C×H×W, or N×C×H×W for N images.
    """
)"_kj;

constexpr kj::StringPtr COVER = R"(def cover(x, height, width):
    """Resizes the middle of images: the largest part with the aspect ratio of the new size."""
    scale = min(x.shape[2] / height, x.shape[3] / width)

    def weights(size, new):
        pixels = torch.arange(size, dtype=torch.float64) + 0.5 - size / 2
        centres = (torch.arange(new, dtype=torch.float64) + 0.5 - new / 2) * scale
        triangles = 1 - (pixels - centres[:, None]).abs() / max(scale, 1)
        values = triangles.clamp(min=0) * (pixels.abs() < (new * scale + 1) / 2)
        return (values / values.sum(1, keepdim=True)).to(x)

    x = weights(x.shape[2], height) @ x @ weights(x.shape[3], width).T
    return torch.floor(x + 0.5)


)"_kj;

// Collects lines, with the indentation of a function's body.
class Lines {
public:
  template <typename... Params>
  void add(Params&&... params) {
    lines.add(kj::str("    ", kj::fwd<Params>(params)..., "\n"));
  }
  kj::String text() const { return kj::strArray(lines, ""); }

private:
  kj::Vector<kj::String> lines;
};

void addConversion(Lines& lines, uint channels) {
  lines.add("if not isinstance(image, torch.Tensor):");
  lines.add("    from PIL import ImageOps");
  lines.add("    image = ImageOps.exif_transpose(image).convert(\"RGB\")");
  lines.add("    pixels = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)");
  lines.add("    image = pixels.reshape(image.height, image.width, 3).permute(2, 0, 1)");
  lines.add("x = image.float().reshape(-1, *image.shape[-3:])");
  if (channels == 1) {
    lines.add("if x.shape[1] == 3:  # colours become grey");
    lines.add("    shares = x.new_tensor([0.299, 0.587, 0.114]).reshape(-1, 1, 1)");
    lines.add("    x = (x * shares).sum(1, keepdim=True)");
  }
}

// Adds code that resizes images to `to` if their size is not `from`.
void addCover(Lines& lines, io::ImageShape from, io::ImageShape to) {
  lines.add("if x.shape[2:] != (", from.height, ", ", from.width,
      "):  # another size than in the data set");
  lines.add("    x = cover(x, ", to.height, ", ", to.width, ")");
}

void addResize(Lines& lines, uint shortSide, kj::StringPtr indentation) {
  auto add = [&](kj::StringPtr line) { lines.add(indentation, line); };
  add("# Resizes as an import does, and rounds to whole grey levels.");
  add("shorter = min(x.shape[2:])");
  add(kj::str(
      "size = [(2 * side * ", shortSide, " + shorter) // (2 * shorter) for side in x.shape[2:]]"));
  add("x = F.interpolate(x, size, mode=\"bilinear\", align_corners=False)");
  add("x = torch.floor(x + 0.5)");
}

void addResizedCrop(Lines& lines, double centreCrop, uint crop) {
  lines.add("height, width = x.shape[2:]");
  lines.add("side = max(1, int(min(height, width) * ", centreCrop, " + 0.5))");
  lines.add("top, left = (height - side) // 2, (width - side) // 2");
  lines.add("x = x[:, :, top:top + side, left:left + side]");
  lines.add("x = F.interpolate(x, (", crop, ", ", crop,
      "), mode=\"bilinear\", align_corners=False, antialias=True)");
}

kj::String paddingArguments(const Preprocessing& steps) {
  switch (steps.padMode) {
    case io::Padding::REFLECT:
      return kj::str("mode=\"reflect\"");
    case io::Padding::EDGE:
      return kj::str("mode=\"replicate\"");
    case io::Padding::VALUE:
      return kj::str("value=", shortest(steps.padValue));
  }
  KJ_UNREACHABLE;
}

void addCrop(Lines& lines, const Preprocessing& steps) {
  uint crop = steps.crop;
  if (steps.images.size() == 0) {
    lines.add("if min(x.shape[2:]) < ", crop - kj::min(crop, 2 * steps.pad), ":  # too small");
    lines.add("    x = cover(x, ", crop, ", ", crop, ")");
  }
  lines.add("height, width = x.shape[2:]");
  lines.add("top, left = (height - ", crop, ") // 2, (width - ", crop, ") // 2");
  if (steps.pad > 0) {
    lines.add("if top < 0 or left < 0:  # the crop reaches over the edge");
    lines.add("    border = [max(0, -left), max(0, left + ", crop, " - width),");
    lines.add("              max(0, -top), max(0, top + ", crop, " - height)]");
    lines.add("    x = F.pad(x, border, ", paddingArguments(steps), ")");
    lines.add("    top, left = max(0, top), max(0, left)");
  }
  lines.add("x = x[:, :, top:top + ", crop, ", left:left + ", crop, "]");
}

kj::String listOf(kj::ArrayPtr<const float> numbers) {
  auto texts = KJ_MAP(x, numbers) {
    return shortest(x);
  };
  return kj::str("x.new_tensor([", kj::strArray(texts, ", "), "]).reshape(-1, 1, 1)");
}

void addNormalisation(Lines& lines, const Preprocessing& steps) {
  if (steps.hasMeanImage()) {
    lines.add("x = x - read_tensors()[\"", MEAN_IMAGE, "\"].to(x.device)");
  } else if (steps.subtracts()) {
    lines.add("x = x - ", listOf(steps.means));
  }
  if (steps.multiplies()) lines.add("x = x * ", listOf(steps.factors));
}

// Adds code that resizes an image to the size that the data set stores.
void addStored(Lines& lines, const Preprocessing& steps) {
  uint shortSide = steps.resizeShortSide;
  if (steps.images.size() > 0) {
    auto stored = shortSide > 0 ? io::resizedShape(steps.images, shortSide) : steps.images;
    addCover(lines, steps.images, stored);
    if (shortSide > 0) {
      lines.add("else:");
      addResize(lines, shortSide, "    ");
    }
    return;
  }
  if (shortSide > 0) addResize(lines, shortSide, "");
  if (steps.crop == 0) addCover(lines, steps.view, steps.view);
}

}  // namespace

kj::String torchPreprocess(const Preprocessing& steps) {
  Lines lines;
  addConversion(lines, steps.view.channels);
  addStored(lines, steps);
  if (steps.view.channels == 1) lines.add("x = torch.floor(x + 0.5)");
  if (steps.centreCrop > 0) {
    addResizedCrop(lines, steps.centreCrop, steps.crop);
  } else if (steps.crop > 0) {
    addCrop(lines, steps);
  }
  addNormalisation(lines, steps);
  lines.add("return x.reshape(*image.shape[:-3], *x.shape[1:])");
  auto text = kj::str(HEAD, lines.text());
  bool covers = steps.images.size() > 0 || steps.centreCrop == 0;
  return covers ? kj::str(COVER, text) : kj::mv(text);
}

}  // namespace runner
