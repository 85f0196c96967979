#!/usr/bin/env python3
"""losses: trains with PyTorch from weights and on batches of ours: `losses.py FOLDER`.

FOLDER is what `bench losses CONFIG --dump FOLDER` writes: experiment.toml (every value used),
keys.tsv (the arrays of the flat array), weights.f32, pixels.f32, labels.i32 (batches, taken in
turn) and losses.txt (ours). Trains in float64, or as --precision says, and compares the mean loss
of each step: prints both and the largest relative difference. Exit code: 0; 1 if it is larger than
--tolerance; 2 if the experiment asks for what is not written here; 77 if PyTorch is not installed.
"""

import argparse
import csv
import os
import sys
import tomllib

NO_TORCH = 77
UNKNOWN = 2


class Unknown(Exception):
    """An experiment that this script cannot follow."""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--precision", choices=("fp64", "fp32", "bf16"), default="fp64",
                        help="of PyTorch; bf16 is autocast")
    parser.add_argument("--tolerance", type=float, default=float("inf"))
    return parser.parse_args()


def read_experiment(folder):
    with open(os.path.join(folder, "experiment.toml"), "rb") as file:
        return tomllib.load(file)


def read_keys(folder):
    with open(os.path.join(folder, "keys.tsv"), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def load_weights(torch, net, keys, values):
    """Copies the flat array into the network's arrays, which have its order."""
    arrays = list(net.parameters())
    if len(arrays) != len(keys):
        raise Unknown(f"the network has {len(arrays)} arrays here and {len(keys)} there")
    for array, key in zip(arrays, keys):
        begin, size = int(key["offset"]), int(key["size"])
        if array.numel() != size:
            raise Unknown(f"{key['name']} has {size} values there, {tuple(array.shape)} here")
        with torch.no_grad():
            array.copy_(values[begin:begin + size].reshape(array.shape))


def set_epsilons(torch, net, keys):
    norms = [layer for layer in net.modules() if isinstance(layer, torch.nn.BatchNorm2d)]
    epsilons = [float(key["epsilon"]) for key in keys if key["epsilon"]]
    if len(norms) != len(epsilons):
        raise Unknown(f"{len(norms)} batch norms here, {len(epsilons)} there")
    for norm, epsilon in zip(norms, epsilons):
        norm.eps = epsilon


def optimizer_of(torch, experiment, net, keys):
    """SGD at a constant rate: then it does not matter whether the rate is inside the momentum."""
    train = experiment["train"]
    rule = train["optimizer"]
    if rule["kind"] != "sgd" or train["schedule"]["kind"] != "constant" or train["loss"] != "mean":
        raise Unknown("only sgd at a constant rate, of a mean loss, is written here")
    groups = []
    for array, key in zip(net.parameters(), keys):
        array.requires_grad = float(key["learning_rate_factor"]) > 0
        if array.requires_grad:
            groups.append({
                "params": [array],
                "lr": rule["learning_rate"] * float(key["learning_rate_factor"]),
                "weight_decay": rule["weight_decay"] * float(key["decay_factor"]),
            })
    return torch.optim.SGD(groups, lr=rule["learning_rate"], momentum=rule["momentum"],
                           nesterov=rule.get("nesterov", False))


def train(torch, options, steps):
    """The mean loss of each step."""
    from networks import NETWORKS

    experiment = read_experiment(options.folder)
    keys = read_keys(options.folder)
    name = experiment["model"].get("network")
    if name not in NETWORKS:
        raise Unknown(f"no network `{name}`")
    network = NETWORKS[name]
    kind = torch.float64 if options.precision == "fp64" else torch.float32

    def read(file, dtype):
        return torch.from_file(os.path.join(options.folder, file), dtype=dtype,
                               size=os.path.getsize(os.path.join(options.folder, file)) // 4)

    net = network.build().to(kind)
    load_weights(torch, net, keys, read("weights.f32", torch.float32).to(kind))
    set_epsilons(torch, net, keys)
    net = net.to(memory_format=torch.channels_last).train()
    optimizer = optimizer_of(torch, experiment, net, keys)
    smoothing = experiment["train"].get("label_smoothing", 0)

    images = experiment["data"]["batch_size"]
    pixels = read("pixels.f32", torch.float32).reshape(-1, images, *network.input)
    labels = read("labels.i32", torch.int32).reshape(-1, images).long()
    losses = []
    for step in range(steps):
        x, y = pixels[step % len(pixels)], labels[step % len(labels)]
        optimizer.zero_grad(set_to_none=True)
        x = x.to(kind).contiguous(memory_format=torch.channels_last)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.precision == "bf16"):
            logits = net(x)
        loss = torch.nn.functional.cross_entropy(logits.to(kind), y, label_smoothing=smoothing)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    options = arguments()
    try:
        import torch
    except ImportError:
        print("losses: PyTorch is not installed (python3-torch)", file=sys.stderr)
        return NO_TORCH
    with open(os.path.join(options.folder, "losses.txt"), encoding="ascii") as file:
        ours = [float(line) for line in file]
    try:
        theirs = train(torch, options, len(ours))
    except Unknown as reason:
        print(f"losses: {reason}", file=sys.stderr)
        return UNKNOWN
    largest = 0
    for step, (our, their) in enumerate(zip(ours, theirs), 1):
        difference = abs(our - their) / abs(their)
        largest = max(largest, difference) if difference == difference else float("inf")
        print(f"step {step}: ours {our:.9g}, PyTorch {their:.9g}, relative {difference:.2e}")
    print(f"largest relative difference: {largest:.2e}")
    return 0 if largest <= options.tolerance else 1


if __name__ == "__main__":
    sys.exit(main())
