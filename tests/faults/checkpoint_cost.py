#!/usr/bin/env python3
"""Prints how much training time a checkpoint costs, from the events of one run.

  checkpoint_cost.py RUN

RUN is the folder of a run with a small log.every and at least one second between checkpoints, such
as that of

  runner run configs/fashion_mnist_dist_sync.toml --set checkpoint.every_s=2 --set log.every=5

Compares worker 0's steps beside a checkpoint with the other steps before the next one. Since both
are of the same seconds, a machine whose speed changes does not spoil the figure. The interval
holds 95 % of 2,000 samples of the checkpoints (bootstrap).
"""
import json
import pathlib
import random
import sys

# Steps count as beside a checkpoint from so long before it begins to so long after it is on disk.
MARGIN_S = 0.05


def main():
    lines = (pathlib.Path(sys.argv[1]) / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    saved = [(event["time_s"] - event["saved"]["save_s"], event["time_s"])
             for event in events if "saved" in event]
    # The first interval of an epoch holds more than steps.
    intervals = [(event["time_s"] - event["speed"]["interval_s"], event["time_s"])
                 for event in events if "speed" in event and event["role"] == "worker"
                 and event["index"] == 0 and event["speed"]["batch"] > event["speed"]["batches"]]
    lost_s = []
    for (begin, end), (next_begin, _) in zip(saved, saved[1:]):
        beside, others = [], []
        for first, last in intervals:
            if last > begin - MARGIN_S and first < end + MARGIN_S:
                beside.append(last - first)
            elif first > end and last < next_begin - MARGIN_S:
                others.append(last - first)
        if beside and len(others) >= len(beside):
            lost_s.append(sum(beside) - len(beside) * sum(others) / len(others))
    if not lost_s:
        sys.exit("no checkpoint has steps beside it and others after it: choose a smaller "
                 "log.every, or a larger checkpoint.every_s")

    def mean_ms(values):
        return 1000 * sum(values) / len(values)
    samples = sorted(mean_ms(random.choices(lost_s, k=len(lost_s))) for _ in range(2000))
    print(f"{len(lost_s)} checkpoints cost {mean_ms(lost_s):.1f} ms each "
          f"({samples[50]:.1f} – {samples[1950]:.1f} ms)")


if __name__ == "__main__":
    main()
