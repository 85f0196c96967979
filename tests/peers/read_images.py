#!/usr/bin/env python3
"""read_images: images/s of other programs' readers, on one thread.

  read_images.py opencv FOLDER --size 224 --area 0.08 1 --seconds 2
  read_images.py simplejpeg FOLDER --asked     measures again for each line of standard input

All JPEG files of FOLDER are read into memory first. Every reader does the same work: it decodes a
file, cuts out a random part of it, resizes that part to SIZE x SIZE bilinearly, mirrors half of the
images, subtracts a mean, divides by a deviation, and writes the result as float32, channels first,
into a batch. A measurement is one line of JSON: images_per_s, cpu_images_per_s (per second of
processor time), peak_bytes, version. Exit code 77: the library is not installed.
"""

import argparse
import contextlib
import importlib
import itertools
import json
import math
import os
import pathlib
import random
import resource
import sys
import time

MISSING = 77
BATCH = 32
MEAN = (123.68, 116.779, 103.939)
DEVIATION = (58.393, 57.12, 57.375)


def random_crop(width, height, area, aspect):
    """Draws a part as torchvision's RandomResizedCrop does. Returns left, top, width, height."""
    for _ in range(10):
        part = width * height * random.uniform(*area)
        ratio = math.exp(random.uniform(math.log(aspect[0]), math.log(aspect[1])))
        w, h = round(math.sqrt(part * ratio)), round(math.sqrt(part / ratio))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    side = min(width, height)
    return (width - side) // 2, (height - side) // 2, side, side


class Pillow:
    """Also pillow-simd, which is the same module."""
    modules = ["PIL.Image", "numpy"]

    def __init__(self, options):
        import numpy
        import PIL
        import PIL.Image
        self.version = f"Pillow {PIL.__version__}"
        self.image, self.numpy, self.options = PIL.Image, numpy, options
        self.mean = numpy.array(MEAN, "float32")
        self.factor = 1 / numpy.array(DEVIATION, "float32")

    def read(self, data, mirror, out):
        import io
        size = self.options.size
        image = self.image.open(io.BytesIO(data)).convert("RGB")
        left, top, width, height = random_crop(*image.size, self.options.area, self.options.aspect)
        image = image.resize((size, size), self.image.BILINEAR,
                             box=(left, top, left + width, top + height))
        normalise(self, self.numpy.asarray(image), mirror, out)


def normalise(reader, pixels, mirror, out):
    if mirror:
        pixels = pixels[:, ::-1]
    out[...] = ((pixels - reader.mean) * reader.factor).transpose(2, 0, 1)


class OpenCv:
    modules = ["cv2", "numpy"]

    def __init__(self, options):
        import cv2
        import numpy
        cv2.setNumThreads(1)
        self.version = f"OpenCV {cv2.__version__}"
        self.cv2, self.numpy, self.options = cv2, numpy, options
        self.mean = numpy.array(MEAN, "float32")
        self.factor = 1 / numpy.array(DEVIATION, "float32")

    def decode(self, data):
        image = self.cv2.imdecode(self.numpy.frombuffer(data, "uint8"), self.cv2.IMREAD_COLOR)
        return self.cv2.cvtColor(image, self.cv2.COLOR_BGR2RGB)

    def read(self, data, mirror, out):
        image = self.decode(data)
        left, top, width, height = random_crop(
            image.shape[1], image.shape[0], self.options.area, self.options.aspect)
        part = image[top:top + height, left:left + width]
        size = self.options.size
        part = self.cv2.resize(part, (size, size), interpolation=self.cv2.INTER_LINEAR)
        if mirror:
            part = self.cv2.flip(part, 1)
        planes = self.cv2.split(part)
        for c in range(3):
            self.numpy.subtract(planes[c], self.mean[c], out=out[c])
            self.numpy.multiply(out[c], self.factor[c], out=out[c])


class SimpleJpeg(OpenCv):
    """simplejpeg decodes, OpenCV does the rest."""
    modules = ["simplejpeg", "cv2", "numpy"]

    def __init__(self, options):
        super().__init__(options)
        import importlib.metadata
        import simplejpeg
        self.simplejpeg = simplejpeg
        self.version = f"simplejpeg {importlib.metadata.version('simplejpeg')}, {self.version}"

    def decode(self, data):
        return self.simplejpeg.decode_jpeg(data, "RGB")


class TorchVision:
    modules = ["torchvision", "torch"]

    def __init__(self, options):
        import torch
        import torchvision
        from torchvision.transforms import v2
        torch.set_num_threads(1)
        self.version = f"torchvision {torchvision.__version__}"
        self.torch, self.io = torch, torchvision.io
        self.transform = v2.Compose([
            v2.RandomResizedCrop(options.size, scale=options.area, ratio=options.aspect,
                                 antialias=True),
            v2.RandomHorizontalFlip(0.5),
            v2.ToDtype(torch.float32),
            v2.Normalize(MEAN, DEVIATION)])

    def read(self, data, mirror, out):
        torch = self.torch
        encoded = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        image = self.io.decode_jpeg(encoded, mode=self.io.ImageReadMode.RGB)
        torch.from_numpy(out).copy_(self.transform(image))


class Spdl:
    """SPDL: FFmpeg decodes, cuts, resizes and mirrors."""
    modules = ["spdl.io", "numpy"]

    def __init__(self, options):
        import importlib.metadata
        import numpy
        import spdl.io
        self.version = f"SPDL {importlib.metadata.version('spdl-io')}"
        self.io, self.options = spdl.io, options
        self.mean = numpy.array(MEAN, "float32")
        self.factor = 1 / numpy.array(DEVIATION, "float32")

    def read(self, data, mirror, out):
        packets = self.io.demux_image(data)
        left, top, width, height = random_crop(
            packets.codec.width, packets.codec.height, self.options.area, self.options.aspect)
        size = self.options.size
        steps = [f"crop={width}:{height}:{left}:{top}", f"scale={size}:{size}:flags=bilinear",
                 *(["hflip"] if mirror else []), "format=pix_fmts=rgb24"]
        frames = self.io.decode_packets(packets, filter_desc=",".join(steps))
        normalise(self, self.io.to_numpy(self.io.convert_frames(frames)), False, out)


class MxNet:
    """MXNet's ImageRecordIter, from a RecordIO file with the same JPEG files."""
    modules = ["mxnet"]

    def __init__(self, options):
        import mxnet
        self.version = f"MXNet {mxnet.__version__}"
        # A file without a name: nothing stays when the program is killed.
        self.file = open(os.memfd_create("images.rec"), "wb")
        path = f"/proc/self/fd/{self.file.fileno()}"
        records = mxnet.recordio.MXRecordIO(path, "w")
        for i, file in enumerate(sorted(options.folder.iterdir())):
            header = mxnet.recordio.IRHeader(0, i, i, 0)
            records.write(mxnet.recordio.pack(header, file.read_bytes()))
        records.close()
        red, green, blue = MEAN
        red_deviation, green_deviation, blue_deviation = DEVIATION
        self.batches = mxnet.io.ImageRecordIter(
            path_imgrec=path, data_shape=(3, options.size, options.size), batch_size=BATCH,
            random_resized_crop=True, min_random_area=options.area[0],
            max_random_area=options.area[1], min_aspect_ratio=options.aspect[0],
            max_aspect_ratio=options.aspect[1], rand_mirror=True, mean_r=red, mean_g=green,
            mean_b=blue, std_r=red_deviation, std_g=green_deviation, std_b=blue_deviation,
            preprocess_threads=1, prefetch_buffer=1, round_batch=True)

    def read_batch(self):
        try:
            batch = self.batches.next()
        except StopIteration:
            self.batches.reset()
            batch = self.batches.next()
        batch.data[0].wait_to_read()
        return BATCH - batch.pad


class Dali:
    """NVIDIA DALI's pipeline for processors."""
    modules = ["nvidia.dali"]

    def __init__(self, options):
        import numpy
        import nvidia.dali
        from nvidia.dali import fn, types
        self.version = f"DALI {nvidia.dali.__version__}"
        files = itertools.cycle(
            [numpy.fromfile(path, "uint8") for path in sorted(options.folder.iterdir())])

        @nvidia.dali.pipeline_def(batch_size=BATCH, num_threads=1, device_id=None)
        def pipeline():
            encoded = fn.external_source(source=files, batch=False, dtype=types.UINT8)
            images = fn.decoders.image_random_crop(
                encoded, device="cpu", output_type=types.RGB, random_area=options.area,
                random_aspect_ratio=options.aspect)
            images = fn.resize(images, size=(options.size, options.size),
                               interp_type=types.INTERP_LINEAR)
            return fn.crop_mirror_normalize(
                images, dtype=types.FLOAT, output_layout="CHW", mean=list(MEAN),
                std=list(DEVIATION), mirror=fn.random.coin_flip())

        self.pipeline = pipeline()
        self.pipeline.build()

    def read_batch(self):
        self.pipeline.run()
        return BATCH


class Ffcv:
    """FFCV's loader with one worker. It reads a file of its own format, for which it compresses the
    images anew, as JPEG of quality 90."""
    modules = ["ffcv", "torch", "PIL.Image"]

    def __init__(self, options):
        import importlib.metadata
        import ffcv
        import numpy
        import PIL.Image
        from ffcv.fields import IntField, RGBImageField
        from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
        from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage
        self.version = f"FFCV {importlib.metadata.version('ffcv')}"
        paths = sorted(options.folder.iterdir())

        class Images:
            def __len__(self):
                return len(paths)

            def __getitem__(self, i):
                return numpy.array(PIL.Image.open(paths[i]).convert("RGB")), 0

        # A file without a name: nothing stays when the program is killed.
        self.file = open(os.memfd_create("images.beton"), "wb")
        path = f"/proc/{os.getpid()}/fd/{self.file.fileno()}"
        writer = ffcv.DatasetWriter(path, {
            "image": RGBImageField(write_mode="jpg", jpeg_quality=90), "label": IntField()},
            num_workers=1)
        with open(os.devnull, "w") as nothing, contextlib.redirect_stderr(nothing):
            writer.from_indexed_dataset(Images())  # draws a progress bar
        size = (options.size, options.size)
        self.loader = ffcv.Loader(
            path, batch_size=BATCH, num_workers=1, os_cache=True, drop_last=True,
            order=ffcv.loader.OrderOption.RANDOM, batches_ahead=1,
            pipelines={"label": None, "image": [
                RandomResizedCropRGBImageDecoder(
                    size, scale=tuple(options.area), ratio=tuple(options.aspect)),
                RandomHorizontalFlip(),
                NormalizeImage(numpy.array(MEAN), numpy.array(DEVIATION), numpy.float32),
                ToTensor(), ToTorchImage(channels_last=False)]})
        self.batches = iter(self.loader)

    def read_batch(self):
        try:
            batch = next(self.batches)
        except StopIteration:
            self.batches = iter(self.loader)
            batch = next(self.batches)
        return len(batch[0])


READERS = {"pillow": Pillow, "opencv": OpenCv, "simplejpeg": SimpleJpeg,
           "torchvision": TorchVision, "spdl": Spdl, "mxnet": MxNet, "dali": Dali, "ffcv": Ffcv}


def measure(reader, files, batch, seconds):
    begin, cpu = time.perf_counter(), time.process_time()
    count = 0
    while count < 8 or time.perf_counter() - begin < seconds:
        if hasattr(reader, "read_batch"):
            count += reader.read_batch()
            continue
        reader.read(files[count % len(files)], count % 2, batch[count % BATCH])
        count += 1
    return {"images_per_s": count / (time.perf_counter() - begin),
            "cpu_images_per_s": count / (time.process_time() - cpu),
            "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "version": reader.version}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=sorted(READERS))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--area", type=float, nargs=2, default=(0.08, 1.0))
    parser.add_argument("--aspect", type=float, nargs=2, default=(3 / 4, 4 / 3))
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--asked", action="store_true")
    options = parser.parse_args()
    for module in READERS[options.name].modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            print(f"{options.name}: {error}", file=sys.stderr)
            sys.exit(MISSING)
    import numpy
    files = [path.read_bytes() for path in sorted(options.folder.iterdir())]
    if not files:
        sys.exit(f"{options.folder} has no files")
    batch = numpy.empty((BATCH, 3, options.size, options.size), "float32")
    reader = READERS[options.name](options)
    measure(reader, files, batch, min(options.seconds, 0.2))
    if not options.asked:
        print(json.dumps(measure(reader, files, batch, options.seconds)))
        return
    for _ in sys.stdin:
        print(json.dumps(measure(reader, files, batch, options.seconds)), flush=True)


if __name__ == "__main__":
    main()
