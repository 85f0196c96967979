#!/usr/bin/env python3
"""allreduce: one process of several that sum an array with gloo (torch.distributed).

  allreduce.py --rank 0 --world 2 --port 4711 --floats 1000000

`bench kvstore` starts each process and writes orders to its standard input. An order is two numbers
of 8 bytes each. For (0, n), the process makes n allreduces, and writes the nanoseconds of each one
as a number of 8 bytes. For (1, 0), it makes one allreduce, compares the sum with the expected one,
and writes one number. The process ends when its input ends. Exit code 77: PyTorch is not installed.
"""

import argparse
import os
import struct
import sys
import time

NO_TORCH = 77
TRIPS, CHECK = 0, 1
ORDER = struct.Struct("=QQ")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--world", type=int, default=1)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--floats", type=int, default=1)
    parser.add_argument("--import-only", action="store_true")
    return parser.parse_args()


def answer(numbers):
    data = struct.pack(f"={len(numbers)}Q", *numbers)
    while data:
        data = data[os.write(1, data):]


def check(torch, distributed, options):
    """Adds small whole numbers, whose sums are exact. Exits if a sum is wrong."""
    index = torch.arange(options.floats, dtype=torch.float32) % 1021
    values = index + options.rank
    distributed.all_reduce(values)
    ranks = options.world * (options.world - 1) // 2
    if not torch.equal(values, index * options.world + ranks):
        sys.exit("allreduce: a wrong sum came out")


def main():
    options = arguments()
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        import torch
        import torch.distributed as distributed
    except ImportError:
        print("allreduce: PyTorch is not installed", file=sys.stderr)
        return NO_TORCH
    if options.import_only:
        return 0
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port),
                      GLOO_SOCKET_IFNAME="lo")
    distributed.init_process_group("gloo", rank=options.rank, world_size=options.world)
    values = torch.zeros(options.floats)
    while len(order := os.read(0, ORDER.size)) == ORDER.size:
        what, trips = ORDER.unpack(order)
        if what == CHECK:
            check(torch, distributed, options)
            answer([0])
            continue
        times = []
        for _ in range(trips):
            begin = time.perf_counter_ns()
            distributed.all_reduce(values)
            times.append(time.perf_counter_ns() - begin)
        answer(times)
    return 0


if __name__ == "__main__":
    sys.exit(main())
