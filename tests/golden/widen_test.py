#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures of a job that is larger than this machine can play: its replicas are copied (widen/widen_run.cpp), and collect makes of them what it
makes of the larger job's own."""

import hashlib
import os
import sqlite3
import unittest

from virtual_run import RANKSCOPE, VirtualRunTest

WIDEN = os.environ["RANKSCOPE_WIDEN"]


def job(replicas):
    """Tensor-parallel pairs in two stages; a node holds two replicas of a stage."""
    return {"name": f"replicas-{replicas}", "kind": "3d", "steps": 3, "seed": 5, "noise": 0.02,
            "cluster": {"nodes": replicas, "ranks_per_node": 4}, "model": {"layers": 4, "hidden": 2048, "seq": 1024, "micro_batch": 1},
            "parallel": {"dp": replicas, "tp": 2, "pp": 2, "micro_batches": 4}, "faults": [{"kind": "straggler", "rank": 1, "factor": 1.5}]}


class Widen(VirtualRunTest):
    def rows(self, name, sql):
        with sqlite3.connect(f"file:{self.folder / name / 'trace.db'}?mode=ro", uri=True) as trace:
            return trace.execute(sql).fetchall()

    def counts(self, name):
        tables = [row[0] for row in self.rows(name, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")]
        # Readings of the machine that played the job are none of the job's, and a group of another size may take another kernel of NCCL's.
        ignored = ("device_health", "port_counter", "extent", "meta", "string", "symbol")
        return {table: self.rows(name, f"SELECT count(*) FROM {table}")[0][0] for table in tables if table not in ignored}

    def captures(self, name):
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (self.folder / name / "capture").glob("*.cap")}

    def test_copied_replicas_make_the_trace_of_the_larger_job(self):
        for replicas in (4, 8):
            self.run_scenario(self.write_scenario(job(replicas)), f"played{replicas}")
        self.check_run(WIDEN, "played4", "copied8", 8, 2, 3)
        self.check_run(RANKSCOPE, "-q", "collect", "copied8")
        self.assertEqual(self.counts("copied8"), self.counts("played8"))
        of_ranks = "SELECT rank, host_id FROM rank ORDER BY rank"
        self.assertEqual(self.rows("copied8", of_ranks), self.rows("played8", of_ranks))
        of_groups = "SELECT group_concat(rank) FROM (SELECT * FROM communicator_member ORDER BY communicator_id, comm_rank) GROUP BY communicator_id"
        self.assertEqual(sorted(self.rows("copied8", of_groups)), sorted(self.rows("played8", of_groups)))
        of_losses = "SELECT kind, severity, message FROM loss"
        self.assertEqual(self.rows("copied8", of_losses), self.rows("played8", of_losses))
        found = [(finding["id"], finding["ranks"]) for finding in self.report("copied8")["findings"] if finding["id"] == "RS301"]
        self.assertEqual(found, [("RS301", [1])])

    def test_a_job_of_as_many_replicas_is_itself(self):
        self.run_scenario(self.write_scenario(job(4)), "played4")
        self.check_run(WIDEN, "played4", "same", 4, 2, 3)
        self.assertEqual(self.captures("same"), self.captures("played4"))

    def test_replicas_that_would_leave_a_node_half_empty_are_refused(self):
        self.run_scenario(self.write_scenario(job(4)), "played4")
        refused = self.run_any(WIDEN, "played4", "odd", 5, 2, 3)
        self.assertEqual(refused.returncode, 3)
        self.assertIn("must fill nodes of 4 ranks", refused.stderr.decode())
        self.assertFalse((self.folder / "odd").exists())


if __name__ == "__main__":
    unittest.main()
