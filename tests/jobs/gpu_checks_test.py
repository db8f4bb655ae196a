#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks for machines with a GPU, checked: on the virtual GPUs where that is enough, and on made-up logs and traces where NCCL or PyTorch would speak."""

import collections
import contextlib
import json
import os
import pathlib
import sqlite3
import sys
import tarfile
import unittest

from wrapped import RANKSCOPE, JobTest

SOURCE = pathlib.Path(os.environ.get("RANKSCOPE_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(SOURCE / "reference" / "gpu_checks"))
import kineto_match  # noqa: E402
import nccl_log  # noqa: E402
import overhead  # noqa: E402
import trace_checks  # noqa: E402


class OnVirtualGpus(JobTest):
    def test_every_check_of_the_workloads_holds_and_leaves_a_recording(self):
        build = pathlib.Path(RANKSCOPE).resolve().parents[1]
        result = self.run_plain(sys.executable, SOURCE / "reference" / "gpu_checks", "--build", build, "--out", self.folder, "--virtual", "--only", "workloads")
        table = (self.folder / "checks.md").read_text()
        self.assertEqual(result.returncode, 0, table)
        self.assertGreater(table.count("| ok |"), 50)
        for name in ("gpu-ddp", "gpu-ddp-slow", "gpu-fsdp", "gpu-pp"):
            expect = json.loads((self.folder / "golden" / name / "expect.json").read_text())
            self.assertGreater(expect["rows"]["kernel"], 500)
            with tarfile.open(self.folder / "golden" / name / "run.tar.xz") as archive:
                self.assertEqual(sum(member.endswith(".cap") for member in archive.getnames()), expect["world_size"])
        self.assertIn("('RS301', [1])", next(line for line in table.splitlines() if "| ddp-slow | findings |" in line))

        # A recording with a hole in it does not pass.
        trace = self.folder / "runs" / "ddp" / "trace.db"
        with contextlib.closing(sqlite3.connect(trace)) as db:
            db.execute("DELETE FROM api_call WHERE rank = 1")
            db.execute("UPDATE rank SET state = 'died' WHERE rank = 0")
            db.execute("UPDATE collective_member SET kernel_id = NULL WHERE rank = 1")
            db.commit()
        holds = {name: good for name, good, _ in trace_checks.check(trace, ("ranks", "launches", "joined", "kernels"))}
        self.assertEqual(holds, {"ranks": False, "launches": False, "joined": False, "kernels": True})

    def test_a_recording_that_is_not_there_fails_its_checks(self):
        for _, holds, seen in trace_checks.check(self.folder / "none.db", ("ranks", "loss")):
            self.assertFalse(holds)
            self.assertIn("none.db", seen)


class NcclLog(unittest.TestCase):
    LOG = ("host:7:9 [0] NCCL INFO AllReduce: 4194304 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}\n"
           "host:7:9 [0] NCCL INFO AllReduce: 4194304 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}\n"
           "host:7:9 [0] NCCL INFO AllGather: 512 Bytes -> Algo PAT proto LL128 channel{Lo..Hi}={0..0}\n")

    def test_reads_what_nccl_says(self):
        self.assertEqual(nccl_log.logged([self.LOG]), {("all_reduce", 4194304, "ring", "simple", 2): 2, ("all_gather", 512, "pat", "ll128", 1): 1})

    def test_another_algorithm_or_one_call_less_is_a_difference(self):
        said = nccl_log.logged([self.LOG])
        self.assertTrue(nccl_log.compare(said, said)[0])
        tree = collections.Counter({("all_reduce", 4194304, "tree", "simple", 2): 2, ("all_gather", 512, "pat", "ll128", 1): 1})
        self.assertFalse(nccl_log.compare(said, tree)[0])
        self.assertFalse(nccl_log.compare(said, said - collections.Counter({("all_reduce", 4194304, "ring", "simple", 2): 1}))[0])
        self.assertFalse(nccl_log.compare(collections.Counter(), collections.Counter())[0], "nothing compared is no agreement")


class Kineto(JobTest):
    def test_reads_kernels_in_order_with_plain_names(self):
        path = self.folder / "rank0.json"
        path.write_text(json.dumps({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "_Z4gemmi", "ts": 20.0, "dur": 2.5},
                                                    {"ph": "X", "cat": "kernel", "name": "gemm(int)", "ts": 10.0, "dur": 1.5},
                                                    {"ph": "X", "cat": "gpu_memcpy", "name": "copy", "ts": 1.0, "dur": 9.0}]}))
        self.assertEqual(kineto_match.of_kineto(path), {"gemm(int)": [1500, 2500]})

    def test_counts_and_durations_are_judged_apart(self):
        ours = {"a": [100_000] * 9, "b": [50_000]}
        self.assertEqual(kineto_match.compare(ours, {"a": [101_000] * 9, "b": [50_000]})[:2], (True, True))
        self.assertEqual(kineto_match.compare(ours, {"a": [103_000] * 9, "b": [50_000]})[:2], (True, False))
        self.assertEqual(kineto_match.compare(ours, {"a": [100_000] * 8, "b": [50_000]})[:2], (False, True))
        self.assertEqual(kineto_match.compare({"a": [1]}, {"b": [1]})[:2], (False, False))


class Overhead(unittest.TestCase):
    def test_mean_and_bound_of_paired_rounds(self):
        mean, upper = overhead.overhead([100.0, 101.0, 99.0], [101.0, 102.01, 99.99])  # 1 % in every round
        self.assertAlmostEqual(mean, 0.01)
        self.assertAlmostEqual(upper, 0.01)
        mean, upper = overhead.overhead([100.0, 100.0], [100.0, 102.0])
        self.assertAlmostEqual(mean, 0.00995, 4)
        self.assertGreater(upper, 0.05, "two rounds that disagree say little")

    def test_a_drift_falls_on_all_alike(self):
        self.assertEqual(list(overhead.order(["a", "b", "c"], 2)), ["a", "b", "c", "c", "b", "a"])

    def test_the_first_turns_and_the_first_steps_of_a_turn_do_not_count(self):
        warm_up = [1000.0] * overhead.TURN * overhead.WARM_UP
        turn = [500.0] * overhead.SETTLE + [3.0] * (overhead.TURN - overhead.SETTLE)
        self.assertEqual(overhead.typical_steps(warm_up + turn + turn), [3.0, 3.0])

    def test_the_bound_of_many_rounds_is_never_too_tight(self):
        self.assertEqual([overhead.quantile(freedom) for freedom in (1, 9, 12, 29, 500)], [6.314, 1.833, 1.812, 1.725, 1.697])


class InTurns(JobTest):
    JOB = """
import json, pathlib, sys
sys.path.insert(0, sys.argv[1])
from turns import Turns
turns, log, name, steps = Turns.of(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4], int(sys.argv[5])
for step in range(steps):
    turns.before(step)
    with log.open("a") as file:
        file.write(name)
    turns.after(step)
pathlib.Path(sys.argv[6]).write_text(json.dumps([float(step) for step in range(steps)]))
"""

    def job(self, name, steps):
        def run(turns, times):
            result = self.run_plain(sys.executable, "-c", self.JOB, SOURCE / "reference" / "pytorch", turns, self.folder / "log", name, steps, times)
            self.assertEqual(result.returncode, 0, result.stderr)
        return run

    def test_one_job_at_a_time_takes_its_steps(self):
        steps = (overhead.WARM_UP + 3) * overhead.TURN
        times = overhead.in_turns(self.folder, {name: self.job(name, steps) for name in "abc"}, 3)
        round_trip = "".join(name * overhead.TURN for name in "abccba")
        self.assertEqual((self.folder / "log").read_text(), round_trip * ((overhead.WARM_UP + 3) // 2))
        self.assertEqual(times, {name: [float(step) for step in range(steps)] for name in "abc"})

    def test_a_job_that_ends_too_early_is_told_and_the_others_end(self):
        steps = (overhead.WARM_UP + 3) * overhead.TURN
        with self.assertRaisesRegex(RuntimeError, "b: the job ended before its last turn"):
            overhead.in_turns(self.folder, {"a": self.job("a", steps), "b": self.job("b", overhead.TURN)}, 3)


if __name__ == "__main__":
    unittest.main()
