#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real DDP job under torchrun, wrapped from outside and rank by rank: a CPU job, so that it runs everywhere PyTorch does."""

import shutil
import socket
import subprocess
import sys
import unittest

from wrapped import RANKSCOPE, JobTest

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
# The interpreter of Debian's torch; its torchrun needs the output to be redirected file by file (-r 1 -t 1) under Python 3.11.
PYTHON = "/usr/bin/python3"


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
    if not shutil.which(PYTHON) or subprocess.run([PYTHON, "-c", "import torch.distributed.run"], capture_output=True).returncode != 0:
        print(f"skipped: {PYTHON} has no torch (package python3-torch)")
        sys.exit(77)
    unittest.main()
