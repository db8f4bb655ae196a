#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Light mode: recorded without device activity, a straggler, a slow link and jitter are found by calls alone, a healthy job has no finding, and the report says what is not judged."""

import json
import os
import sqlite3
import unittest

from virtual_run import RANKSCOPE, SMALL, WORKLOAD, VirtualRunTest

# Jobs with several layers, so that a step has enough collectives.
JOB = {"kind": "ddp", "steps": 10, "seed": 3, "noise": 0.02, "cluster": {"nodes": 2, "ranks_per_node": 4},
       "model": {"layers": 8, "hidden": 2048, "seq": 1024, "micro_batch": 4}, "parallel": {"dp": 8}}


class Light(VirtualRunTest):
    def light(self, name, *faults):
        scenario = self.write_scenario(dict(JOB, name=name, faults=list(faults)))
        self.check_run(RANKSCOPE, "-q", "reference", "run", scenario, "--light", "-o", name)
        return self.report(name)

    def found(self, report):
        return [(finding["id"], finding["ranks"]) for finding in report["findings"]]

    def test_faults_are_found_and_health_is_not(self):
        self.assertEqual(self.found(self.light("healthy")), [])
        self.assertEqual(self.found(self.light("slow", {"kind": "straggler", "rank": 5, "factor": 1.5})), [("RS301", [5])])
        self.assertEqual(self.found(self.light("node", {"kind": "slow_node", "node": 1, "factor": 1.5})), [("RS302", [4, 5, 6, 7])])
        self.assertEqual([id for id, _ in self.found(self.light("jitter", {"kind": "jitter"}))], ["RS303"])

    def test_arrivals_are_those_of_a_whole_recording(self):
        scenario = self.write_scenario(dict(JOB, name="both", faults=[{"kind": "straggler", "rank": 5, "factor": 1.5}]))
        self.run_scenario(scenario, "whole")
        self.check_run(RANKSCOPE, "-q", "reference", "run", scenario, "--light", "-o", "light")
        whole, light = (self.report(name) for name in ("whole", "light"))
        self.assertEqual([step["dur_ns"] for step in whole["steps"]], [step["dur_ns"] for step in light["steps"]])
        for one, other in zip(whole["collectives"], light["collectives"]):
            self.assertEqual((one["op"], one["bytes"], one["count"]), (other["op"], other["bytes"], other["count"]))
            for key in ("wait_ns", "transfer_ns"):
                self.assertAlmostEqual(one[key], other[key], delta=1e3 + 0.01 * one[key])
        size = {name: sum(file.stat().st_size for file in (self.folder / name / "capture").glob("*.cap")) for name in ("whole", "light")}
        self.assertLess(size["light"], size["whole"])

    def test_the_report_says_what_is_not_judged(self):
        report = self.light("said", {"kind": "straggler", "rank": 5, "factor": 1.5})
        silent = {row["id"]: row["needs"] for row in report["not_judged"]}
        self.assertEqual(silent["RS201"], "no kernels were recorded: light mode")
        self.assertNotIn("RS301", silent)
        self.assertEqual([loss["severity"] for loss in report["loss"] if loss["kind"] == "light"], ["info"])
        text = self.check_run(RANKSCOPE, "analyze", "said").stdout.decode()
        self.assertIn("no kernels were recorded but NCCL's", text)
        self.assertNotIn("Unexplained", text)

    def test_run_takes_it_and_no_list_of_sources_beside(self):
        scenario = self.write_scenario(dict(SMALL, name="one", cluster={"nodes": 1, "ranks_per_node": 1}, parallel={"dp": 1}, faults=[]))
        environment = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
        done = self.check_run(RANKSCOPE, "run", "--virtual", "--light", "-o", "one", "--", WORKLOAD, scenario, environment=environment)
        self.assertNotIn(b"leaves the devices out", done.stderr)
        with sqlite3.connect(self.folder / "one" / "trace.db") as database:
            self.assertEqual(database.execute("SELECT value FROM meta WHERE key = 'light'").fetchall(), [("1",)])
            self.assertEqual(database.execute("SELECT count(*) FROM memcpy").fetchall(), [(0,)])
        self.assertTrue(json.loads((self.folder / "one" / "run.json").read_text())["options"]["light"])
        self.assertEqual(self.run_any(RANKSCOPE, "run", "--light", "--trace", "cuda", "-o", "no", "--", "true").returncode, 2)
        self.assertFalse(os.path.exists(self.folder / "no"))


if __name__ == "__main__":
    unittest.main()
