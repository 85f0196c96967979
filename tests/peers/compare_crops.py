#!/usr/bin/env python3
"""compare_crops: compares the crops that `bench reader --dump FOLDER` wrote with Pillow's.

Pillow decodes each file, cuts the same part out and resizes it (BILINEAR). The result is compared
with our image before its colours change. torchvision then changes the colours of our image in the
same way, and this script adds the light and hides the square. The result is compared with our
finished image.

Prints one line of JSON with differences in grey levels: the mean and the largest over all images,
the mean of the worst image, and the largest of finished images (colours_largest; null without
torchvision). Exit code 77: there is no Pillow.
"""

import json
import pathlib
import sys

MISSING = 77


def by_torchvision(crop, plain):
    """Returns `plain` (grey levels, channels first) with its colours changed as `crop` says.

    Returns None without torchvision.
    """
    try:
        import torch
        from torchvision.transforms.v2 import functional
    except ImportError as error:
        print(error, file=sys.stderr)
        return None
    # torchvision clips values to 0 … 1 after each step. Values that begin in 0.4 … 0.53 are not
    # clipped. Each step is linear, so the move into this range can be undone.
    level, extent = 0.4, 2048
    image = torch.from_numpy(plain.copy())
    for key in "brightness", "contrast", "saturation":
        change = getattr(functional, f"adjust_{key}")
        zero = change(torch.full_like(image, level), crop[key])
        image = (change(image / extent + level, crop[key]) - zero) * extent
    light = torch.tensor(crop["light"]).reshape(3, 1, 1)
    return (image + light).numpy()


def main():
    try:
        import numpy
        import PIL.Image
    except ImportError as error:
        print(error, file=sys.stderr)
        sys.exit(MISSING)
    folder = pathlib.Path(sys.argv[1])
    means, largest, colours_largest = [], 0, 0
    for line in (folder / "crops.jsonl").read_text().splitlines():
        crop = json.loads(line)
        size = crop["size"]

        def ours(ending):
            values = numpy.fromfile(folder / f"{crop['record']}{ending}", "float32")
            values = values.reshape(3, size, size)
            per_channel = [numpy.array(crop[key]).reshape(3, 1, 1) for key in ("factors", "means")]
            return values / per_channel[0] + per_channel[1]

        image = PIL.Image.open(folder / f"{crop['record']}.jpg").convert("RGB")
        left, top = crop["left"], crop["top"]
        image = image.crop((left, top, left + crop["width"], top + crop["height"]))
        theirs = numpy.asarray(image.resize((size, size), PIL.Image.BILINEAR), "float32")
        if crop["mirror"]:
            theirs = theirs[:, ::-1]
        plain = ours(".plain.f32")
        difference = numpy.abs(plain - theirs.transpose(2, 0, 1))
        means.append(float(difference.mean()))
        largest = max(largest, float(difference.max()))

        finished = by_torchvision(crop, plain)
        if finished is None:
            colours_largest = None
            continue
        top, left, side = crop["hidden"]
        hidden = finished[:, max(top, 0):max(top + side, 0), max(left, 0):max(left + side, 0)]
        hidden[:] = numpy.array(crop["means"]).reshape(3, 1, 1)
        colours_largest = max(colours_largest, float(numpy.abs(ours(".f32") - finished).max()))
    print(json.dumps({"images": len(means), "mean": sum(means) / len(means),
                      "worst_mean": max(means), "largest": largest,
                      "colours_largest": colours_largest}, separators=(",", ":")))


if __name__ == "__main__":
    main()
