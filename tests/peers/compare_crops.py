#!/usr/bin/env python3
"""compare_crops: compares the crops that `bench reader --dump FOLDER` wrote with Pillow's.

Pillow decodes each file, cuts the same part out and resizes it (BILINEAR). Prints one line of JSON:
the mean and the largest difference in grey levels, over all images, and the mean of the worst
image. Exit code 77: there is no Pillow.
"""

import json
import pathlib
import sys

MISSING = 77


def main():
    try:
        import numpy
        import PIL.Image
    except ImportError as error:
        print(error, file=sys.stderr)
        sys.exit(MISSING)
    folder = pathlib.Path(sys.argv[1])
    means, largest = [], 0
    for line in (folder / "crops.jsonl").read_text().splitlines():
        crop = json.loads(line)
        size = crop["size"]
        image = PIL.Image.open(folder / f"{crop['record']}.jpg").convert("RGB")
        left, top = crop["left"], crop["top"]
        image = image.crop((left, top, left + crop["width"], top + crop["height"]))
        theirs = numpy.asarray(image.resize((size, size), PIL.Image.BILINEAR), "float32")
        if crop["mirror"]:
            theirs = theirs[:, ::-1]
        ours = numpy.fromfile(folder / f"{crop['record']}.f32", "float32").reshape(3, size, size)
        ours = ours.transpose(1, 2, 0) / numpy.array(crop["factors"]) + numpy.array(crop["means"])
        difference = numpy.abs(ours - theirs)
        means.append(float(difference.mean()))
        largest = max(largest, float(difference.max()))
    print(json.dumps({"images": len(means), "mean": sum(means) / len(means),
                      "worst_mean": max(means), "largest": largest}, separators=(",", ":")))


if __name__ == "__main__":
    main()
