# SPDX-License-Identifier: Apache-2.0
"""Checks on a machine with a GPU: python3 reference/gpu_checks --build BUILD --out FOLDER [--only AREA…] [--virtual]

Started by reference/gpu_checks.sh, which builds first. Leaves checks.md, reports, golden/ (recordings for traces/) and runs/ in FOLDER.
Ends with 1 if a check failed. docs/gpu-checks.md says what is checked and why."""
import argparse
import datetime
import pathlib
import subprocess
import sys

import overhead_checks
import torch_checks
import workload_checks
from jobs import Machine, has_torch
from table import Table

# In the order of what must not be missing when time runs out.
AREAS = {"workloads": workload_checks.workloads, "kineto": torch_checks.kineto, "overhead": overhead_checks.overheads, "parts": overhead_checks.parts, "cupti": overhead_checks.cupti, "torch": torch_checks.scripts,
         "graphs": torch_checks.graphs, "killed": torch_checks.killed, "profilers": torch_checks.profilers}
NEED_TORCH = set(AREAS) - {"workloads"}


def said_by(*command):
    try:
        lines = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout.splitlines()
    except (OSError, subprocess.TimeoutExpired):
        return "none"
    return lines[-1] if lines else "none"


def head(virtual, nccl):
    if virtual:
        return [f"# Checks on the virtual GPUs, {datetime.date.today()}"]
    return [f"# Checks on a GPU, {datetime.date.today()}", "",
            "- GPU: " + said_by("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"),
            "- CUDA: " + said_by("nvcc", "--version"), f"- NCCL: {nccl}",
            "- PyTorch: " + said_by(sys.executable, "-c", "import torch; print(torch.__version__, 'NCCL', torch.cuda.nccl.version())")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="folder of the build")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="where the table and the recordings go")
    parser.add_argument("--only", nargs="+", choices=AREAS, default=list(AREAS))
    parser.add_argument("--virtual", action="store_true", help="the workloads on the virtual GPUs: checks these checks")
    parser.add_argument("--nccl", default="unknown", help="NCCL's version, for the table's head")
    options = parser.parse_args()
    machine = Machine(options.build.resolve(), options.out.resolve(), options.virtual)
    (machine.folder / "runs").mkdir(parents=True, exist_ok=True)
    table = Table(machine.folder / "checks.md", head(options.virtual, options.nccl))
    doctor = machine.run([machine.rankscope, "doctor"])
    (machine.folder / "doctor.txt").write_text(doctor.out + doctor.err)
    table.expect("machine", "doctor", doctor.status == 0 and doctor.out != "", f"status {doctor.status}; doctor.txt")
    torch = not options.virtual and has_torch()
    for area in options.only:
        if area in NEED_TORCH and not torch:
            table.row(area, "PyTorch's jobs", "not run", "no PyTorch with CUDA here")
            continue
        try:
            AREAS[area](machine, table)
        except Exception as error:  # an area that breaks must not take the others' time on the GPU with it
            table.expect(area, "ran to its end", False, repr(error))
    print(f"{table.path}: {table.failed} failed", file=sys.stderr)
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
