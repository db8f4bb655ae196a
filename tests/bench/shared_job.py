#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What sharing out `collect`, `analyze` and `recommend` under mpirun gains: processor time of the process that takes most, against one process, in turns.

    tests/bench/shared_job.py build/bin/rankscope RUN [--processes 2 4] [--turns 5] [--verbs collect analyze recommend]

RUN is a run directory with its captures. Time of a processor, not of a clock: on a machine with fewer cores than processes, or that others use, the clock tells
nothing of a machine with enough. What processes wait for each other is not in it. Prints medians, and fails where a report or trace.db is not that of one process."""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe"]  # Open MPI's
GOALS = {2: 1.8, 4: 3.2}


def measure(file, command):
    """In each process: runs the command as a child and appends its seconds of a processor and its peak memory, MiB, as one line."""
    child = os.posix_spawn(command[0], command, os.environ)
    _, status, usage = os.wait4(child, 0)
    with open(file, "a", encoding="ascii") as out:
        out.write(f"{usage.ru_utime + usage.ru_stime} {usage.ru_maxrss / 1024}\n")
    return os.waitstatus_to_exitcode(status)


def once(program, verb, run, processes):
    """Seconds of each process, MiB of each, and what was made."""
    with tempfile.NamedTemporaryFile("r", encoding="ascii") as file:
        alone = [sys.executable, __file__, "--measure", file.name, program, "-q", verb, run]
        command = alone if processes == 1 else [*MPIRUN, "-n", str(processes), *alone]
        told = subprocess.run(command, capture_output=True, check=True).stdout
        lines = [line.split() for line in file.read().splitlines()]
    if len(lines) != processes:
        sys.exit(f"{len(lines)} of {processes} processes told what they took")
    made = told if verb != "collect" else (pathlib.Path(run) / "trace.db").read_bytes()
    return [float(line[0]) for line in lines], [float(line[1]) for line in lines], made


def main():
    if sys.argv[1:2] == ["--measure"]:
        sys.exit(measure(sys.argv[2], sys.argv[3:]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("run")
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--verbs", nargs="+", choices=["collect", "analyze", "recommend"], default=["collect", "analyze"])
    words = parser.parse_args()
    program = str(pathlib.Path(words.program).resolve())
    print("| what | most of one process, s | all together, s | most memory of one, MiB | against one process | goal |\n| --- | --- | --- | --- | --- | --- |")
    for verb in words.verbs:
        most, together, memory = {}, {}, {}
        expected = None
        for _ in range(words.turns):
            for processes in (1, *words.processes):
                seconds, mebibytes, made = once(program, verb, words.run, processes)
                expected = made if expected is None else expected
                if made != expected:
                    sys.exit(f"{verb} by {processes} processes made something else than one process")
                most.setdefault(processes, []).append(max(seconds))
                together.setdefault(processes, []).append(sum(seconds))
                memory.setdefault(processes, []).append(max(mebibytes))
        one = statistics.median(most[1])
        for processes, values in most.items():
            goal = f">= {GOALS[processes]}" if processes in GOALS else ""
            print(f"| {verb}, {processes} process{'es' if processes > 1 else ''} | {statistics.median(values):.2f} | {statistics.median(together[processes]):.2f} | "
                  f"{statistics.median(memory[processes]):.0f} | {one / statistics.median(values):.2f} | {goal} |")


if __name__ == "__main__":
    main()
