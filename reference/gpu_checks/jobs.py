# SPDX-License-Identifier: Apache-2.0
"""The jobs that are checked, and how they are started: plain, or wrapped by `rankscope run`."""
import dataclasses
import json
import os
import pathlib
import subprocess
import sys

REFERENCE = pathlib.Path(__file__).resolve().parents[1]
FAILED_JOB = 5  # analyze: the report is there, and the job that it tells of failed
MODEL = {"layers": 4, "hidden": 2048, "seq": 1024, "micro_batch": 2}


def scenario(kind, ranks, faults=(), **parallel):
    """A scenario file's contents for `ranks` ranks, each a node to NCCL (reference/README.md describes the format)."""
    return {"name": f"gpu-{kind}", "kind": kind, "steps": 7, "cluster": {"nodes": ranks, "ranks_per_node": 1}, "model": MODEL,
            "parallel": {"dp": ranks, **parallel}, "faults": list(faults)}


# What is recorded for traces/ as well: description, scenario, expectations of the recording.
ALL = ("ranks", "sources", "records", "kernels", "launches", "order", "nvtx", "steps", "calls", "joined", "external", "hash", "plugin", "network", "overhead", "loss")
PIPELINE = tuple(name for name in ALL if name not in ("joined", "plugin", "network"))
WORKLOADS = {
    "ddp": ("Data parallel, two ranks that share one GPU.", scenario("ddp", 2), ALL),
    "ddp-slow": ("Data parallel, two ranks that share one GPU; every kernel of rank 1 takes twice as long.",
                 scenario("ddp", 2, [{"kind": "straggler", "rank": 1, "factor": 2.0}]), ALL),
    "fsdp": ("Fully sharded, four ranks that share one GPU.", scenario("fsdp", 4), ALL),
    "pp": ("A pipeline of two stages that share one GPU, 8 micro-batches, 1F1B.", scenario("pp", 2, dp=1, pp=2, micro_batches=8), PIPELINE),
}


@dataclasses.dataclass
class Result:
    status: int  # as a shell says it: 128 + signal; 124 when it ran out of time
    out: str
    err: str


@dataclasses.dataclass
class Machine:
    build: pathlib.Path   # where the tools are
    folder: pathlib.Path  # where everything is left
    virtual: bool = False

    @property
    def rankscope(self):
        return str(self.build / "bin" / "rankscope")

    def run(self, command, timeout_s=150, **environment):
        """Runs a command to its end or its time limit; what it leaves running is killed with it."""
        process = subprocess.Popen([str(word) for word in command], env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
        try:
            out, err = process.communicate(timeout=timeout_s)
            status = process.returncode if process.returncode >= 0 else 128 - process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            out, err = process.communicate()
            status = 124
        return Result(status, out, err)

    def wrapped(self, name, command, timeout_s=200, options=(), **environment):
        """The command under `rankscope run`; the run directory is runs/NAME."""
        virtual = ["--virtual"] if self.virtual else []
        result = self.run([self.rankscope, "-q", "run", *virtual, *options, "-o", self.run_folder(name), "--force", "--", *command], timeout_s, **environment)
        (self.folder / f"{name}.log").write_text(result.out + result.err)
        return result

    def run_folder(self, name):
        return self.folder / "runs" / name

    def trace(self, name):
        return self.run_folder(name) / "trace.db"

    def report(self, name):
        """rankscope.report/1 of a run; its text is left beside the table."""
        text = self.run([self.rankscope, "-q", "analyze", self.run_folder(name)])
        (self.folder / f"{name}-report.txt").write_text(text.out + text.err)
        as_json = self.run([self.rankscope, "-q", "analyze", self.run_folder(name), "--format", "json"])
        return json.loads(as_json.out) if as_json.status in (0, FAILED_JOB) else None

    def workload(self, name):
        """The command of one of WORKLOADS."""
        _, contents, _ = WORKLOADS[name]
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(contents))
        shared = [] if self.virtual else ["bash", REFERENCE / "pytorch" / "one_gpu.sh"]
        ranks = contents["cluster"]["nodes"]
        return ["bash", REFERENCE / "launch_ranks.sh", ranks, *shared, self.build / "libexec" / "rankscope" / "rankscope-workload", path]


def torchrun(script, ranks, *options):
    """A script of reference/pytorch on ranks that share one GPU."""
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}", "--no-python", "bash",
            REFERENCE / "pytorch" / "one_gpu.sh", sys.executable, REFERENCE / "pytorch" / script, *options]


# A job of one rank that nobody launched: importing torch in a launcher as well would double the time of a short run.
ALONE = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}


def alone(script, *options):
    """A script of reference/pytorch as one rank; to be run with ALONE in its environment."""
    return [sys.executable, REFERENCE / "pytorch" / script, *options]


def has_torch():
    """Whether PyTorch is here and sees a GPU."""
    found = subprocess.run([sys.executable, "-c", "import torch, sys; sys.exit(not torch.cuda.is_available())"], capture_output=True, check=False)
    return found.returncode == 0
