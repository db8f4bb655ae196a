#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parts of a run, as --capture-range, --delay and --duration ask for them: what is inside is recorded and analysed, what is outside is not."""

import sqlite3
import unittest

from virtual_run import RANKSCOPE, SMALL, WORKLOAD, VirtualRunTest

RANKS = 4
STEPS = 8
JOB = dict(SMALL, name="ranges", steps=STEPS, cluster={"nodes": 1, "ranks_per_node": RANKS}, noise=0, faults=[])
STARTER = """
import os, subprocess, sys
ranks = [subprocess.Popen(sys.argv[2:], env=dict(os.environ, RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE=sys.argv[1])) for r in range(int(sys.argv[1]))]
sys.exit(max(rank.wait() for rank in ranks))
"""


class Trace:
    def __init__(self, path):
        self.connection = sqlite3.connect(path)

    def rows(self, sql):
        return self.connection.execute(sql).fetchall()

    def count(self, table):
        return self.rows(f"SELECT count(*) FROM {table}")[0][0]

    def step_ranges(self, rank):
        """(number, start, end) of the ranges ProfilerStep#N of a rank; end None when it was not recorded."""
        rows = self.rows(f"SELECT s.text, n.start_ns, n.start_ns + n.dur_ns FROM nvtx n JOIN string s ON s.id = n.name_id "
                         f"WHERE n.rank = {rank} AND s.text LIKE 'ProfilerStep#%' ORDER BY n.start_ns")
        return [(int(text.split("#")[1]), start, end) for text, start, end in rows]

    def names(self, rank):
        return {text for text, in self.rows(f"SELECT DISTINCT s.text FROM nvtx n JOIN string s ON s.id = n.name_id WHERE n.rank = {rank}")}


class CaptureRange(VirtualRunTest):
    def record(self, *options):
        scenario = self.write_scenario(JOB)
        name = "run" + str(len(list(self.folder.iterdir())))
        self.said = self.check_run(RANKSCOPE, "run", "--virtual", "-o", name, *options, "--", "python3", "-c", STARTER, RANKS, WORKLOAD, scenario,
                                   environment={"RANKSCOPE_SCENARIO": str(scenario)}).stderr
        self.assertEqual(self.report(name)["schema"], "rankscope.report/1")
        return Trace(self.folder / name / "trace.db")

    def assertCallsInside(self, trace, rank, begin, end):
        for table in ("nccl_call", "api_call", "nvtx"):
            first, last = trace.rows(f"SELECT min(start_ns), max(start_ns) FROM {table} WHERE rank = {rank}")[0]
            self.assertIsNotNone(first, table)
            self.assertGreaterEqual(first, begin, table)
            self.assertLessEqual(last, end, table)

    def test_steps_are_recorded_from_the_first_to_the_last_asked_for(self):
        whole = self.record()
        part = self.record("--capture-range", "steps:2-4")
        for rank in range(RANKS):
            self.assertEqual([number for number, _, _ in whole.step_ranges(rank)], list(range(STEPS)))
            ranges = part.step_ranges(rank)
            self.assertEqual([number for number, _, _ in ranges], [2, 3, 4])
            self.assertCallsInside(part, rank, ranges[0][1], ranges[-1][2])
        for table in ("kernel", "nccl_call"):
            per_step = whole.count(table) / STEPS
            self.assertGreater(part.count(table), 2 * per_step, table)
            self.assertLess(part.count(table), 4 * per_step, table)
        self.assertEqual(part.rows("SELECT count(DISTINCT step) FROM step")[0][0], 3)

    def test_only_what_runs_inside_the_named_range_is_recorded(self):
        whole = self.record()
        part = self.record("--capture-range", "nvtx:backward")
        for rank in range(RANKS):
            self.assertIn("forward", whole.names(rank))
            self.assertIn("backward", part.names(rank))
            self.assertNotIn("forward", part.names(rank))
            self.assertEqual(part.step_ranges(rank), [])
        self.assertGreater(part.count("nccl_call"), 0)
        # The reductions of ddp are called in backward, all of them.
        self.assertEqual(part.count("nccl_call"), whole.count("nccl_call"))
        self.assertLess(part.count("kernel"), whole.count("kernel"))

    def test_a_range_that_never_comes_records_nothing_and_says_so(self):
        trace = self.record("--capture-range", "cudaProfilerApi")
        for table in ("kernel", "api_call", "nccl_call", "nvtx"):
            self.assertEqual(trace.count(table), 0, table)
        self.assertIn(b"no process of the job came to the capture range cudaProfilerApi", self.said)

    def test_delay_and_duration_cut_a_window_out_of_the_run(self):
        whole = self.record()
        ranges = whole.step_ranges(0)
        length = ranges[-1][2] - ranges[0][1]
        part = self.record("--delay", f"{length * 0.3 / 1e9:.9f}", "--duration", f"{length * 0.4 / 1e9:.9f}")
        for table in ("kernel", "api_call", "nvtx"):
            self.assertGreater(part.count(table), 0.2 * whole.count(table), table)
            self.assertLess(part.count(table), 0.6 * whole.count(table), table)
        for rank in range(RANKS):
            first, last = part.rows(f"SELECT min(start_ns), max(start_ns) FROM api_call WHERE rank = {rank}")[0]
            self.assertLess(last - first, 0.5 * length)


if __name__ == "__main__":
    unittest.main()
