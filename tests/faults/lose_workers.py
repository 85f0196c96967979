#!/usr/bin/env python3
"""Compares runs that lose workers and get new ones with runs that keep their workers.

  lose_workers.py RUNNER RUNS SEEDS LOSSES SIGNAL FILE [--set …]

Runs FILE twice for each of SEEDS seeds: once undisturbed, and once with LOSSES signals to random
workers. SIGNAL is KILL for workers that are lost, or TERM for workers that leave on purpose. One
signal comes at the beginning of each epoch from the second one on. The file needs
cluster.on_loss = "continue". Prints the validation accuracy of every run, the steps at which
workers were lost and joined, and the means with their standard errors.
"""
import glob
import json
import math
import os
import random
import re
import signal
import subprocess
import sys


def events(folder):
    with open(glob.glob(f"{folder}/*/1/events.jsonl")[0]) as lines:
        return [json.loads(line) for line in lines]


def train(program, folder, words, losses, number):
    run = subprocess.Popen([program, "run", *words, "--runs", folder], text=True, bufsize=1,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    epochs = 0
    kills = 0
    for line in run.stdout:
        place = re.search(r"Node\[\d+\] Epoch\[(\d+)\] Batch \[\d+\]", line)
        if not place or kills == losses or int(place[1]) < epochs + 1:
            continue
        epochs = int(place[1])
        roles = subprocess.run(["pgrep", "-P", str(run.pid), "-f", "role=worker"],
                               capture_output=True, text=True).stdout.split()
        os.kill(int(random.choice(roles)), number)
        kills += 1
    run.wait()
    if run.returncode not in (0, 3):
        sys.exit(f"{folder}: exit code {run.returncode}")
    all_events = events(folder)
    accuracy = [e["validated"]["accuracy"] for e in all_events if "validated" in e][-1]
    changes = [e["membership"] for e in all_events if "membership" in e]
    return accuracy, changes


def mean(values):
    return sum(values) / len(values)


def error(values):
    middle = mean(values)
    return math.sqrt(sum((x - middle) ** 2 for x in values) / (len(values) - 1) / len(values))


def main():
    program, runs, seeds, losses = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    number = signal.Signals[f"SIG{sys.argv[5]}"]
    words = sys.argv[6:]
    fixed, changing = [], []
    for seed in range(1, seeds + 1):
        setting = [*words, "--set", f"train.seed={seed}"]
        fixed.append(train(program, f"{runs}/fixed{seed}", setting, 0, number)[0])
        accuracy, changes = train(program, f"{runs}/changing{seed}", setting, losses, number)
        changing.append(accuracy)
        told = ", ".join(f"{'joined' if c['joined'] else 'lost'} at {c['step']}" for c in changes)
        print(f"seed {seed}: fixed {fixed[-1]:.4f}, changing {accuracy:.4f} ({told})", flush=True)
    for name, values in [("fixed", fixed), ("changing", changing)]:
        print(f"{name}: mean {mean(values):.4f}, standard error {error(values):.4f}")


main()
