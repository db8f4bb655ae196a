# SPDX-License-Identifier: Apache-2.0
"""The harness's own workloads: plain and wrapped, what the recordings hold, NCCL's choices against its log, and recordings to keep."""
import golden
import nccl_log
import trace_checks
from jobs import WORKLOADS
from trace_file import opened


def workloads(machine, table):
    for name, (description, _, expectations) in WORKLOADS.items():
        one(machine, table, name, description, expectations)


def one(machine, table, name, description, expectations):
    command = machine.workload(name)
    plain = None
    if not machine.virtual:
        plain = machine.run(command, 120)
        table.expect(name, "plain: exact results", plain.status == 0, f"status {plain.status}: {plain.out} {plain.err[-200:]}")
    logs = machine.folder / f"nccl-{name}.%h.%p.log"
    wrapped = machine.wrapped(name, command, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="TUNING", NCCL_DEBUG_FILE=str(logs))
    if plain is None:
        table.expect(name, "wrapped: ends well", wrapped.status == 0, f"status {wrapped.status}: {wrapped.out}")
    else:
        table.expect(name, "wrapped: same output and status", (wrapped.status, wrapped.out) == (plain.status, plain.out), f"status {wrapped.status}: {wrapped.out}")
    for check, holds, seen in trace_checks.check(machine.trace(name), expectations):
        table.expect(name, check, holds, seen)
    if not machine.virtual and "plugin" in expectations:
        texts = [path.read_text(errors="replace") for path in machine.folder.glob(f"nccl-{name}.*.log")]
        table.expect(name, "algorithm and protocol as NCCL logs them", *nccl_log.compare(nccl_log.logged(texts), nccl_log.recorded(machine.trace(name))))
    report = machine.report(name)
    if table.expect(name, "analyze", report is not None, f"{name}-report.txt"):
        table.row(name, "findings", "noted", [(found["id"], found["ranks"]) for found in report["findings"]] or "none")
        gpu = "virtual GPUs" if machine.virtual else f"ranks that share one {device(machine.trace(name))}"
        size = golden.keep(machine.run_folder(name), report, machine.folder / "golden" / f"gpu-{name}", description, gpu)
        table.row(name, "recording for traces/", "noted", f"golden/gpu-{name}, {size / 1024:.0f} KiB")


def device(trace):
    with opened(trace) as db:
        return db.execute("SELECT coalesce(max(name), 'GPU') FROM device").fetchone()[0]
