# SPDX-License-Identifier: Apache-2.0
"""PyTorch's jobs: under torchrun, with CUDA graphs, killed, and beside torch.profiler."""
import json
import re

import kineto_match
import trace_checks
from jobs import torchrun
from trace_file import opened

SCRIPTS = {"ddp": "ddp_train.py", "fsdp": "fsdp_train.py", "tp": "tp_train.py", "pp": "pp_train.py"}
COLLECTIVES = ("ranks", "sources", "records", "kernels", "launches", "order", "nvtx", "steps", "calls", "joined", "external", "hash", "plugin", "network", "loss")
MESSAGES = tuple(name for name in COLLECTIVES if name not in ("joined", "plugin", "network"))


def result_line(result):
    """What a script says at its end: its name, its ranks and the last loss, which a profiler must not change."""
    found = re.findall(r"(?:ddp|fsdp|tp|pp|graph): \d+ ranks, \d+ steps, loss \S+", result.out)
    return found[-1] if found else f"no result: {result.err[-200:]}"


def scripts(machine, table):
    for kind, script in SCRIPTS.items():
        name, job = f"torch-{kind}", torchrun(script, 2)
        plain, wrapped = machine.run(job), machine.wrapped(name, job)
        table.expect(name, "wrapped: same result and status", (plain.status, wrapped.status) == (0, 0) and result_line(plain) == result_line(wrapped),
                     f"status {plain.status} and {wrapped.status}: {result_line(plain)} and {result_line(wrapped)}")
        for check, holds, seen in trace_checks.check(machine.trace(name), MESSAGES if kind == "pp" else COLLECTIVES):
            table.expect(name, check, holds, seen)
        report = machine.report(name)
        table.expect(name, "analyze", report is not None, f"{name}-report.txt")


def graphs(machine, table):
    job = torchrun("graph_train.py", 1)
    plain, wrapped = machine.run(job), machine.wrapped("torch-graph", job)
    table.expect("torch-graph", "wrapped: same result and status", plain.status == wrapped.status == 0 and result_line(plain) == result_line(wrapped),
                 f"status {wrapped.status}: {result_line(plain)} and {result_line(wrapped)}")
    for check, holds, seen in trace_checks.check(machine.trace("torch-graph"), ("ranks", "kernels", "launches", "order", "graphs", "steps", "loss")):
        table.expect("torch-graph", check, holds, seen)


def killed(machine, table):
    """A rank dies by SIGKILL as step 20 begins: the steps before it are there, but for what CUPTI had not delivered (at most 200 ms)."""
    result = machine.wrapped("torch-killed", torchrun("ddp_train.py", 2, "--steps", "40", "--kill", "1:20"))
    table.expect("torch-killed", "the job fails as it would", result.status != 0, f"status {result.status}")
    with opened(machine.trace("torch-killed")) as db:
        state = db.execute("SELECT state FROM rank WHERE rank = 1").fetchone()
        begun = db.execute("SELECT count(DISTINCT s.text) FROM nvtx n JOIN string s ON s.id = n.name_id WHERE n.rank = 1 AND s.text LIKE 'ProfilerStep#%'").fetchone()[0]
        last_kernel = db.execute("SELECT max(start_ns + dur_ns) FROM kernel WHERE rank = 1").fetchone()[0]
        last_range = db.execute("SELECT max(start_ns + coalesce(dur_ns, 0)) FROM nvtx WHERE rank = 1").fetchone()[0]
    table.expect("torch-killed", "the rank is known to have died", state == ("died",), state)
    table.expect("torch-killed", "every range up to the kill is there", begun == 20, f"{begun} of 20 steps")
    behind = None if last_kernel is None else (last_range - last_kernel) / 1e6
    table.expect("torch-killed", "kernels up to 300 ms before the kill are there", behind is not None and behind <= 300, f"the last kernel ended {behind} ms before the last range")
    report = machine.report("torch-killed")
    table.expect("torch-killed", "analyze", report is not None and any(loss["kind"] == "died" for loss in report["loss"]),
                 [loss["kind"] for loss in report["loss"]] if report else "no report")


def profilers(machine, table):
    """torch.profiler and Rankscope in one process: who gets CUPTI is said, and neither the job nor the other's trace is harmed."""
    folder = machine.folder / "kineto-together"
    alone = machine.run(torchrun("ddp_train.py", 2))
    result = machine.wrapped("torch-together", torchrun("ddp_train.py", 2, "--profile", folder))
    table.expect("torch-together", "the job is unharmed", result.status == 0 and result_line(result) == result_line(alone), f"status {result.status}: {result_line(result)}")
    for rank in range(2):
        kernels = sum(map(len, kineto_match.of_kineto(folder / f"rank{rank}.json").values())) if valid(folder / f"rank{rank}.json") else 0
        table.expect("torch-together", f"torch.profiler's trace of rank {rank} is valid", kernels > 0, f"{kernels} kernels")
    with opened(machine.trace("torch-together")) as db:
        states = db.execute("SELECT source, state, message, count(*) FROM source_status GROUP BY 1, 2, 3").fetchall()
        ours = db.execute("SELECT rank, count(*) FROM kernel GROUP BY rank").fetchall()
        calls = db.execute("SELECT rank, count(*) FROM nccl_call GROUP BY rank").fetchall()
    said = any(source == "cupti" and state != "live" for source, state, _, _ in states)
    table.expect("torch-together", "kernels are there, or it is said who has CUPTI", said or len(ours) == 2, f"{states}; kernels {ours}")
    table.expect("torch-together", "the other sources go on", len(calls) == 2, f"calls {calls}")


def valid(path):
    try:
        return "traceEvents" in json.loads(path.read_text())
    except (OSError, ValueError):
        return False


def kineto(machine, table):
    """The same job once under Rankscope and once under torch.profiler. One rank: its kernels have the GPU for themselves."""
    folder = machine.folder / "kineto-alone"
    sizes = ("--layers", "6", "--hidden", "1024", "--seq", "512", "--steps", "20")
    profiled = machine.run(torchrun("ddp_train.py", 1, *sizes, "--profile", folder))
    wrapped = machine.wrapped("torch-kineto", torchrun("ddp_train.py", 1, *sizes))
    table.expect("torch-kineto", "both runs end well", profiled.status == wrapped.status == 0, f"status {profiled.status} and {wrapped.status}")
    if not valid(folder / "rank0.json"):
        table.expect("torch-kineto", "torch.profiler left a trace", False, folder / "rank0.json")
        return
    same, close, seen = kineto_match.compare(kineto_match.of_rankscope(machine.trace("torch-kineto"), 0), kineto_match.of_kineto(folder / "rank0.json"))
    table.expect("torch-kineto", "kernel count equals Kineto's", same, seen)
    table.expect("torch-kineto", "durations agree with Kineto's", close, seen)
