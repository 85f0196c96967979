#!/usr/bin/env python3
"""train_step: images/s of a network's training steps in PyTorch, at its best.

  train_step.py inception-bn-28-small --threads 2 --precision fp32 --seconds 8 --json
  train_step.py mlp --workers 2            two processes that exchange gradients (DDP over gloo)
  train_step.py --import-only --json       the memory of a process that only loads PyTorch
  train_step.py lenet --device cuda --precision bf16 --compile reduce-overhead --asked

A synthetic batch lies in memory. A step is forward, backward and SGD with momentum. Images and
weights are in PyTorch's fastest layout (channels_last). bf16 is autocast. OpenBLAS is told to use
AVX-512 where the processor has it. Each of --workers has --threads threads and a whole batch.
--json prints one line: images_per_s (of all workers, from the median step), ms_median, ms_best,
steps, peak_bytes (of this process). Exit code 77: PyTorch is not installed, or has no such device.

On a GPU, the batch lies in the memory of the GPU, and steps are queued without waiting for each
other. CUDA events measure how long each step takes. bf16 and fp16 are autocast, and fp16 has a
GradScaler. All precisions but fp32 use TF32.

--plain keeps images and weights in PyTorch's default layout. --compile applies torch.compile() to
the forward pass and the loss, in the given mode. Compiling is part of the warm-up. --asked measures
again for each line of standard input, and prints the line of --json each time.
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
WARM_UP_STEPS_GPU = 12  # cuDNN tries its algorithms, and graphs of kernels are recorded
STEPS_MIN = 3
PR_SET_PDEATHSIG = 1  # linux/prctl.h
PARENT = "TRAIN_STEP_PARENT"  # the variable with the parent's process id


def end_with_parent():
    """Makes this worker end with its parent. Called before PyTorch is loaded, which takes seconds:
    a worker whose parent ends meanwhile would otherwise continue."""
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
    parser.add_argument("--precision", choices=("fp32", "tf32", "bf16", "fp16"),
                        default="fp32", help="on a CPU only fp32 and bf16")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--plain", action="store_true", help="PyTorch's default layout")
    parser.add_argument("--compile", metavar="MODE", help="mode of torch.compile()")
    parser.add_argument("--asked", action="store_true",
                        help="one measurement for each line of standard input")
    parser.add_argument("--batch", type=int, help="images per step (default: the network's own)")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--import-only", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.device == "cpu" and options.precision in ("tf32", "fp16"):
        parser.error(f"argument --precision: {options.precision} needs a GPU")
    if options.workers > 1 and (options.device != "cpu" or options.asked):
        parser.error("argument --workers: several need --device cpu, and no --asked")
    return options


def prepare_environment(threads):
    """Sets what the libraries read when they are loaded."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    os.environ["OPENBLAS_NUM_THREADS"] = str(threads)
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        if " avx512f " in file.read():
            os.environ["OPENBLAS_CORETYPE"] = "SKYLAKEX"


class Training:
    """One worker: measure() does steps and returns the seconds of each."""

    def __init__(self, options):
        import torch
        from networks import NETWORKS

        torch.manual_seed(1)
        torch.set_num_threads(options.threads)
        self.torch = torch
        self.device = options.device
        self.low = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(options.precision)
        network = NETWORKS[options.name]
        layout = torch.contiguous_format if options.plain else torch.channels_last
        self.images = options.batch or network.batch
        self.net = network.build().to(self.device, memory_format=layout).train()
        self.pixels = torch.randn(self.images, *network.input)
        self.pixels = self.pixels.contiguous(memory_format=layout).to(self.device)
        self.labels = torch.randint(0, network.classes, (self.images,)).to(self.device)
        if options.workers > 1:
            # Avoids copies that these networks do not need: each worker keeps its own moving
            # statistics, and gradients are views of the buffers that are exchanged.
            self.net = torch.nn.parallel.DistributedDataParallel(
                self.net, broadcast_buffers=False, gradient_as_bucket_view=True)
        trained = [array for array in self.net.parameters() if array.requires_grad]
        self.optimizer = torch.optim.SGD(trained, 1e-3, momentum=0.9, weight_decay=1e-5,
                                         **self.prepare_gpu(options))
        self.loss = torch.compile(self.loss_of, mode=options.compile) if options.compile else \
            self.loss_of

    def prepare_gpu(self, options):
        """Sets PyTorch's global options for a GPU, and returns those of the optimizer."""
        self.scaler = None
        if self.device == "cpu":
            return {}
        backends = self.torch.backends
        backends.cudnn.benchmark = True
        backends.cudnn.allow_tf32 = options.precision != "fp32"
        backends.cuda.matmul.allow_tf32 = options.precision != "fp32"
        if options.precision == "fp16":
            self.scaler = self.torch.amp.GradScaler("cuda")
        return {"fused": True}

    def loss_of(self, pixels, labels):
        if self.low is not None:
            with self.torch.autocast(self.device, dtype=self.low):
                logits = self.net(pixels)
        else:
            logits = self.net(pixels)
        return self.torch.nn.functional.cross_entropy(logits.float(), labels)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.pixels, self.labels)
        if self.scaler is None:
            loss.backward()
            self.optimizer.step()
        else:
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()

    def measure(self, count):
        times = []
        if self.device == "cpu":
            for _ in range(count):
                begin = time.perf_counter()
                self.step()
                times.append(time.perf_counter() - begin)
            return times
        cuda = self.torch.cuda
        events = [cuda.Event(enable_timing=True) for _ in range(count + 1)]
        cuda.synchronize()
        events[0].record()
        for event in events[1:]:
            self.step()
            event.record()
        cuda.synchronize()
        return [a.elapsed_time(b) / 1e3 for a, b in zip(events, events[1:])]


def measurements(options, agree=lambda seconds: seconds):
    """Yields measurements of about --seconds: the images of a step, and the seconds of each step.
    `agree` turns the seconds of a step into a value that all workers share, so that all of them
    make the same number of steps."""
    training = Training(options)
    step_s = training.measure(WARM_UP_STEPS if options.device == "cpu" else WARM_UP_STEPS_GPU)[-1]
    count = max(STEPS_MIN, round(options.seconds / agree(step_s)))
    while True:
        yield training.images, training.measure(count)


def answer(options):
    """Prints a measurement for each line of standard input. Warms up before the first one."""
    measured = measurements(options)
    for _ in sys.stdin:
        report(options, *next(measured))
        sys.stdout.flush()


def report(options, images, times):
    median = statistics.median(times)
    figures = {
        "images_per_s": options.workers * images / median,
        "ms_median": median * 1e3,
        "ms_best": min(times) * 1e3,
        "steps": len(times),
        "peak_bytes": peak_bytes(),
    }
    if options.json or options.asked:
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

    images, times = next(measurements(options, slowest))
    if rank == 0:
        report(options, images, times)
        sys.stdout.flush()


def main():
    options = arguments()
    prepare_environment(options.threads)
    try:
        import torch
    except ImportError:
        print("train_step: PyTorch is not installed", file=sys.stderr)
        return NO_TORCH
    if options.device == "cuda" and not torch.cuda.is_available():
        print("train_step: PyTorch finds no GPU", file=sys.stderr)
        return NO_TORCH
    if options.import_only:
        print(json.dumps({"peak_bytes": peak_bytes(), "version": torch.__version__}))
    elif options.workers > 1:
        os.environ[PARENT] = str(os.getpid())
        torch.multiprocessing.spawn(work, args=(options, free_port()), nprocs=options.workers)
    elif options.asked:
        answer(options)
    else:
        report(options, *next(measurements(options)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
