#!/usr/bin/env python3
"""mxnet_lenet: trains LeNet on Fashion-MNIST with MXNet's kvstore `dist_sync`, on this machine.

  mxnet_lenet.py --epochs 3
      trains with two workers and two servers, from MXNet's own first weights
  mxnet_lenet.py --epochs 3 --weights FOLDER/weights.f32
      trains from the first weights that `bench losses --dump FOLDER` has written
  mxnet_lenet.py --compare FOLDER
      compares losses with those that `bench losses --dump FOLDER` has written

The work is that of configs/fashion_mnist_dist_sync.toml with data.order = "stored": the same
network, batches, optimizer and learning rates. Each role is a process with one thread for
computing. Each worker takes its part of every global batch, in the order of the data set.
--compare makes one step for each line of FOLDER/losses.txt, in one worker without servers, and
prints the largest relative difference of a loss. --batch must be the batch size of our run:

  bench losses configs/fashion_mnist_dist_sync.toml --set 'data.order="stored"' \\
    --set data.batch_size=128 --data --steps=20 --dump FOLDER
  mxnet_lenet.py --compare FOLDER --batch 128

Otherwise worker 0 prints lines of JSON. The first has begun (the time of the first step, in seconds
since 1970). Then each epoch has a line with epoch_s (without validation), train_accuracy and
accuracy (of the 10,000 test images).

It needs MXNet 1.9 (PyPI; Python 3.8 with numpy before 1.24) and Debian's dataset-fashion-mnist.
Exit code 77: one of them is not installed. `beside.py mxnet` compares this script with `runner`.
"""

import argparse
import gzip
import json
import os
import socket
import subprocess
import sys
import time

NOT_HERE = 77
RECORDS = 60000
CLASSES = 10
# The arrays of the network, in the order of our flat array of weights.
ARRAYS = [("conv1_weight", (20, 1, 5, 5)), ("conv1_bias", (20,)),
          ("conv2_weight", (50, 20, 5, 5)), ("conv2_bias", (50,)),
          ("fc1_weight", (500, 800)), ("fc1_bias", (500,)),
          ("fc2_weight", (10, 500)), ("fc2_bias", (10,))]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64, help="images per step and worker")
    parser.add_argument("--weights", help="the first weights: float32 in our order")
    parser.add_argument("--compare", metavar="FOLDER", help="compare losses instead of training")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist",
                        help="the folder of the four *-ubyte.gz files")
    parser.add_argument("--role", choices=("launcher", "scheduler", "server", "worker"),
                        default="launcher",
                        help="role of this process; the launcher starts the others")
    return parser.parse_args()


def launch(options):
    """Starts all roles and waits for the workers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    environment = dict(
        os.environ, DMLC_PS_ROOT_URI="127.0.0.1", DMLC_PS_ROOT_PORT=str(port),
        DMLC_NODE_HOST="127.0.0.1", DMLC_NUM_WORKER=str(options.workers),
        DMLC_NUM_SERVER=str(options.servers), OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    roles = ["scheduler"] + ["server"] * options.servers + ["worker"] * options.workers
    processes = []
    for role in roles:
        words = [sys.executable, sys.argv[0], "--role", role, *sys.argv[1:]]
        processes.append(subprocess.Popen(words, env=dict(environment, DMLC_ROLE=role)))
    # MXNet ends its scheduler and servers when all workers have ended.
    return max(abs(process.wait()) for process in reversed(processes))


def read(folder, name, header_bytes):
    import numpy

    with gzip.open(os.path.join(folder, name)) as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=header_bytes)


def images_and_labels(folder, part):
    images = read(folder, part + "-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28)
    return images, read(folder, part + "-labels-idx1-ubyte.gz", 8)


def lenet(mx):
    """Two convolutions and two dense layers, with tanh."""
    layer = mx.sym.Variable("data")
    for name, filters in (("conv1", 20), ("conv2", 50)):
        layer = mx.sym.Convolution(layer, kernel=(5, 5), num_filter=filters, name=name)
        layer = mx.sym.Activation(layer, act_type="tanh")
        layer = mx.sym.Pooling(layer, pool_type="max", kernel=(2, 2), stride=(2, 2))
    layer = mx.sym.FullyConnected(mx.sym.flatten(layer), num_hidden=500, name="fc1")
    layer = mx.sym.Activation(layer, act_type="tanh")
    layer = mx.sym.FullyConnected(layer, num_hidden=CLASSES, name="fc2")
    return mx.sym.SoftmaxOutput(layer, name="softmax")


def first_weights(mx, path):
    """The arrays by name, cut from a flat file."""
    import numpy

    flat = numpy.fromfile(path, numpy.float32)
    arrays, offset = {}, 0
    for name, shape in ARRAYS:
        size = int(numpy.prod(shape))
        arrays[name] = mx.nd.array(flat[offset:offset + size].reshape(shape))
        offset += size
    if offset != flat.size:
        sys.exit(f"mxnet_lenet: {path} has {flat.size} values, LeNet has {offset}")
    return arrays


class Worker:
    def __init__(self, mx, options):
        self.mx = mx
        self.batch = options.batch
        self.kvstore = mx.kv.create("local" if options.compare else "dist_sync")
        self.workers = self.kvstore.num_workers
        self.rank = self.kvstore.rank
        self.images, self.labels = images_and_labels(options.data, "train")
        self.held_out = images_and_labels(options.data, "t10k")
        self.module = mx.mod.Module(lenet(mx), context=mx.cpu())
        self.module.bind([("data", (self.batch, 1, 28, 28))], [("softmax_label", (self.batch,))])
        if options.weights:
            self.module.init_params(arg_params=first_weights(mx, options.weights))
        else:
            self.module.init_params(mx.init.Xavier())
        self.module.init_optimizer(self.kvstore, self.optimizer(options.epochs))

    def last_step(self, epoch):
        """Returns the number of steps until an epoch ends. A global batch may cross its end."""
        return epoch * RECORDS // (self.workers * self.batch)

    def optimizer(self, epochs):
        """Halves the rate after each epoch. Without names, MXNet decays all parameters."""
        ends = [self.last_step(epoch) for epoch in range(1, epochs + 1)]
        schedule = self.mx.lr_scheduler.MultiFactorScheduler(ends, factor=0.5, base_lr=0.05)
        return self.mx.optimizer.create(
            "sgd", learning_rate=0.05, momentum=0.9, wd=1e-5, lr_scheduler=schedule,
            rescale_grad=1 / (self.batch * self.workers))

    def as_batch(self, images, labels):
        data = self.mx.nd.array(images.astype("float32") * (1 / 256))
        return self.mx.io.DataBatch([data], [self.mx.nd.array(labels)])

    def step(self, number, metric):
        first = (number * self.workers + self.rank) * self.batch
        places = [place % RECORDS for place in range(first, first + self.batch)]
        batch = self.as_batch(self.images[places], self.labels[places])
        self.module.forward_backward(batch)
        self.module.update()
        self.module.update_metric(metric, batch.label)

    def compare(self, folder):
        with open(os.path.join(folder, "losses.txt"), encoding="ascii") as file:
            ours = [float(line) for line in file]
        largest = 0
        for number, our in enumerate(ours):
            loss = self.mx.metric.CrossEntropy()
            self.step(number, loss)
            largest = max(largest, abs(our - loss.get()[1]) / loss.get()[1])
        print(f"{len(ours)} steps: largest relative difference of a loss {largest:.2e}")

    def validate(self):
        """Returns the share of right answers. Images that fill up the last batch do not count."""
        right = 0
        images, labels = self.held_out
        for first in range(0, len(labels), self.batch):
            places = [place % len(labels) for place in range(first, first + self.batch)]
            self.module.forward(self.as_batch(images[places], labels[places]), is_train=False)
            answers = self.module.get_outputs()[0].asnumpy().argmax(1)
            count = min(self.batch, len(labels) - first)
            right += int((answers[:count] == labels[places][:count]).sum())
        return right / len(labels)

    def train(self, epochs):
        if self.rank == 0:
            print(json.dumps({"begun": time.time()}), flush=True)
        step = 0
        for epoch in range(1, epochs + 1):
            metric = self.mx.metric.Accuracy()
            start = time.perf_counter()
            while step < self.last_step(epoch):
                self.step(step, metric)
                step += 1
            self.mx.nd.waitall()
            train = metric.get()[1]
            epoch_s = time.perf_counter() - start
            accuracy = self.validate()
            if self.rank == 0:
                print(json.dumps({"epoch": epoch, "epoch_s": epoch_s, "train_accuracy": train,
                                  "accuracy": accuracy}), flush=True)


def main():
    options = arguments()
    try:
        # In a scheduler or server, this import serves until the job ends, and ends the process.
        import mxnet as mx
    except ImportError as error:
        print(f"mxnet_lenet: MXNet does not load: {error}", file=sys.stderr)
        return NOT_HERE
    if not os.path.isdir(options.data):
        print(f"mxnet_lenet: no folder {options.data} (Debian: dataset-fashion-mnist)",
              file=sys.stderr)
        return NOT_HERE
    if options.compare:
        options.weights = os.path.join(options.compare, "weights.f32")
        Worker(mx, options).compare(options.compare)
    elif options.role == "launcher":
        return launch(options)
    else:
        Worker(mx, options).train(options.epochs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
