"""Times the forward pass of a PyTorch script that `runner export --to torch` wrote.

    python3 tests/peers/forward_speed.py network.py --batch 128 --threads 2 [--compile] [--bf16]

Prints images per second, in eval mode, channels_last, on random images of the network's shape.
"""

import argparse
import importlib.util
import re
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("script")
parser.add_argument("--batch", type=int, default=128)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--seconds", type=float, default=6)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--bf16", action="store_true")
options = parser.parse_args()

spec = importlib.util.spec_from_file_location("exported", options.script)
exported = importlib.util.module_from_spec(spec)
spec.loader.exec_module(exported)
torch.set_num_threads(options.threads)
network = exported.load().to(memory_format=torch.channels_last)
if options.compile:
    network = torch.compile(network)
# The docstring reads "Takes normalised images, N×3×28×28, and returns logits, N×10."
shape = [int(side) for side in re.search(r"N×(\d+)×(\d+)×(\d+)", exported.Network.__doc__).groups()]
images = torch.randn(options.batch, *shape).contiguous(memory_format=torch.channels_last)

with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
    for _ in range(2):
        network(images)
    begin, count = time.monotonic(), 0
    while time.monotonic() - begin < options.seconds:
        network(images)
        count += options.batch
print(f"{count / (time.monotonic() - begin):.1f} images/s")
