#!/usr/bin/env python3
"""keep_log: keeps the log of a run for the results page: `tools/keep_log.py RUN NAME`.

Compresses RUN/log.txt to results/NAME.log.xz and prints the entry for results/index.toml, with
what the run's own experiment.toml tells. Run it from the root.
"""

import lzma
import sys
import tomllib
from pathlib import Path


def entry(name, experiment):
    data = experiment["data"]
    workers = experiment["cluster"]["workers"]
    devices = workers * len(experiment["cluster"].get("devices", ["cpu"]))
    lines = [
        "[[experiments.runs]]",
        f'log = "{name}"',
        f'config = "configs/{experiment["name"]}.toml"',
        'cluster = "…"',
        f"devices = {devices}",
        f'batch_size = {data["batch_size"] * workers // devices}',
        f'kvstore = "{experiment["kvstore"]["mode"]}"',
    ]
    if data.get("part", "split") != "split":
        lines.append("epoch_images = …  # every worker takes the whole data")
    return "\n".join(lines)


def main():
    if len(sys.argv) != 3:
        print("usage: tools/keep_log.py RUN NAME", file=sys.stderr)
        return 2
    run, name = Path(sys.argv[1]), sys.argv[2]
    kept = Path("results") / f"{name}.log.xz"
    if kept.exists():
        print(f"{kept} is there already: remove it, or choose another name", file=sys.stderr)
        return 2
    try:
        log = (run / "log.txt").read_bytes()
        experiment = tomllib.loads((run / "experiment.toml").read_text())
    except OSError as error:
        print(f"{run} is no folder of a run: {error}", file=sys.stderr)
        return 2
    kept.write_bytes(lzma.compress(log, preset=9))
    print(entry(name, experiment))
    return 0


if __name__ == "__main__":
    sys.exit(main())
