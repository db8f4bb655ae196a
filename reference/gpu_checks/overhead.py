# SPDX-License-Identifier: Apache-2.0
"""What recording costs a job: the same training run plain and observed, all alive at once, a few steps of each in turn, and the ratio of their step times with
its 95 % upper bound.

Whole runs one after the other cannot tell 1 % on a shared machine, whose processors' speed changes by more than that within seconds: between two runs of the
same job, not within one. Jobs that are alive at once and take turns every few hundred milliseconds see the same machine."""
import concurrent.futures
import json
import math
import os
import select
import statistics
import time

TURN = 10      # steps in a row
SETTLE = 2     # of them do not count: another job has just had the caches
WARM_UP = 5    # turns of each that do not count: allocator, clocks and autotuning settle
# One-sided 95 % quantiles of Student's t by degrees of freedom (Abramowitz & Stegun, table 26.10); of more than 30, the normal distribution's.
T_95 = {1: 6.314, 2: 2.920, 3: 2.353, 4: 2.132, 5: 2.015, 6: 1.943, 7: 1.895, 8: 1.860, 9: 1.833, 10: 1.812, 15: 1.753, 20: 1.725, 30: 1.697}


def quantile(freedom):
    """The quantile of at least so few degrees of freedom that it is not too small."""
    return T_95[max(known for known in T_95 if known <= freedom)]


def typical_steps(times):
    """Median step time of each turn that counts, in the unit of `times` (a run's steps in order)."""
    turns = [times[begin:begin + TURN] for begin in range(0, len(times) - TURN + 1, TURN)]
    return [statistics.median(turn[SETTLE:]) for turn in turns[WARM_UP:]]


def overhead(plain, observed):
    """(mean, upper) overhead as shares of the step, from the typical steps of paired rounds: the mean of the logarithms of the rounds' ratios and its
    one-sided 95 % bound (t distribution; the round, not the step, is the unit). At least two rounds."""
    ratios = [math.log(b / a) for a, b in zip(plain, observed)]
    mean = statistics.mean(ratios)
    bound = mean + quantile(len(ratios) - 1) * statistics.stdev(ratios) / math.sqrt(len(ratios))
    return math.expm1(mean), math.expm1(bound)


def order(variants, rounds):
    """The order of turns: every variant once a round, the order reversed in every other round so that a drift of the machine falls on all alike."""
    for number in range(rounds):
        yield from (variants if number % 2 == 0 else reversed(variants))


def in_turns(folder, jobs, rounds, patience_s=180):
    """Runs `jobs` ({name: function(turns, times)}) at once. Each is called in a thread of its own, starts a job that takes turns of TURN steps by `turns`
    (reference/pytorch/turns.py), writes its step times to the file `times`, and returns when the job has ended. Returns {name: step times of all its turns}.
    RuntimeError: a job ended before its last turn, or took longer than `patience_s` for one."""
    pipes, results = {}, {}
    for number, name in enumerate(jobs):
        place = folder / f"turns-{number}"
        place.mkdir(parents=True, exist_ok=True)
        for pipe in ("go", "done"):
            (place / pipe).unlink(missing_ok=True)
            os.mkfifo(place / pipe)
        # Both ends are open here: opening waits for nobody, and a job that goes away breaks no pipe.
        pipes[name] = place, os.open(place / "go", os.O_RDWR), os.open(place / "done", os.O_RDWR)
    try:
        with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
            running = {name: pool.submit(run, f"{pipes[name][0]}:{TURN}", pipes[name][0] / "times.json") for name, run in jobs.items()}
            try:
                for name in order(list(jobs), WARM_UP + rounds):
                    give_turn(name, pipes[name], running[name], patience_s)
            finally:
                for place, go, _ in pipes.values():
                    os.write(go, b"." * 2 * (WARM_UP + rounds))  # whoever still waits, goes on to its end
            for name, job in running.items():
                job.result()
                results[name] = json.loads((pipes[name][0] / "times.json").read_text())
    finally:
        for _, go, done in pipes.values():
            os.close(go)
            os.close(done)
    return results


def give_turn(name, pipes, running, patience_s):
    _, go, done = pipes
    os.write(go, b".")
    deadline = time.monotonic() + patience_s
    while not select.select([done], [], [], 1)[0]:
        if running.done():
            running.result()
            raise RuntimeError(f"{name}: the job ended before its last turn")
        if time.monotonic() > deadline:
            raise RuntimeError(f"{name}: no end of a turn in {patience_s} s")
    os.read(done, 1)
