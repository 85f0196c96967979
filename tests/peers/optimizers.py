#!/usr/bin/env python3
"""optimizers: makes updates with PyTorch's optimizers: `optimizers.py IN ROWS COLS OUT`.

IN holds float32 numbers: the matrix of initial values (ROWS × COLS), then one matrix of gradients
per update. OUT gets the matrix after all updates, once for each rule below, in their order. All
rules have a learning rate of 0.1 and a weight decay of 0.01. Their other settings are those of
optimizers_test.cc. Exit code 77: PyTorch is not installed.
"""

import sys
from array import array

NO_TORCH = 77

try:
    import torch
except ImportError:
    sys.exit(NO_TORCH)

torch.set_num_threads(1)
COMMON = {"lr": 0.1, "weight_decay": 0.01}
RULES = [
    lambda w: torch.optim.SGD(w, momentum=0.9, **COMMON),
    lambda w: torch.optim.SGD(w, momentum=0.9, nesterov=True, **COMMON),
    lambda w: torch.optim.Adam(w, betas=(0.9, 0.999), eps=1e-3, **COMMON),
    lambda w: torch.optim.AdamW(w, betas=(0.9, 0.999), eps=1e-3, **COMMON),
    lambda w: torch.optim.RMSprop(w, alpha=0.9, eps=0.1, **COMMON),
    lambda w: torch.optim.RMSprop(w, alpha=0.9, eps=0.1, momentum=0.8, centered=True, **COMMON),
]


def main(source, rows, cols, target):
    values = array("f")
    with open(source, "rb") as file:
        values.frombytes(file.read())
    matrices = torch.tensor(values, dtype=torch.float32).reshape(-1, int(rows), int(cols))
    result = array("f")
    for rule in RULES:
        weight = torch.nn.Parameter(matrices[0].clone())
        optimizer = rule([weight])
        for gradient in matrices[1:]:
            weight.grad = gradient.clone()
            optimizer.step()
        result.extend(weight.detach().flatten().tolist())
    with open(target, "wb") as file:
        file.write(result.tobytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
