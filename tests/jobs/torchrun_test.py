#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real DDP job under torchrun, wrapped from outside and rank by rank: a CPU job, so that it runs everywhere PyTorch does."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import unittest

from wrapped import RANKSCOPE, TIMEOUT_S, JobTest

TRAIN = """
import sys
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.randn(16, 8)).square().mean().backward()
    optimizer.step()
total = torch.tensor([sum(p.abs().sum().item() for p in model.parameters())])
dist.all_reduce(total)
sys.stdout.write("rank %d: %.6f\\n" % (dist.get_rank(), total.item()))
sys.stdout.flush()
dist.destroy_process_group()
"""
# Says that it runs, and what it is told while it waits for a collective that its peer never calls. Without its launcher it ends.
WAIT = """
import os, signal, sys, threading
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
def caught(number, frame):
    os.write(1, b"rank %d caught %d\\n" % (rank, number))
    os._exit(0)
for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
    signal.signal(number, caught)
dist.all_reduce(torch.ones(1))
launcher = os.getppid()
os.write(1, b"rank %d is ready\\n" % rank)
while os.getppid() == launcher:
    signal.sigtimedwait([], 0.1)
"""
FRAMEWORKS = pathlib.Path(os.environ.get("RANKSCOPE_FRAMEWORKS", pathlib.Path(RANKSCOPE).resolve().parents[1] / "frameworks"))


def python_with_torch():
    """Debian's, or that of `./bootstrap.sh frameworks`."""
    for python in ("/usr/bin/python3", str(FRAMEWORKS / "bin/python")):
        if shutil.which(python) and subprocess.run([python, "-c", "import torch.distributed.run"], capture_output=True).returncode == 0:
            return python
    return None


# The torchrun of Debian's torch needs the output to be redirected file by file (-r 1 -t 1) under Python 3.11.
PYTHON = python_with_torch()


def torchrun(*command):
    """torchrun over two ranks. On a port of its own: --standalone takes one fixed port in this torch, and another job may be there."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return [PYTHON, "-m", "torch.distributed.run", "--master_addr", "127.0.0.1", "--master_port", str(port), "-r", "1", "-t", "1",
            "--nproc_per_node", "2", *command]


def results(stream):
    """The numbers of the ranks; torchrun puts a rank's tag in front of each line."""
    return sorted(line[line.index(b"rank "):] for line in stream.splitlines() if b"rank " in line)


class Torchrun(JobTest):
    def setUp(self):
        super().setUp()
        self.environment["OMP_NUM_THREADS"] = "1"
        (self.folder / "train.py").write_text(TRAIN)

    def test_ddp_gives_the_same_numbers_wrapped_inside_and_outside(self):
        plain = self.run_plain(*torchrun("train.py"))
        self.assertEqual(plain.returncode, 0, plain.stderr)
        self.assertEqual(len(results(plain.stdout)), 2)
        inside = self.wrapped("inside", *torchrun("train.py"))
        outside = self.run_plain(*torchrun("--no_python", RANKSCOPE, "-q", "run", "-o", "outside", "--", PYTHON, "train.py"))
        for result in (inside, outside):
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(results(result.stdout), results(plain.stdout))
        self.assertEqual(self.description("outside")["launcher"], "torchrun")
        self.assertEqual(self.description("outside")["world_size"], 2)

    def test_signals_to_the_launcher_do_to_a_wrapped_job_what_they_do_to_a_bare_one(self):
        (self.folder / "wait.py").write_text(WAIT)
        for numbers in ([signal.SIGUSR1], [signal.SIGTERM], [signal.SIGTSTP, signal.SIGCONT, signal.SIGUSR2]):
            ends = []
            for name in ("bare", "wrapped"):
                wrapper = [] if name == "bare" else [RANKSCOPE, "-q", "run", "-o", f"signal{int(numbers[0])}", "--"]
                process = self.start(*wrapper, *torchrun("wait.py"), start_new_session=True)
                ready = [process.stdout.readline(), process.stdout.readline()]
                if not all(b"is ready" in line for line in ready):
                    self.fail((name, ready, process.communicate(timeout=TIMEOUT_S)))
                for number in numbers:
                    process.send_signal(number)
                out, _ = process.communicate(timeout=TIMEOUT_S)
                ends.append((process.returncode, results(out)))
            with self.subTest(signals=numbers):
                self.assertEqual(ends[1], ends[0])
                self.assertNotEqual(ends[0][0], 0)

    def test_failing_ranks_fail_the_job_alike(self):
        (self.folder / "fail.py").write_text("raise SystemExit(3)")
        plain = self.run_plain(*torchrun("fail.py"))
        inside = self.wrapped("inside", *torchrun("fail.py"))
        outside = self.run_plain(*torchrun("--no_python", RANKSCOPE, "-q", "run", "-o", "outside", "--", PYTHON, "fail.py"))
        self.assertNotEqual(plain.returncode, 0)
        self.assertEqual(inside.returncode, plain.returncode)
        self.assertEqual(outside.returncode, plain.returncode)
        self.assertEqual(self.description("outside")["exit_status"], 3)


if __name__ == "__main__":
    if not PYTHON:
        print("skipped: there is no torch (package python3-torch, or ./bootstrap.sh frameworks)")
        sys.exit(77)
    unittest.main()
