#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What sharing out `collect`, `analyze` and `recommend` gains, against one process with one thread, in turns.

    tests/bench/shared_job.py build/bin/rankscope RUN [--processes 2 4] [--threads 2] [--turns 5] [--verbs analyze]

RUN is a run directory with its captures. Of processes under mpirun, each with one thread, what counts is the processor
time of the one that takes most: on a machine with fewer cores than processes, or that others use, the clock tells
nothing of a machine with enough. What processes wait for each other is not in it. Of threads it is the clock's time,
which wants as many idle cores; collect, which takes what cores it has, is not asked. Prints medians, and fails where a
report or trace.db is not that of one process."""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe"]  # Open MPI's
PROCESS_GOALS = {2: 1.8, 4: 3.2}
THREAD_GOALS = {2: 1.8}


def measure(file, command):
    """In each process: runs the command as a child and appends its seconds of a processor and of the clock, and its
    peak memory, MiB, as one line."""
    began = time.monotonic()
    child = os.posix_spawn(command[0], command, os.environ)
    _, status, usage = os.wait4(child, 0)
    took = time.monotonic() - began
    with open(file, "a", encoding="ascii") as out:
        out.write(f"{usage.ru_utime + usage.ru_stime} {took} {usage.ru_maxrss / 1024}\n")
    return os.waitstatus_to_exitcode(status)


def once(program, verb, run, processes, threads):
    """Of each process its seconds of a processor, of the clock, and MiB; and what was made."""
    with tempfile.NamedTemporaryFile("r", encoding="ascii") as file:
        workers = [] if verb == "collect" else ["--workers", str(threads)]  # collect takes what cores there are
        alone = [sys.executable, __file__, "--measure", file.name, program, "-q", verb, run, *workers]
        command = alone if processes == 1 else [*MPIRUN, "-n", str(processes), *alone]
        told = subprocess.run(command, capture_output=True, check=True).stdout
        lines = [[float(value) for value in line.split()] for line in file.read().splitlines()]
    if len(lines) != processes:
        sys.exit(f"{len(lines)} of {processes} processes told what they took")
    made = told if verb != "collect" else (pathlib.Path(run) / "trace.db").read_bytes()
    return lines, made


class Row:
    """One way to share a verb out, and what it took in each turn."""

    def __init__(self, processes, threads):
        self.processes, self.threads = processes, threads
        self.most, self.together, self.clock, self.memory = [], [], [], []

    def take(self, lines):
        self.most.append(max(line[0] for line in lines))
        self.together.append(sum(line[0] for line in lines))
        self.clock.append(max(line[1] for line in lines))
        self.memory.append(max(line[2] for line in lines))

    def name(self):
        if self.threads > 1:
            return f"{self.threads} threads"
        return "1 process" if self.processes == 1 else f"{self.processes} processes"

    def gain(self, one):
        """How many times less it takes than `one`."""
        took, of_one = (self.clock, one.clock) if self.threads > 1 else (self.most, one.most)
        return statistics.median(of_one) / statistics.median(took)

    def goal(self):
        goal = THREAD_GOALS.get(self.threads) if self.threads > 1 else PROCESS_GOALS.get(self.processes)
        return f">= {goal}" if goal else ""


def main():
    if sys.argv[1:2] == ["--measure"]:
        sys.exit(measure(sys.argv[2], sys.argv[3:]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("run")
    parser.add_argument("--processes", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--threads", type=int, nargs="*", default=[])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--verbs", nargs="+", choices=["collect", "analyze", "recommend"],
                        default=["collect", "analyze"])
    words = parser.parse_args()
    program = str(pathlib.Path(words.program).resolve())
    print("| what | most of one process, s | all together, s | by the clock, s | most memory of one, MiB | gain | goal |\n"
          "| --- | --- | --- | --- | --- | --- | --- |")
    for verb in words.verbs:
        rows = [Row(1, 1), *(Row(processes, 1) for processes in words.processes),
                *(Row(1, threads) for threads in words.threads if verb != "collect")]
        expected = None
        for _ in range(words.turns):
            for row in rows:
                lines, made = once(program, verb, words.run, row.processes, row.threads)
                expected = made if expected is None else expected
                if made != expected:
                    sys.exit(f"{verb} by {row.name()} made something else than one process")
                row.take(lines)
        for row in rows:
            took = [statistics.median(seconds) for seconds in (row.most, row.together, row.clock)]
            print(f"| {verb}, {row.name()} | {' | '.join(f'{seconds:.2f}' for seconds in took)} | "
                  f"{statistics.median(row.memory):.0f} | {row.gain(rows[0]):.2f} | {row.goal()} |", flush=True)


if __name__ == "__main__":
    main()
