#!/usr/bin/env python3
"""train_step: images/s of a network's training steps in PyTorch on this processor, at its best.

  train_step.py inception-bn-28-small --threads 2 --precision fp32 --seconds 8 --json
  train_step.py mlp --workers 2            two processes that exchange gradients (DDP over gloo)
  train_step.py --import-only --json       what a process takes that only loads PyTorch

A synthetic batch lies in memory; a step is forward, backward and SGD with momentum. Images and
weights are in PyTorch's fastest layout (channels_last), bf16 is its autocast, OpenBLAS is told to
use AVX-512 where the processor has it. --workers: each has --threads threads and a whole batch.
--json prints one line: images_per_s (of all workers, from the median step), ms_median, ms_best,
steps, peak_bytes (of this process). Exit code 77: PyTorch is not installed.
"""

import argparse
import ctypes
import json
import os
import resource
import signal
import socket
import statistics
import sys
import time

NO_TORCH = 77
WARM_UP_STEPS = 3
STEPS_MIN = 3
PR_SET_PDEATHSIG = 1  # linux/prctl.h
PARENT = "TRAIN_STEP_PARENT"  # the variable that tells workers its process id


def end_with_parent():
    """Called before PyTorch is loaded, which takes seconds: nobody would end a worker that still
    loads it when its parent is gone."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(os.environ[PARENT]):
        sys.exit(1)


if __name__ == "__mp_main__":
    end_with_parent()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", default="mlp", help="a network of networks.py")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--batch", type=int, help="images a step (default: the network's own)")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--import-only", action="store_true")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def prepare_environment(threads):
    """What the libraries read when they are loaded."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    os.environ["OPENBLAS_NUM_THREADS"] = str(threads)
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        if " avx512f " in file.read():
            os.environ["OPENBLAS_CORETYPE"] = "SKYLAKEX"


class Training:
    """One worker: step() does a step and returns its seconds."""

    def __init__(self, options):
        import torch
        from networks import NETWORKS

        torch.manual_seed(1)
        torch.set_num_threads(options.threads)
        self.torch = torch
        self.bf16 = options.precision == "bf16"
        network = NETWORKS[options.name]
        self.images = options.batch or network.batch
        self.net = network.build().to(memory_format=torch.channels_last).train()
        self.pixels = torch.randn(self.images, *network.input)
        self.pixels = self.pixels.contiguous(memory_format=torch.channels_last)
        self.labels = torch.randint(0, network.classes, (self.images,))
        if options.workers > 1:
            # Without copies that these networks do not need: each worker keeps its own moving
            # statistics, and gradients lie where they are exchanged.
            self.net = torch.nn.parallel.DistributedDataParallel(
                self.net, broadcast_buffers=False, gradient_as_bucket_view=True)
        trained = [array for array in self.net.parameters() if array.requires_grad]
        self.optimizer = torch.optim.SGD(trained, 1e-3, momentum=0.9, weight_decay=1e-5)

    def step(self):
        begin = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        if self.bf16:
            with self.torch.autocast("cpu", dtype=self.torch.bfloat16):
                logits = self.net(self.pixels)
        else:
            logits = self.net(self.pixels)
        self.torch.nn.functional.cross_entropy(logits.float(), self.labels).backward()
        self.optimizer.step()
        return time.perf_counter() - begin


def measure(options, agree=lambda seconds: seconds):
    """Seconds of the steps. `agree` makes of a step's seconds what all workers reckon with, so that
    all make the same number of steps."""
    training = Training(options)
    for _ in range(WARM_UP_STEPS):
        step_s = training.step()
    count = max(STEPS_MIN, round(options.seconds / agree(step_s)))
    return training.images, [training.step() for _ in range(count)]


def report(options, images, times):
    median = statistics.median(times)
    figures = {
        "images_per_s": options.workers * images / median,
        "ms_median": median * 1e3,
        "ms_best": min(times) * 1e3,
        "steps": len(times),
        "peak_bytes": peak_bytes(),
    }
    if options.json:
        print(json.dumps(figures))
    else:
        print(f"{options.name}: {figures['images_per_s']:.1f} images/s, "
              f"median {figures['ms_median']:.3f} ms, best {figures['ms_best']:.3f} ms, "
              f"{figures['peak_bytes'] / 1e6:.0f} MB")


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def work(rank, options, port):
    """One of several workers, which meet at a port."""
    import torch
    import torch.distributed as distributed

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                      GLOO_SOCKET_IFNAME="lo")
    distributed.init_process_group("gloo", rank=rank, world_size=options.workers)

    def slowest(seconds):
        longest = torch.tensor(seconds)
        distributed.all_reduce(longest, distributed.ReduceOp.MAX)
        return longest.item()

    images, times = measure(options, slowest)
    if rank == 0:
        report(options, images, times)
        sys.stdout.flush()


def main():
    options = arguments()
    prepare_environment(options.threads)
    try:
        import torch
    except ImportError:
        print("train_step: PyTorch is not installed (python3-torch)", file=sys.stderr)
        return NO_TORCH
    if options.import_only:
        print(json.dumps({"peak_bytes": peak_bytes(), "version": torch.__version__}))
    elif options.workers > 1:
        os.environ[PARENT] = str(os.getpid())
        torch.multiprocessing.spawn(work, args=(options, free_port()), nprocs=options.workers)
    else:
        report(options, *measure(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
