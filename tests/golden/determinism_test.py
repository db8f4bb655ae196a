#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two runs of one scenario and seed give the same trace, however loaded the machine is."""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import unittest

from dump_trace import dump
from virtual_run import RANKSCOPE, SMALL, VirtualRunTest


PIPELINES = {"name": "pipelines", "kind": "3d", "steps": 10, "seed": 11, "noise": 0.02, "cluster": {"nodes": 4, "ranks_per_node": 4},
             "model": {"layers": 8, "hidden": 4096, "seq": 1024, "micro_batch": 1}, "parallel": {"dp": 2, "tp": 2, "pp": 4, "micro_batches": 8},
             "faults": [{"kind": "straggler", "rank": 5, "factor": 1.4}, {"kind": "slow_nic", "node": 3, "factor": 0.1}]}


class Determinism(VirtualRunTest):
    def assert_same_trace(self, first, second):
        # Devices and ports are read once a second of real time, beside the job.
        left, right = ([row for row in dump(self.folder / run / "trace.db") if "device_health" not in row and "port_counter" not in row] for run in (first, second))
        self.assertGreater(len(left), 100)
        different = [f"{a}\n{b}" for a, b in zip(left, right) if a != b]
        self.assertEqual((len(left), different[:5]), (len(right), []))

    def test_a_loaded_machine_changes_nothing(self):
        scenario = self.write_scenario(SMALL)
        self.run_scenario(scenario, "idle")
        load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3 * (os.cpu_count() or 1))]
        try:
            self.run_scenario(scenario, "loaded")
        finally:
            for process in load:
                process.kill()
                process.wait()
        self.assert_same_trace("idle", "loaded")

    def test_collecting_again_changes_nothing(self):
        self.run_scenario(self.write_scenario(SMALL), "a")
        before = dump(self.folder / "a" / "trace.db")
        self.check_run(RANKSCOPE, "-q", "collect", "a")
        self.assertEqual(dump(self.folder / "a" / "trace.db"), before)

    def test_threads_change_no_answer(self):
        self.run_scenario(self.write_scenario(PIPELINES), "job")
        with contextlib.closing(sqlite3.connect(self.folder / "job/trace.db")) as trace:
            self.assertGreater(trace.execute("SELECT count(*) FROM collective").fetchone()[0], 4000, "too few for several threads to read them")
        for words in (["analyze", "job", "--format", "json"], ["analyze", "job", "--format", "html"], ["recommend", "job", "--format", "json"]):
            answers = [self.check_run(RANKSCOPE, "-q", *words, "--workers", workers).stdout for workers in (1, 2, 5)]
            with self.subTest(words):
                self.assertTrue(answers[0] == answers[1] == answers[2])
        findings = json.loads(self.check_run(RANKSCOPE, "-q", "analyze", "job", "--format", "json").stdout)["findings"]
        self.assertGreater(sum(1 for finding in findings if finding["verdict"] == "found"), 1, "plays that may be made beside each other")

    def test_another_seed_is_another_trace(self):
        self.run_scenario(self.write_scenario(SMALL), "a")
        self.run_scenario(self.write_scenario(dict(SMALL, name="other", seed=4)), "b")
        self.assertNotEqual(dump(self.folder / "a" / "trace.db"), dump(self.folder / "b" / "trace.db"))


if __name__ == "__main__":
    unittest.main()
