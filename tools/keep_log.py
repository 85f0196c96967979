#!/usr/bin/env python3
"""keep_log: keeps the log of a run for the results page: `tools/keep_log.py RUN NAME`.

Compresses RUN/log.txt to results/NAME.log.xz and prints the entry for results/index.toml, filled in
from the run's experiment.toml. Run it from the root of the project.
"""

import json
import lzma
import re
import sys
import tomllib
from pathlib import Path

# How many training records the data sets of known size have.
TRAINING_RECORDS = {"mnist": 60000, "fashion_mnist": 60000, "cifar10": 50000}


class Refused(Exception):
    """Says in one sentence what is wrong."""


def read_run(run):
    """The log and the experiment of a run that has finished."""
    try:
        log = (run / "log.txt").read_bytes()
        experiment = (run / "experiment.toml").read_bytes()
        events = (run / "events.jsonl").read_bytes()
    except OSError as error:
        raise Refused(f"{run} is not the folder of a run: {error}") from error
    try:
        last = json.loads(events.splitlines()[-1])
        finished = "finished" in last
    except (IndexError, TypeError, ValueError):
        finished = False
    if not finished:
        raise Refused(f"the run in {run} has not finished: run it to its end, then keep its log")
    try:
        return log, tomllib.loads(experiment.decode())
    except ValueError as error:
        raise Refused(f"{run}/experiment.toml is damaged: {error}") from error


def text(value):
    """Returns the value as a TOML string."""
    return json.dumps(value, ensure_ascii=False)


def epoch_images(experiment):
    """Returns the line `epoch_images = …`, unless an epoch is the data set's training images."""
    data = experiment["data"]
    each_all = data.get("part", "split") != "split"
    held_out = data.get("held_out", 0)
    if not each_all and held_out == 0:
        return []
    workers = experiment["cluster"]["workers"] if each_all else 1
    why = "every worker reads all records" if each_all else "some records are held out"
    if data.get("dataset") not in TRAINING_RECORDS:
        return [f"epoch_images = …  # {why}"]
    records = TRAINING_RECORDS[data["dataset"]] - held_out
    return [f"epoch_images = {records * workers}  # {why}"]


def settings(run, experiment):
    """The line that names a sweep's run by the settings in its folder's name."""
    found = re.fullmatch(r"(.+=.+)-[0-9a-f]+", run.resolve().name)
    if not found:
        return []
    return [f"name = {text(experiment['name'] + ', ' + found[1].replace(',', ', '))}"]


def flat(table, prefix=""):
    """(dotted key, value) of everything below `table`."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def published(experiment):
    """Returns the lines of the section with the published figures of this run."""
    if "published" not in experiment:
        return []
    section = experiment["published"]
    values = dict(flat(experiment))
    rows = []
    for row in section.get("rows", []):
        where = dict(flat(row.get("where", {})))
        if all(key in values and values[key] == value for key, value in where.items()):
            figures = [f"{key} = {value}" for key, value in row.items() if key != "where"]
            rows.append("{ " + ", ".join(figures) + " }")
    if section.get("rows") and not rows:
        return []
    return [
        "",
        "[experiments.runs.published]",
        f"source = {text(section['source'])}",
        f"rows = [{', '.join(rows)}]",
    ]


def entry(run, name, experiment):
    data = experiment["data"]
    workers = experiment["cluster"]["workers"]
    devices = workers * len(experiment["cluster"].get("devices", ["cpu"]))
    config = f"configs/{experiment['name']}.toml"
    lines = [
        "[[experiments.runs]]",
        f"log = {text(name)}",
        *settings(run, experiment),
        f"config = {text(config)}",
        'cluster = "…"',
        f"devices = {devices}",
        f'batch_size = {data["batch_size"] * workers // devices}',
        f"kvstore = {text(experiment['kvstore']['mode'])}",
        *epoch_images(experiment),
        *published(experiment),
    ]
    return "\n".join(lines)


def keep(run, name):
    """Keeps the log and returns its entry."""
    kept = Path("results") / f"{name}.log.xz"
    if kept.exists():
        raise Refused(f"{kept} is there already: remove it, or choose another name")
    log, experiment = read_run(run)
    try:
        lines = entry(run, name, experiment)
    except (AttributeError, KeyError, TypeError, ZeroDivisionError) as error:
        raise Refused(f"{run}/experiment.toml is damaged: {error!r}") from error
    try:
        kept.write_bytes(lzma.compress(log, preset=9))
    except OSError as error:
        raise Refused(
            f"cannot write {kept}: {error}. Run this from the root of the project") from error
    return lines


def main():
    if len(sys.argv) != 3:
        print("usage: tools/keep_log.py RUN NAME", file=sys.stderr)
        return 2
    try:
        print(keep(Path(sys.argv[1]), sys.argv[2]))
    except Refused as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
