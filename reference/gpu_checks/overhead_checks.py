# SPDX-License-Identifier: Apache-2.0
"""The overhead table: a bf16 transformer, plain, under Rankscope, in light mode, under torch.profiler and, where present, under nsys."""
import json
import shutil

from jobs import ALONE, alone
from overhead import WARM_UP, overhead, turns, typical_step

STEPS = 200
GOAL, GOAL_UPPER = 0.005, 0.01  # docs: at most 0.5 % with default sources, the 95 % upper bound at most 1 %
SIZES = ("--layers", "8", "--hidden", "2048", "--heads", "16", "--seq", "1024", "--micro-batch", "4", "--steps", str(STEPS))


# What `rankscope run` is asked to leave out, to see which part of it costs what.
PARTS = {"rankscope": (), "no api": ("--trace", "cuda,nccl,nvtx"), "cuda alone": ("--trace", "cuda"), "no health": ("--no-health",)}


def overheads(machine, table):
    """The whole against its goals, and against other profilers."""
    seen = compared(machine, table, ["plain", "rankscope", "light", "torch.profiler"] + (["nsys"] if shutil.which("nsys") else []), 4)
    if seen is None:
        return
    mean, upper = seen["rankscope"]
    table.expect("overhead", "at most 0.5 % of the step, upper bound 1 %", mean <= GOAL and upper <= GOAL_UPPER, f"{100 * mean:+.2f} %, {100 * upper:+.2f} %")
    table.expect("overhead", "no more than torch.profiler's", mean <= max(0.0, seen["torch.profiler"][0]), f"{100 * seen['torch.profiler'][0]:+.2f} %")


def parts(machine, table):
    """Which of the sources costs what: noted, not judged."""
    compared(machine, table, ["plain", *PARTS], 3)


def compared(machine, table, variants, rounds):
    """{variant: (overhead, upper bound)} of runs turn about, noted in the table; None where one failed."""
    steps = {variant: [] for variant in variants}
    for number, variant in enumerate(turns(variants, rounds)):
        times = machine.folder / "times" / f"{number}-{variant}.json"
        times.parent.mkdir(exist_ok=True)
        result = observed(machine, variant, times)
        if result.status != 0 or not times.exists():
            table.expect("overhead", f"the job under {variant}", False, f"status {result.status}: {result.err[-300:]}")
            return None
        steps[variant].append(typical_step(json.loads(times.read_text())))
    seen = {variant: overhead(steps["plain"], steps[variant]) for variant in variants if variant != "plain"}
    typical = sorted(steps["plain"])[rounds // 2]
    for variant, (mean, upper) in seen.items():
        table.row("overhead", variant, "noted", f"{100 * mean:+.2f} % of a step of {typical:.2f} ms, 95 % upper bound {100 * upper:+.2f} % "
                  f"({rounds} rounds of {STEPS - WARM_UP} steps, turn about)")
    return seen


def observed(machine, variant, times):
    job = alone("ddp_train.py", *SIZES, "--step-times", times)
    if variant in PARTS:
        return machine.wrapped("overhead", job, options=PARTS[variant], **ALONE)
    if variant == "light":
        return machine.wrapped("overhead-light", job, options=("--light",), **ALONE)
    if variant == "torch.profiler":
        return machine.run([*job, "--profile", machine.folder / "kineto-overhead"], **ALONE)
    if variant == "nsys":
        return machine.run(["nsys", "profile", "-t", "cuda,nvtx", "-f", "true", "-o", machine.folder / "nsys-overhead", *job], **ALONE)
    return machine.run(job, **ALONE)
