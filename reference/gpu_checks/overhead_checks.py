# SPDX-License-Identifier: Apache-2.0
"""The overhead table: a bf16 transformer, plain, under Rankscope, in light mode, under torch.profiler and, where present, under nsys; and what costs it."""
import os
import pathlib
import shutil
import subprocess

from jobs import ALONE, alone
from overhead import SETTLE, TURN, WARM_UP, in_turns, overhead, typical_steps

ROUNDS = 30
GOAL, GOAL_UPPER = 0.005, 0.01  # docs: at most 0.5 % with default sources, the 95 % upper bound at most 1 %
MODEL = ("--layers", "8", "--hidden", "2048", "--heads", "16", "--seq", "1024", "--micro-batch", "4")
# As many kernels, each so small that a step takes as long as the host needs to launch them: what recording costs the host is not hidden behind the device.
HOST_BOUND = ("--layers", "8", "--hidden", "256", "--heads", "4", "--seq", "128", "--micro-batch", "2")

# What `rankscope run` is asked to leave out, to see which part of it costs what.
PARTS = {"rankscope": (), "no api": ("--trace", "cuda,nccl,nvtx"), "cuda alone": ("--trace", "cuda"), "hooks alone": ("--trace", "nccl,nvtx"), "light": ("--light",),
         "no health": ("--no-health",)}

# CUPTI alone, by a client that only counts (cupti_client.cpp): which of its kinds costs what, whatever a tool makes of the records. Numbers are CUPTI's
# enumerators (cupti_activity.h, cupti_runtime_cbid.h and cupti_driver_cbid.h of CUDA 13.0).
KERNELS, COPIES, CALLS, SYNCS, OVERHEAD, CORRELATION = "10", "1,22,2", "5,4", "38,36", "17", "39"
ALL = ",".join((KERNELS, COPIES, CALLS, SYNCS, OVERHEAD, CORRELATION, "8"))
LAUNCHES = "R211,R430,R311,D307,D652,D514"  # cudaLaunchKernel, cudaLaunchKernelExC, cudaGraphLaunch, cuLaunchKernel, cuLaunchKernelEx, cuGraphLaunch
# … and the calls that copy, set, allocate, free, wait and record events.
WORK = LAUNCHES + ",R41,R51,R31,R20,R22,R131,R137,R165,R135,R370,R147,D277,D126,D121"
# Calls whose handles a callback tells: cudaEventRecord, …WithFlags, cudaStreamWaitEvent, cudaStreamSynchronize, cudaEventSynchronize, cudaDeviceSynchronize.
CALLBACKS = "R135,R370,R147,R131,R137,R165"
CHOSEN = ",".join((KERNELS, COPIES, OVERHEAD, CORRELATION, "8"))
# The runtime's launches, copies and sets make calls of the driver, so that those alone may tell the same by fewer records.
OF_DRIVER = "D307,D652,D514,D216,D218,D220,D277,D279,D281"  # launches, cuMemsetD8/16/32Async, cuMemcpyHtoD/DtoH/DtoDAsync_v2
CLIENTS = {"registered": {}, "kernels": {"KINDS": KERNELS}, "chosen calls": {"KINDS": CHOSEN, "APIS": WORK},
           "chosen calls, callbacks": {"KINDS": CHOSEN, "APIS": WORK, "CALLBACKS": CALLBACKS},
           "chosen calls, synchronisations": {"KINDS": f"{CHOSEN},38", "APIS": WORK}, "chosen calls, events": {"KINDS": f"{CHOSEN},36", "APIS": WORK},
           "chosen calls of the driver": {"KINDS": CHOSEN, "APIS": OF_DRIVER}, "all calls": {"KINDS": f"{CHOSEN},{CALLS}"}, "all": {"KINDS": ALL}, "all, then finalized": {"KINDS": ALL, "RECORDS": "20000"}}


def overheads(machine, table):
    """The whole against its goals, and against other profilers."""
    seen = compared(machine, table, "overhead", ["plain", "rankscope", "light", "torch.profiler"] + (["nsys"] if shutil.which("nsys") else []), MODEL)
    mean, upper = seen["rankscope"]
    table.expect("overhead", "at most 0.5 % of the step, upper bound 1 %", mean <= GOAL and upper <= GOAL_UPPER, f"{100 * mean:+.2f} %, {100 * upper:+.2f} %")
    table.expect("overhead", "no more than torch.profiler's", mean <= max(0.0, seen["torch.profiler"][0]), f"{100 * seen['torch.profiler'][0]:+.2f} %")


def parts(machine, table):
    """Which of our sources costs what: noted, not judged."""
    compared(machine, table, "parts", ["plain", *PARTS], HOST_BOUND)


def cupti(machine, table):
    """Which of CUPTI's kinds costs what: noted, not judged."""
    build_client(machine.folder)
    compared(machine, table, "cupti", ["plain", *CLIENTS], HOST_BOUND)


def client(folder):
    return folder / "libcupti_client.so"


def build_client(folder):
    """Builds cupti_client.cpp. RuntimeError with the compiler's words where that fails."""
    source = pathlib.Path(__file__).with_name("cupti_client.cpp")
    roots = [pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))]
    if nvcc := shutil.which("nvcc"):
        roots.insert(0, pathlib.Path(nvcc).resolve().parents[1])
    includes = [f"-I{root / folder}" for root in roots for folder in ("include", "extras/CUPTI/include")]
    built = subprocess.run(["c++", "-std=c++17", "-O2", "-shared", "-fPIC", *includes, "-o", client(folder), source, "-ldl", "-pthread"],
                           capture_output=True, text=True, check=False)
    if built.returncode != 0:
        raise RuntimeError(built.stderr[-500:])


def compared(machine, table, area, variants, model):
    """{variant: (overhead, upper bound)} of jobs that take turns, noted in the table."""
    def job(variant, number):
        def run(turns, times):
            command = alone("ddp_train.py", *model, "--steps", str((WARM_UP + ROUNDS) * TURN), "--turns", turns, "--step-times", times)
            result = observed(machine, area, variant, command, {**ALONE, "MASTER_PORT": str(29511 + number)})
            if result.status != 0 or not times.exists():
                raise RuntimeError(f"the job under {variant}: status {result.status}: {result.err[-300:]}")
        return run
    times = in_turns(machine.folder / area, {variant: job(variant, number) for number, variant in enumerate(variants)}, ROUNDS)
    steps = {variant: typical_steps(times[variant]) for variant in variants}
    seen = {variant: overhead(steps["plain"], steps[variant]) for variant in variants if variant != "plain"}
    typical = sorted(steps["plain"])[ROUNDS // 2]
    for variant, (mean, upper) in seen.items():
        table.row(area, variant, "noted", f"{100 * mean:+.2f} % of a step of {typical:.2f} ms, 95 % upper bound {100 * upper:+.2f} % "
                  f"({ROUNDS} turns of {TURN - SETTLE} steps)")
    return seen


def observed(machine, area, variant, command, environment):
    """The command, observed as `variant` says; all of one area run at once, so each has a folder of its own."""
    if variant in PARTS:
        return machine.wrapped(f"{area}-{variant.replace(' ', '-')}", command, timeout_s=500, options=PARTS[variant], **environment)
    if variant in CLIENTS:
        wanted = {f"CUPTI_CLIENT_{name}": value for name, value in CLIENTS[variant].items()}
        return machine.run(command, timeout_s=500, LD_PRELOAD=str(client(machine.folder)), **wanted, **environment)
    if variant == "torch.profiler":
        return machine.run([*command, "--profile", machine.folder / "kineto-overhead"], timeout_s=500, **environment)
    if variant == "nsys":
        return machine.run(["nsys", "profile", "-t", "cuda,nvtx", "-f", "true", "-o", machine.folder / "nsys-overhead", *command], timeout_s=500, **environment)
    return machine.run(command, timeout_s=500, **environment)
