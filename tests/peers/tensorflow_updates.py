#!/usr/bin/env python3
"""tensorflow_updates: updates per second of TensorFlow's ParameterServerStrategy, on this machine.

  tensorflow_updates.py --updates 3000
  tensorflow_updates.py --updates 30000 --steps-per-call 20

Two workers train a perceptron (784-100-10, with ReLU) on Fashion-MNIST, with SGD and batches of
100. Every gradient is applied when it arrives, as in tests/peers/updates.toml. A coordinator hands
out calls of a tf.function. Each call makes --steps-per-call steps. Every role is a process with one
thread for computing (--threads).

Standard output has two lines of JSON: begun (the time of the first step that is measured, in
seconds since 1970), then updates_per_s and accuracy (of the 10,000 test images). It needs
TensorFlow 2.21 (PyPI) and Debian's dataset-fashion-mnist. Exit code 77: one of them is not
installed. `beside.py tensorflow` compares this script with `runner`.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time

NOT_HERE = 77
BATCH, INPUTS, HIDDEN, CLASSES = 100, 784, 100, 10
RATE = 0.01
WARM_UP_CALLS = 50  # per worker: tracing, and the first connections


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=3000)
    parser.add_argument("--steps-per-call", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="threads per role for computing")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist",
                        help="the folder of the four *-ubyte.gz files")
    parser.add_argument("--role", choices=("coordinator", "worker", "ps"), default="coordinator",
                        help="role of this process; the coordinator starts the others")
    parser.add_argument("--index", type=int, default=0)
    return parser.parse_args()


def free_addresses(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    addresses = ["127.0.0.1:%d" % each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return addresses


def start_roles(options):
    """Starts workers and servers. Returns their processes and their addresses."""
    cluster = {"worker": free_addresses(options.workers), "ps": free_addresses(options.servers)}
    processes = []
    for role, addresses in cluster.items():
        for index in range(len(addresses)):
            words = [sys.executable, sys.argv[0], "--role", role, "--index", str(index),
                     *sys.argv[1:]]
            processes.append(subprocess.Popen(
                words, env=dict(os.environ, CLUSTER=json.dumps(cluster))))
    return processes, cluster


def serve(tf, options):
    """A worker or a server: it does what the coordinator says, until it is ended."""
    cluster = json.loads(os.environ["CLUSTER"])
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=options.threads)
    tf.distribute.Server(tf.train.ClusterSpec(cluster), job_name=options.role,
                         task_index=options.index, protocol="grpc", config=config).join()


def dataset(tf, folder, part):
    def records(name, size, header_bytes):
        return tf.data.FixedLengthRecordDataset(
            os.path.join(folder, part + name), size, header_bytes=header_bytes,
            compression_type="GZIP")

    def decoded(pixels, label):
        pixels = tf.cast(tf.io.decode_raw(pixels, tf.uint8), tf.float32) / 256
        return tf.reshape(pixels, [INPUTS]), tf.cast(tf.io.decode_raw(label, tf.uint8)[0], tf.int64)

    return tf.data.Dataset.zip((records("-images-idx3-ubyte.gz", INPUTS, 16),
                                records("-labels-idx1-ubyte.gz", 1, 8))).map(decoded)


def training_batches(tf, folder):
    """Batches in memory: reading them takes next to nothing."""
    return dataset(tf, folder, "train").batch(BATCH).cache().repeat().prefetch(4)


def new_variables(tf):
    def weight(rows, cols):
        return tf.Variable(tf.random.uniform([rows, cols], -0.1, 0.1, seed=1))

    return [weight(INPUTS, HIDDEN), tf.Variable(tf.zeros([HIDDEN])),
            weight(HIDDEN, CLASSES), tf.Variable(tf.zeros([CLASSES]))]


def logits_of(tf, variables, pixels):
    hidden = tf.nn.relu(pixels @ variables[0] + variables[1])
    return hidden @ variables[2] + variables[3]


def train(tf, options, cluster):
    strategy = tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(cluster), rpc_layer="grpc"))
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        variables = new_variables(tf)

    def step(batch):
        pixels, labels = batch
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels, logits_of(tf, variables, pixels)))
        for variable, gradient in zip(variables, tape.gradient(loss, variables)):
            variable.assign_sub(RATE * gradient)

    @tf.function
    def call(batches):
        for _ in tf.range(options.steps_per_call):
            strategy.run(step, args=(next(batches),))

    batches = iter(coordinator.create_per_worker_dataset(
        lambda: training_batches(tf, options.data)))

    def make(calls):
        for _ in range(calls):
            coordinator.schedule(call, args=(batches,))
        coordinator.join()

    make(WARM_UP_CALLS * options.workers)
    calls = max(1, options.updates // options.steps_per_call)
    print(json.dumps({"begun": time.time()}), flush=True)
    begin = time.perf_counter()
    make(calls)
    seconds = time.perf_counter() - begin
    pixels, labels = next(iter(dataset(tf, options.data, "t10k").batch(10000)))
    answers = tf.argmax(logits_of(tf, variables, pixels), 1)
    accuracy = float(tf.reduce_mean(tf.cast(answers == labels, tf.float32)))
    print(json.dumps({"updates_per_s": calls * options.steps_per_call / seconds,
                      "accuracy": accuracy}), flush=True)


def main():
    options = arguments()
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    try:
        import tensorflow as tf
    except ImportError as error:
        print(f"tensorflow_updates: TensorFlow does not load: {error}", file=sys.stderr)
        return NOT_HERE
    if not os.path.isdir(options.data):
        print(f"tensorflow_updates: no folder {options.data} (Debian: dataset-fashion-mnist)",
              file=sys.stderr)
        return NOT_HERE
    if options.role != "coordinator":
        serve(tf, options)
        return 0
    processes, cluster = start_roles(options)
    try:
        train(tf, options, cluster)
    finally:
        for process in processes:
            process.send_signal(signal.SIGKILL)
            process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
