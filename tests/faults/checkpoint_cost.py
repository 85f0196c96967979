#!/usr/bin/env python3
"""Prints how much training time a checkpoint costs, from the events of one run.

  checkpoint_cost.py RUN

RUN is the folder of a run with a small log.every and at least one second between checkpoints, such
as that of

  runner run configs/fashion_mnist_dist_sync.toml --set checkpoint.every_s=2 --set log.every=5

Compares the steps that worker 0 makes during a checkpoint with its other steps before the next
checkpoint. Both are measured within the same seconds, so the figure does not depend on changes of
the machine's speed. The interval in brackets is a bootstrap: it holds 95 % of the means of 2,000
samples of the checkpoints.
"""
import json
import pathlib
import random
import sys

# A step counts as made during a checkpoint from this long before the checkpoint begins until this
# long after it is on disk.
MARGIN_S = 0.05


def main():
    lines = (pathlib.Path(sys.argv[1]) / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    saved = [(event["time_s"] - event["saved"]["save_s"], event["time_s"])
             for event in events if "saved" in event]
    # The first interval of an epoch also measures other work than steps, so it is left out.
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
        sys.exit("no checkpoint has steps during it and at least as many others after it: choose "
                 "a smaller log.every, or a larger checkpoint.every_s")

    def mean_ms(values):
        return 1000 * sum(values) / len(values)
    samples = sorted(mean_ms(random.choices(lost_s, k=len(lost_s))) for _ in range(2000))
    print(f"{len(lost_s)} checkpoints cost {mean_ms(lost_s):.1f} ms each "
          f"({samples[50]:.1f} – {samples[1950]:.1f} ms)")


if __name__ == "__main__":
    main()
