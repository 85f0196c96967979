#!/usr/bin/env python3
"""Kills a random role of a run again and again, and prints what each loss costs.

  kill_roles.py RUNNER RUNS SECONDS KILLS FILE [--set …]

Starts `RUNNER run FILE --set … --runs RUNS`, and kills a role every SECONDS seconds until it has
killed KILLS roles (0: no role, to time an undisturbed run). The file needs cluster.on_loss =
"restart" and a small log.every. Prints for each kill the seconds until runner has reported the
loss, until the new coordinator has continued from the checkpoint, and until worker 0 has logged a
step after its last one before the loss. Ends with the time lost per kill, and the share of the
time that is kept.
"""
import glob
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time


def times_of(stream, note):
    """Calls note(time, line) for each line of a stream, on a thread."""
    def read():
        for line in stream:
            note(time.time(), line)
    thread = threading.Thread(target=read)
    thread.start()
    return thread


def main():
    program, runs, pause_s, count = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    begun = time.time()
    run = subprocess.Popen([program, "run", *sys.argv[5:], "--runs", runs], text=True, bufsize=1,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    steps, losses, kills = [], [], []

    def note_step(now, line):
        place = re.search(r"Node\[0\] Epoch\[(\d+)\] Batch \[(\d+)\]", line)
        if place:
            steps.append((now, (int(place[1]), int(place[2]))))

    def note_loss(now, line):
        if "started again" in line:
            losses.append(now)
        elif line.startswith("error"):
            print(line, end="")

    readers = [times_of(run.stdout, note_step), times_of(run.stderr, note_loss)]
    while len(kills) < count:
        try:
            run.wait(pause_s)
            break
        except subprocess.TimeoutExpired:
            pass
        roles = subprocess.run(["pgrep", "-P", str(run.pid)], capture_output=True, text=True)
        victim = int(random.choice(roles.stdout.split()))
        with open(f"/proc/{victim}/cmdline") as words:
            role = re.search(r"--role=(\w+)", words.read())[1]
        kills.append((time.time(), role, steps[-1][1]))
        os.kill(victim, signal.SIGKILL)
    run.wait()
    for reader in readers:
        reader.join()
    print(f"{time.time() - begun:.2f} s with {len(kills)} kills, exit code {run.returncode}")

    continued = []
    for path in glob.glob(f"{runs}/*/*/events.jsonl"):
        with open(path) as events:
            continued += [json.loads(line)["time_s"] for line in events if '"continued"' in line]
    lost_s = []
    for at, role, step in kills:
        def after(moments):
            later = [f"{moment - at:.2f} s" for moment in moments if moment > at]
            return later[0] if later else "never"
        # Lines that the roles logged before the kill may arrive after it.
        noticed = min((moment for moment in losses if moment > at), default=at)
        before = max((reached for moment, reached in steps if moment <= noticed), default=step)
        again = [moment for moment, reached in steps if moment > noticed and reached > before]
        if again:
            lost_s.append(again[0] - at)
        print(f"{role}: loss reported after {after(losses)}, checkpoint loaded after "
              f"{after(continued)}, further than before the loss after {after(again)}")
    if lost_s:
        print(f"time lost per kill: median {sorted(lost_s)[len(lost_s) // 2]:.2f} s, worst "
              f"{max(lost_s):.2f} s; with a kill every {pause_s:g} s, "
              f"{100 - 100 * sum(lost_s) / len(lost_s) / pause_s:.1f} % of the time is kept")


main()
