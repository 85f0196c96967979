#!/usr/bin/env python3
"""beside: the same training by `runner` and by another parameter server, in alternation.

  beside.py mxnet --python ENVIRONMENT/bin/python --rounds 3 --epochs 5
  beside.py mxnet --python ENVIRONMENT/bin/python --kill
  beside.py tensorflow --python ENVIRONMENT/bin/python --rounds 3 --steps-per-call 20

mxnet: LeNet on Fashion-MNIST with two synchronous workers and two servers. Both jobs start from the
same weights and train on the same batches (mxnet_lenet.py).
tensorflow: updates of a perceptron by two asynchronous workers and one server
(tensorflow_updates.py, updates.toml).

Each measurement is a job of its own: ours, theirs, ours, theirs. The table has the median of the
rounds, with the lowest and the highest value in brackets. Its last column has the ratio
theirs / ours, computed for each round. --kill kills one server of each job with SIGKILL, and
reports what the job does within --patience seconds.

CPU time is user and system time of all processes of a job. On a machine with other work it is
steadier than wall time. Memory is the peak of resident memory of the largest worker. The start
lasts from the command to the first step. Run this script from the root of the project, after a
build. Exit code 77: the peer is not installed in that Python; 1: a job failed.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from job import SAMPLE_S, Failed, Job, processes_of

NOT_HERE = 77
LENET = "configs/fashion_mnist_dist_sync.toml"
UPDATES = "tests/peers/updates.toml"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=("mxnet", "tensorflow"))
    parser.add_argument("--python", default="python3", help="a Python that has the peer")
    parser.add_argument("--programs", default="bazel-bin", help="the folder with runner/runner")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3, help="epochs to train (mxnet)")
    parser.add_argument("--updates", type=int, default=6000, help="updates to make (tensorflow)")
    parser.add_argument("--steps-per-call", type=int, default=1,
                        help="steps per call of TensorFlow's function (tensorflow)")
    parser.add_argument("--kill", action="store_true",
                        help="kill a server three seconds after the first step")
    parser.add_argument("--patience", type=int, default=60)
    return parser.parse_args()


def events_of(folder):
    """Returns the events that the only run below a folder has written so far."""
    for place, _, files in os.walk(folder):
        if "events.jsonl" in files:
            with open(os.path.join(place, "events.jsonl"), encoding="utf-8") as file:
                return [json.loads(line) for line in file if line.endswith("\n")]
    return []


class Ours:
    """A job of `runner run`; its figures are in the run's events."""

    def __init__(self, options):
        self.options = options
        self.runs = tempfile.TemporaryDirectory()
        self.job = Job([f"{options.programs}/runner/runner", "run", *self.settings(),
                        "--runs", self.runs.name])

    def settings(self):
        if self.options.peer == "mxnet":
            return [LENET, "--set=data.order=\"stored\"",
                    f"--set=train.epochs={self.options.epochs}"]
        return [UPDATES, f"--set=train.steps={self.options.updates}"]

    def begun(self):
        times = [event["time_s"] for event in events_of(self.runs.name) if "begun" in event]
        return min(times) if times else None

    def figures(self):
        events = events_of(self.runs.name)
        trained = [event["trained"] for event in events if "trained" in event]
        validated = [event["validated"] for event in events if "validated" in event]
        last_s = max(event["time_s"] for event in events if "trained" in event)
        warm = [each["epoch_s"] for each in trained if each["epoch"] > 1] or \
            [each["epoch_s"] for each in trained]
        return {"epoch_s": statistics.mean(warm),
                "accuracy": max(validated, key=lambda each: each["step"])["accuracy"],
                "updates_per_s": self.options.updates / (last_s - self.begun())}


class Theirs:
    """A job of a peer's script; its figures are lines of JSON."""

    def __init__(self, options, weights):
        words = {
            "mxnet": ["mxnet_lenet.py", "--epochs", str(options.epochs), "--weights", weights],
            "tensorflow": ["tensorflow_updates.py", "--updates", str(options.updates),
                           "--steps-per-call", str(options.steps_per_call)],
        }[options.peer]
        self.job = Job([options.python, f"tests/peers/{words[0]}", *words[1:]])

    def answers(self):
        return [json.loads(line) for line in self.job.lines if line.startswith("{")]

    def begun(self):
        times = [answer["begun"] for answer in self.answers() if "begun" in answer]
        return times[0] if times else None

    def figures(self):
        answers = self.answers()
        epochs = [answer["epoch_s"] for answer in answers if "epoch_s" in answer]
        return {"epoch_s": statistics.mean(epochs[1:] or epochs) if epochs else None,
                "accuracy": answers[-1]["accuracy"],
                "updates_per_s": answers[-1].get("updates_per_s")}


def measure(side, options):
    with side.job:
        side.job.wait()
    figures = side.figures()
    begun = side.begun()
    figures.update(cpu_s=side.job.cpu_s, start_s=begun - side.job.begin,
                   worker_mb=side.job.worker_bytes / 1e6,
                   update_cpu_ms=side.job.cpu_after(begun) / options.updates * 1e3)
    return figures


ROWS = {
    "mxnet": [("CPU time of the job (s)", "cpu_s", 1), ("epoch after the first (s)", "epoch_s", 2),
              ("peak memory of a worker (MB)", "worker_mb", 0), ("start (s)", "start_s", 2),
              ("validation accuracy at the end", "accuracy", 4)],
    "tensorflow": [("updates per second", "updates_per_s", 0),
                   ("CPU time per update (ms)", "update_cpu_ms", 3),
                   ("peak memory of a worker (MB)", "worker_mb", 0), ("start (s)", "start_s", 2),
                   ("accuracy at the end", "accuracy", 4)],
}


def spread(values, digits):
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f} – {high:.{digits}f})"


def compare(options, weights):
    rounds = []
    for number in range(1, options.rounds + 1):
        rounds.append((measure(Ours(options), options), measure(Theirs(options, weights), options)))
        print(f"{number}/{options.rounds}: {json.dumps(rounds[-1])}", file=sys.stderr, flush=True)
    print(f"| | ours | {options.peer} | theirs / ours |")
    print("| --- | --- | --- | --- |")
    for title, key, digits in ROWS[options.peer]:
        ours, theirs = ([figures[key] for figures in side] for side in zip(*rounds))
        ratios = [b / a for a, b in zip(ours, theirs)]
        print(f"| {title} | {spread(ours, digits)} | {spread(theirs, digits)} | "
              f"{spread(ratios, 2)} |")


def after_kill(name, side, patience_s):
    """Kills a server three seconds after the first step, and says what the job does."""
    job = side.job
    with job:
        while side.begun() is None:
            if job.ended():
                raise Failed(f"{name} ended before its first step: {job.complaint()}")
            time.sleep(SAMPLE_S)
        time.sleep(3)
        servers = [process for process in processes_of(job.child.pid)
                   if process.is_role("server") or process.is_role("ps")]
        os.kill(servers[-1].pid, signal.SIGKILL)
        killed = time.time()
        while not job.ended() and time.time() < killed + patience_s:
            time.sleep(SAMPLE_S)
        does = f"still runs {patience_s} s" if job.child.returncode is None else \
            f"ended with exit code {job.child.returncode}, {job.end - killed:.1f} s"
        print(f"{name}: {does} after a server was killed; last line: {job.complaint()}", flush=True)


def first_weights(options, folder):
    """Returns the path of the first weights of our job. Writes them only for mxnet."""
    if options.peer == "mxnet":
        subprocess.run([f"{options.programs}/tools/bench/bench", "losses", LENET, "--steps=1",
                        f"--dump={folder}"], check=True, stdout=subprocess.DEVNULL)
    return f"{folder}/weights.f32"


def main():
    options = arguments()
    try:
        probe = subprocess.run([options.python, "-c", f"import {options.peer} as peer; "
                                "print(peer.__version__)"], capture_output=True, text=True)
    except OSError as error:
        print(f"beside: {options.python} does not start: {error}", file=sys.stderr)
        return NOT_HERE
    if probe.returncode != 0:
        print(f"beside: {options.python} has no {options.peer}: name another with --python",
              file=sys.stderr)
        return NOT_HERE
    print(f"beside: {options.peer} {probe.stdout.strip()} of {options.python}", file=sys.stderr)
    # When this script ends, its jobs end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory() as folder:
        try:
            weights = first_weights(options, folder)
            if options.kill:
                after_kill("ours", Ours(options), options.patience)
                after_kill(options.peer, Theirs(options, weights), options.patience)
            else:
                compare(options, weights)
        except (Failed, subprocess.CalledProcessError) as reason:
            print(f"beside: {reason}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
