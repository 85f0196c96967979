"""job: runs a command in a session of its own for beside.py, and measures what it uses.

A job is all processes of the session. wait() samples them in /proc. The CPU time of the whole job
is read when the command ends, and counts every process that was waited for.
"""

import os
import signal
import subprocess
import tempfile
import threading
import time

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
SAMPLE_S = 0.1  # looking at all processes takes some milliseconds


class Failed(Exception):
    """A job failed. The text is one line that says why."""


class Process:
    """A process of a job, as /proc shows it."""

    def __init__(self, pid):
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        self.pid = pid
        self.session = int(fields[3])
        self.cpu_s = (int(fields[11]) + int(fields[12])) * TICK_S

    def is_role(self, name):
        with open(f"/proc/{self.pid}/cmdline", encoding="utf-8", errors="replace") as file:
            words = file.read().split("\0")
        return f"--role={name}" in words or ["--role", name] in map(list, zip(words, words[1:]))

    def peak_bytes(self):
        with open(f"/proc/{self.pid}/status", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        return 0


def processes_of(session):
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and (process := Process(int(name))).session == session:
                found.append(process)
        except OSError:
            pass  # it has ended meanwhile
    return found


class Job:
    """A command in a session of its own, and what it used. Leaving the context kills all processes
    that still run."""

    def __init__(self, words):
        self.errors = tempfile.TemporaryFile()
        self.begin = time.time()
        self.child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=self.errors,
                                      start_new_session=True)
        self.lines = []
        self.samples = []  # (time, CPU seconds of all processes that live)
        self.worker_bytes = 0
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.returncode is None:
            for process in processes_of(self.child.pid):
                os.kill(process.pid, signal.SIGKILL)
            self.child.wait()
        self.reader.join()

    def read(self):
        for line in self.child.stdout:
            self.lines.append(line.decode(errors="replace"))

    def sample(self):
        processes = processes_of(self.child.pid)
        self.samples.append((time.time(), sum(process.cpu_s for process in processes)))
        for process in processes:
            try:
                if process.is_role("worker"):
                    self.worker_bytes = max(self.worker_bytes, process.peak_bytes())
            except OSError:
                pass

    def ended(self):
        """Returns whether the command has ended. Then cpu_s counts all processes it waited for."""
        pid, status, usage = os.wait4(self.child.pid, os.WNOHANG)
        if pid == 0:
            return False
        self.end = time.time()
        self.child.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s = usage.ru_utime + usage.ru_stime
        return True

    def cpu_after(self, moment):
        """CPU seconds from a moment to the end."""
        before = [cpu_s for when, cpu_s in self.samples if when <= moment]
        return self.cpu_s - (before[-1] if before else 0)

    def complaint(self):
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "nothing on standard error"

    def wait(self):
        while not self.ended():
            self.sample()
            time.sleep(SAMPLE_S)
        self.reader.join()
        if self.child.returncode != 0:
            raise Failed(f"exit code {self.child.returncode}: {self.complaint()}")
