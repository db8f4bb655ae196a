#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job of which some replicas are replayed (replicas/analyze_some.cpp) is told the same as one of which all are."""

import json
import os
import sqlite3
import unittest

from virtual_run import VirtualRunTest

ANALYZE_SOME = os.environ["RANKSCOPE_REPLICAS"]
MOST_OFF = 0.005  # of the step


def job(faults, noise):
    """Eight replicas of tensor-parallel pairs in two stages; a node holds one."""
    return {"name": "replicas", "kind": "3d", "steps": 4, "seed": 5, "noise": noise,
            "cluster": {"nodes": 8, "ranks_per_node": 4}, "model": {"layers": 4, "hidden": 2048, "seq": 1024, "micro_batch": 1},
            "parallel": {"dp": 8, "tp": 2, "pp": 2, "micro_batches": 4}, "faults": faults}


def uneven_job():
    """Twelve data-parallel ranks with uneven work."""
    return {"name": "uneven", "kind": "ddp", "steps": 6, "seed": 5, "cluster": {"nodes": 3, "ranks_per_node": 4},
            "model": {"layers": 4, "hidden": 2048, "seq": 1024, "micro_batch": 8}, "parallel": {"dp": 12},
            "faults": [{"kind": "uneven_work", "factor": 1.3}]}


class Replicas(VirtualRunTest):
    def both(self, faults, noise=0.02):
        """The reports of the whole job, and of its fewest replicas: six."""
        self.run_scenario(self.write_scenario(job(faults, noise)), "run")
        whole = self.report("run")
        with sqlite3.connect(f"file:{self.folder}/run/trace.db?mode=ro", uri=True) as trace:
            pieces = sum(trace.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("kernel", "memcpy", "memset"))
        some = json.loads(self.check_run(ANALYZE_SOME, "run", 2 * pieces).stdout)
        note = [note for note in some["replay"]["notes"] if note.startswith("the ranks are 8 replicas that run the same program, and 6 stand for all")]
        self.assertEqual(len(note), 1, some["replay"]["notes"])
        self.assertEqual([note for note in whole["replay"]["notes"] if "replicas" in note], [])
        return whole, some

    def check_alike(self, whole, some):
        def of(report):
            return {(finding["id"], tuple(finding["ranks"])): finding["saving_ns_per_step"] for finding in report["findings"]}

        self.assertEqual(of(some).keys(), of(whole).keys())
        for key, saving in of(whole).items():
            self.assertIsNotNone(saving, key)
            self.assertLessEqual(abs(of(some)[key] - saving), MOST_OFF * whole["step_time"]["ns"], key)

    def test_what_is_found_and_what_it_saves_is_that_of_all_replicas(self):
        whole, some = self.both([{"kind": "straggler", "rank": 22, "factor": 1.5}])
        self.assertIn(("RS301", [22]), [(finding["id"], finding["ranks"]) for finding in whole["findings"]])
        self.check_alike(whole, some)

    def test_a_slow_link_of_a_rank_that_nobody_waits_for_is_priced(self):
        whole, some = self.both([{"kind": "slow_link", "rank": 20, "factor": 0.1}])
        self.assertTrue(whole["findings"])
        self.check_alike(whole, some)

    def test_ranks_that_pause_by_chance_are_told_alike(self):
        self.check_alike(*self.both([], noise=0.2))

    def test_work_is_shared_with_ranks_that_are_not_replayed(self):
        self.run_scenario(self.write_scenario(uneven_job()), "uneven")
        whole = self.report("uneven")
        self.assertIn("RS304", [finding["id"] for finding in whole["findings"]])
        some = json.loads(self.check_run(ANALYZE_SOME, "uneven").stdout)
        self.assertTrue(any(note.startswith("the ranks are 12 replicas that run the same program, and 6 stand for all")
                            for note in some["replay"]["notes"]), some["replay"]["notes"])
        self.check_alike(whole, some)

    def test_for_less_than_half_nobody_is_left_out(self):
        self.run_scenario(self.write_scenario(job([], 0.02)), "run")
        some = json.loads(self.check_run(ANALYZE_SOME, "run").stdout)  # eight replicas, of which six would be kept
        self.assertEqual([note for note in some["replay"]["notes"] if "replicas" in note], [])

    def test_a_clean_job_stays_clean(self):
        whole, some = self.both([])
        self.check_alike(whole, some)


if __name__ == "__main__":
    unittest.main()
