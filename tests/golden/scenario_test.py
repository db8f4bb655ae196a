#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A scenario, run and analyzed: what it expects is found, on the ranks it names, and nothing else; and the numbers of the report add up.

Usage: scenario_test.py SCENARIO.json"""

import json
import pathlib
import sqlite3
import sys
import unittest

from virtual_run import VirtualRunTest

SCENARIO = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None


class Scenario(VirtualRunTest):
    def test_expected_findings_and_exact_sums(self):
        scenario = json.loads(SCENARIO.read_text())
        run = self.run_scenario(SCENARIO, "run")
        report = self.report("run")
        self.check_findings(scenario, report)
        self.check_attribution(report)
        self.check_stored_attribution(run / "trace.db", report)

    def check_findings(self, scenario, report):
        found = [(finding["id"], finding["ranks"]) for finding in report["findings"] if finding["verdict"] == "found"]
        expected = scenario.get("expect", [])
        for expectation in expected:
            hits = [ranks for name, ranks in found if name == expectation["id"]]
            self.assertTrue(hits, f"{expectation['id']} was not found; found: {found}")
            if "ranks" in expectation:
                self.assertIn(sorted(expectation["ranks"]), [sorted(ranks) for ranks in hits])
        allowed = {entry["id"] if isinstance(entry, dict) else entry for entry in expected + scenario.get("allow", [])}
        self.assertEqual([finding for finding in found if finding[0] not in allowed], [], "false alarms")

    def check_attribution(self, report):
        self.assertEqual(len(report["breakdown"]), report["run"]["world_size"])
        for row in report["breakdown"]:
            self.assertEqual(row["compute_ns"] + row["exposed_comm_ns"] + row["memory_ns"] + row["idle_ns"], row["step_ns"], row)
            self.assertEqual(row["exposed_wait_ns"] + row["exposed_transfer_ns"], row["exposed_comm_ns"], row)
            self.assertGreater(row["compute_ns"], 0)

    def check_stored_attribution(self, database, report):
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        rows = connection.execute("SELECT a.rank, a.step, a.step_ns - s.dur_ns, a.step_ns - (a.compute_ns + a.exposed_comm_ns + a.memory_ns + a.idle_ns) "
                                  "FROM attribution a JOIN step s USING (rank, step)").fetchall()
        connection.close()
        self.assertGreaterEqual(len(rows), report["run"]["world_size"] * report["run"]["steps"])
        self.assertEqual([row for row in rows if row[2] != 0 or row[3] != 0], [])


if __name__ == "__main__":
    if SCENARIO is None:
        sys.exit(__doc__)
    unittest.main()
