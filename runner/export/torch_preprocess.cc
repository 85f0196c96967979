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

// Puts lines together, with the indentation of a function's body.
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
  bool isGrey = channels == 1;
  lines.add("if not isinstance(image, torch.Tensor):");
  lines.add("    from PIL import ImageOps");
  lines.add("    image = ImageOps.exif_transpose(image).convert(\"", isGrey ? "L" : "RGB", "\")");
  lines.add("    pixels = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)");
  lines.add(
      "    image = pixels.reshape(image.height, image.width, ", channels, ").permute(2, 0, 1)");
  lines.add("x = image.float().reshape(-1, *image.shape[-3:])");
}

void addSizeCheck(Lines& lines, io::ImageShape images) {
  lines.add("if x.shape[1:] != (", images.channels, ", ", images.height, ", ", images.width, "):");
  lines.add("    raise ValueError(f\"the network was trained on images of ", io::sizeOf(images),
      " pixels with ", images.channels, " channel", images.channels == 1 ? "" : "s",
      ", not on {x.shape[3]}×{x.shape[2]}, {x.shape[1]}\")");
}

void addResize(Lines& lines, uint shortSide) {
  lines.add("# What an import does: to ", shortSide,
      " pixels on the shorter side, in whole grey "
      "levels.");
  lines.add("shorter = min(x.shape[2:])");
  lines.add(
      "size = [(2 * side * ", shortSide, " + shorter) // (2 * shorter) for side in x.shape[2:]]");
  lines.add("x = F.interpolate(x, size, mode=\"bilinear\", align_corners=False)");
  lines.add("x = torch.floor(x + 0.5)");
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
  lines.add("height, width = x.shape[2:]");
  lines.add("if min(height, width) < ", crop - kj::min(crop, 2 * steps.pad), ":");
  lines.add("    raise ValueError(f\"no crop of ", crop, "×", crop,
      " pixels fits in an image of {width}×{height}\")");
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

}  // namespace

kj::String torchPreprocess(const Preprocessing& steps, uint channels) {
  Lines lines;
  addConversion(lines, channels);
  if (steps.images.size() > 0) addSizeCheck(lines, steps.images);
  if (steps.resizeShortSide > 0) addResize(lines, steps.resizeShortSide);
  if (steps.centreCrop > 0) {
    addResizedCrop(lines, steps.centreCrop, steps.crop);
  } else if (steps.crop > 0) {
    addCrop(lines, steps);
  }
  addNormalisation(lines, steps);
  lines.add("return x.reshape(*image.shape[:-3], *x.shape[1:])");
  return kj::str(HEAD, lines.text());
}

}  // namespace runner
