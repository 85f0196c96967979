#!/usr/bin/env python3
"""train_airbench94: trains CIFAR-10 by configs/cifar10_airbench94.toml in PyTorch, at its best.

  train_airbench94.py --data FOLDER --seeds 1-6 --warm-up
  train_airbench94.py --data FOLDER --seeds 1-3 --compile default --json
  train_airbench94.py --data FOLDER --device cpu --steps 3 --batch 64 --images 256

FOLDER holds cifar-10-binary.tar.xz, or data_batch_1.bin … test_batch.bin, or the latter in
cifar-10-batches-bin. networks.py has the network. It lies next to this script or in PYTHONPATH.

All images lie in the memory of the device. One call crops and mirrors those of a whole pass.
Weights and images have half precision and PyTorch's fastest layout (channels_last). Batch norm and
the loss are computed in float32. With --steps, the schedules of learning rate and lookahead span
that many steps.

--compile applies torch.compile() to the forward pass with the loss, to the evaluation (both in the
given mode) and to the crops (in the default mode). A first run that is not reported then compiles
everything. --warm-up makes such a run without --compile, too.

--json prints one line for each seed:
  seed, steps
  accuracy      of the 10,000 test images, from six views of each
  loss          of the last batch, per image
  training_s    all steps, with everything that makes their batches from the images' bytes
  evaluation_s  the accuracy
  setup_s       the first weights, including the filters that whiten patches
The last line has the mean accuracy, its standard error and the mean times. None of these times
includes loading data or compiling. Exit code 77: PyTorch is not installed, or has no such device.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tarfile
import time

NO_TORCH = 77

try:
    import torch
except ImportError:
    print("train_airbench94: PyTorch is not installed", file=sys.stderr)
    sys.exit(NO_TORCH)

from networks import NETWORKS

ARCHIVE = "cifar-10-binary.tar.xz"
FOLDER = "cifar-10-batches-bin"
TRAINING_FILES = [f"data_batch_{number}.bin" for number in range(1, 6)]
TEST_FILES = ["test_batch.bin"]
SIDE = 32
CLASSES = 10

MEAN = (125.307, 122.961, 113.8575)  # in grey levels, as in the configuration
DEVIATION = (62.985, 62.0925, 66.708)
PAD = 2

BATCH = 1024
STEPS = 483  # 9.9 · 50,000 / 1,024
SMOOTHING = 0.2
MOMENTUM = 0.85
SCALE = 1024 * (1 + 1 / (1 - MOMENTUM))
RATE = 11.5 / SCALE
DECAY = 0.0153 / SCALE  # per image of a batch: what a step takes off a weight at the full rate
BETA_FACTOR = 64  # multiplies the rate of the betas, but not their decay
START_FACTOR, PEAK_AT, END_FACTOR = 0.2, 0.23, 0.07
LOOKAHEAD_EVERY, LOOKAHEAD_DECAY, LOOKAHEAD_POWER = 5, 0.95**5, 3
WHITEN_BIAS_EPOCHS = 3
WHITEN_IMAGES = 5000
WHITEN_EPSILON = 5e-4

EVALUATION_BATCH = 2000
SHIFTS = {0: 0.5, -1: 0.25, 1: 0.25}  # pixels, and the weight of both views moved by so many

PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True, metavar="FOLDER")
    parser.add_argument("--seeds", type=seeds_of, default=seeds_of("1"), metavar="A-B")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--precision", choices=PRECISIONS, default="bf16",
                        help="fp16 needs a GPU")
    parser.add_argument("--compile", metavar="MODE", help="mode of torch.compile()")
    parser.add_argument("--warm-up", action="store_true", help="first make a run that is dropped")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--batch", type=int, default=BATCH, help="for tests: images per step")
    parser.add_argument("--images", type=int,
                        help="for tests: take only so many images for training, and for evaluation")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.device == "cpu" and options.precision == "fp16":
        parser.error("argument --precision: fp16 needs a GPU")
    for name in ("steps", "batch", "images"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            parser.error(f"argument --{name}: must be at least 1")
    return options


def seeds_of(text):
    first, _, last = text.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    if not seeds:
        raise argparse.ArgumentTypeError(f"no seeds from {first} to {last}")
    return seeds


# Data.

def read_files(folder):
    """Returns the bytes of all six files by their names."""
    names = TRAINING_FILES + TEST_FILES
    for place in (folder, folder / FOLDER):
        if (place / names[0]).is_file():
            return {name: (place / name).read_bytes() for name in names}
    with tarfile.open(folder / ARCHIVE) as archive:
        files = {pathlib.PurePath(member.name).name: archive.extractfile(member).read()
                 for member in archive if member.name.endswith(".bin")}
    return {name: files[name] for name in names}


class Images:
    """Images as bytes, N×32×32×3, and their labels, on a device."""

    def __init__(self, files, most, device):
        records = torch.frombuffer(bytearray(b"".join(files)), dtype=torch.uint8)
        records = records.view(-1, 1 + 3 * SIDE * SIDE)[:most]
        planes = records[:, 1:].reshape(-1, 3, SIDE, SIDE)
        self.bytes = planes.permute(0, 2, 3, 1).contiguous().to(device)
        self.labels = records[:, 0].long().to(device)

    def __len__(self):
        return len(self.labels)

    def normalised(self, precision, most=None):
        """Returns the pixels of the first `most` images with mean 0 and deviation 1."""
        mean, deviation = (torch.tensor(of, device=self.bytes.device) for of in (MEAN, DEVIATION))
        return ((self.bytes[:most] - mean) / deviation).to(precision)


def reflected(places):
    """Mirrors places outside of the image at its outermost pixels."""
    return SIDE - 1 - (SIDE - 1 - places.abs()).abs()


def crop(pixels, order, mirrored, shifts):
    """Returns the images of `order`, mirrored where `mirrored` is true, and moved by `shifts`."""
    places = torch.arange(SIDE, device=pixels.device)
    rows = reflected(places + shifts[:, :1])
    columns = torch.where(mirrored[:, None], SIDE - 1 - places, places)
    columns = reflected(columns + shifts[:, 1:])
    return pixels[order[:, None, None], rows[:, :, None], columns[:, None, :]]


class Passes:
    """The augmented images of one pass after another, without a gap between passes."""

    def __init__(self, images, precision, crop):
        self.pixels = images.normalised(precision)
        self.labels = images.labels
        self.crop = crop
        self.mirrored = self.draw(0, 2).bool().squeeze(1)
        self.count = 0

    def draw(self, low, high, columns=1):
        """Returns random integers from `low` to `high` - 1: one row per image."""
        return torch.randint(low, high, (len(self.labels), columns), device=self.labels.device)

    def next(self):
        """Returns the images and labels of the next pass, in random order. The mirrored images of
        every second pass are those that the other passes do not mirror."""
        order = torch.randperm(len(self.labels), device=self.labels.device)
        mirrored = (self.mirrored ^ (self.count % 2 == 1))[order]
        self.count += 1
        shifts = self.draw(-PAD, PAD + 1, columns=2)
        return self.crop(self.pixels, order, mirrored, shifts), self.labels[order]

    def batches(self, size):
        pixels, labels = self.next()
        while True:
            while len(labels) < size:
                more_pixels, more_labels = self.next()
                pixels = torch.cat((pixels, more_pixels))
                labels = torch.cat((labels, more_labels))
            yield pixels[:size].permute(0, 3, 1, 2), labels[:size]
            pixels, labels = pixels[size:], labels[size:]


# First weights.

def whitening_filters(pixels, kernel):
    """Returns filters that make the values of patches of N×32×32×3 images uncorrelated, and the
    negatives of these filters."""
    patches = torch.nn.functional.unfold(pixels.permute(0, 3, 1, 2), kernel)
    patches = patches.transpose(0, 1).flatten(1).double()
    moments = (patches @ patches.T / patches.shape[1]).cpu()
    values, vectors = torch.linalg.eigh(moments)
    filters = (vectors / torch.sqrt(values + WHITEN_EPSILON)).T.flip(0)
    return torch.cat((filters, -filters)).view(-1, 3, kernel, kernel).float()


def convolutions(net):
    return [layer for layer in net if isinstance(layer, torch.nn.Conv2d)]


def first_network(images):
    """Returns a new network in float32 with the recipe's first weights."""
    net = NETWORKS["airbench94"].build()
    whiten, *others = convolutions(net)
    for layer in others:
        # As many filters as there are input channels pass their channel on. PyTorch draws the rest.
        torch.nn.init.dirac_(layer.weight.data[:layer.in_channels])
    pixels = images.normalised(torch.float32, WHITEN_IMAGES)
    whiten.weight.data.copy_(whitening_filters(pixels, whiten.kernel_size[0]))
    whiten.bias.data.zero_()
    return net


# Training.

def rate_factor(step, steps):
    """The triangular schedule: the share of the rate that a step takes."""
    peak = int(PEAK_AT * steps)
    if step < peak:
        return START_FACTOR + (1 - START_FACTOR) * step / peak
    return 1 + (END_FACTOR - 1) * (step - peak) / (steps - peak)


class Lookahead:
    """Draws tensors back to slow copies of themselves every few steps."""

    def __init__(self, tensors):
        kinds = {tensor.dtype for tensor in tensors}
        self.groups = [[tensor for tensor in tensors if tensor.dtype == kind] for kind in kinds]
        self.slow = [[tensor.clone() for tensor in group] for group in self.groups]

    def restart(self):
        for slow, fast in zip(self.slow, self.groups):
            torch._foreach_copy_(slow, fast)

    def after(self, done, steps):
        """Does what is due after `done` of `steps` steps. A run ends on the slow copies."""
        is_due = done % LOOKAHEAD_EVERY == 0
        for slow, fast in zip(self.slow, self.groups):
            if is_due:
                share = LOOKAHEAD_DECAY * (done / steps)**LOOKAHEAD_POWER
                torch._foreach_lerp_(slow, fast, 1 - share)
            if is_due or done == steps:
                torch._foreach_copy_(fast, slow)


class Training:
    """Trains one network again and again: run() starts anew with another seed. The network keeps
    its place in memory, so it is compiled only once."""

    def __init__(self, options):
        files = read_files(options.data)
        self.images, self.test_images = (
            Images([files[name] for name in names], options.images, options.device)
            for names in (TRAINING_FILES, TEST_FILES))
        self.options = options
        self.precision = PRECISIONS[options.precision]
        self.net = self.build()
        self.whiten_bias = self.net[0].bias
        trained = [array for array in self.net.parameters() if array.requires_grad]
        self.lookahead = Lookahead(trained + list(self.net.buffers()))
        self.loss, self.correct, self.crop = self.loss_of, self.correct_of, crop
        if options.compile:
            self.loss = torch.compile(self.loss_of, mode=options.compile)
            self.correct = torch.compile(self.correct_of, mode=options.compile)
            self.crop = torch.compile(crop)

    def build(self):
        """Returns the network in its precision, with batch norm in float32."""
        net = NETWORKS["airbench94"].build()
        net.to(self.options.device, self.precision, memory_format=torch.channels_last)
        for layer in net:
            if isinstance(layer, torch.nn.BatchNorm2d):
                layer.float()
                layer.num_batches_tracked = None  # nothing reads this number
        return net

    def make_optimizer(self):
        """Returns SGD without momentum from earlier runs. Its groups have their full rates."""
        betas = [layer.bias for layer in self.net if isinstance(layer, torch.nn.BatchNorm2d)]
        weights = [layer.weight for layer in self.net
                   if isinstance(layer, (torch.nn.Conv2d, torch.nn.Linear))
                   and layer.weight.requires_grad] + [self.whiten_bias]
        groups = [{"params": arrays, "full_rate": rate,
                   "weight_decay": DECAY * self.options.batch / rate}
                  for arrays, rate in ((weights, RATE), (betas, RATE * BETA_FACTOR))]
        return torch.optim.SGD(groups, RATE, momentum=MOMENTUM, nesterov=True, fused=True)

    @torch.no_grad()
    def begin(self):
        """Gives the network its first values."""
        first = first_network(self.images)
        values = dict(first.named_parameters()) | dict(first.named_buffers())
        for name, array in [*self.net.named_parameters(), *self.net.named_buffers()]:
            array.copy_(values[name])
        self.whiten_bias.requires_grad = True
        self.optimizer = self.make_optimizer()
        self.lookahead.restart()

    def loss_of(self, pixels, labels):
        logits = self.net(pixels).float()
        return torch.nn.functional.cross_entropy(logits, labels, reduction="sum",
                                                 label_smoothing=SMOOTHING)

    def train(self):
        """Trains, and returns the loss of the last batch."""
        steps, batch = self.options.steps, self.options.batch
        whiten_bias_steps = int(WHITEN_BIAS_EPOCHS * len(self.images) / batch)
        self.net.train()
        batches = Passes(self.images, self.precision, self.crop).batches(batch)
        for step in range(steps):
            if step == whiten_bias_steps:
                self.whiten_bias.requires_grad = False
            for group in self.optimizer.param_groups:
                group["lr"] = group["full_rate"] * rate_factor(step, steps)
            pixels, labels = next(batches)
            self.net.zero_grad(set_to_none=True)
            loss = self.loss(pixels, labels)
            loss.backward()
            self.optimizer.step()
            with torch.no_grad():
                self.lookahead.after(step + 1, steps)
        return loss.detach().clone()  # a recorded graph of kernels may reuse the memory of `loss`

    def correct_of(self, pixels, labels):
        """Returns how many of N×32×32×3 images get their label, from six views of each."""
        places = torch.arange(SIDE, device=pixels.device)
        logits = 0
        for shift, weight in SHIFTS.items():
            moved = reflected(places + shift)
            view = pixels[:, moved[:, None], moved]
            for side in (view, view.flip(2)):
                logits = logits + weight / 2 * self.net(side.permute(0, 3, 1, 2)).float()
        return (logits.argmax(1) == labels).sum()

    @torch.no_grad()
    def evaluate(self):
        """Returns the accuracy."""
        self.net.eval()
        pixels = self.test_images.normalised(self.precision)
        pairs = zip(pixels.split(EVALUATION_BATCH), self.test_images.labels.split(EVALUATION_BATCH))
        correct = torch.zeros((), dtype=torch.long, device=pixels.device)
        for some, labels in pairs:
            correct += self.correct(some, labels)
        return correct.item() / len(self.test_images)

    def timed(self, work):
        """Returns what `work` returns, and its seconds."""
        self.wait()
        begin = time.perf_counter()
        result = work()
        self.wait()
        return result, time.perf_counter() - begin

    def wait(self):
        if self.options.device == "cuda":
            torch.cuda.synchronize()

    def run(self, seed):
        """Trains with a seed, and returns the figures that are printed."""
        torch.manual_seed(seed)
        _, setup_s = self.timed(self.begin)
        loss, training_s = self.timed(self.train)
        accuracy, evaluation_s = self.timed(self.evaluate)
        return {"seed": seed, "steps": self.options.steps, "accuracy": accuracy,
                "loss": loss.item() / self.options.batch, "training_s": training_s,
                "evaluation_s": evaluation_s, "setup_s": setup_s}


# Report.

def summary(runs):
    accuracies = [run["accuracy"] for run in runs]
    error = statistics.stdev(accuracies) / len(runs)**0.5 if len(runs) > 1 else None
    return {"runs": len(runs), "accuracy_mean": statistics.mean(accuracies),
            "accuracy_standard_error": error,
            "training_s_mean": statistics.mean(run["training_s"] for run in runs),
            "evaluation_s_mean": statistics.mean(run["evaluation_s"] for run in runs)}


def report(figures, is_json):
    if is_json:
        line = json.dumps(figures)
    else:
        line = ", ".join(f"{name} {value:.4f}" if isinstance(value, float) else f"{name} {value}"
                         for name, value in figures.items())
    print(line, flush=True)


def main():
    options = arguments()
    if options.device == "cuda":
        if not torch.cuda.is_available():
            print("train_airbench94: PyTorch finds no GPU", file=sys.stderr)
            return NO_TORCH
        torch.backends.cudnn.benchmark = True
    training = Training(options)
    if options.compile or options.warm_up:
        training.run(0)
    runs = []
    for seed in options.seeds:
        runs.append(training.run(seed))
        report(runs[-1], options.json)
    report(summary(runs), options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
