#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rankscope stats --tables hta` against what HolisticTraceAnalysis itself makes of recordings of real jobs (../shared/data/hta_oracle.json): within 0.1 % or 1 us."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

RANKSCOPE = os.environ.get("RANKSCOPE_BINARY", "rankscope")
DATA = pathlib.Path(os.environ.get("RANKSCOPE_SHARED_DATA", pathlib.Path(__file__).resolve().parents[3] / "shared/data"))
ORACLE = DATA / "hta_oracle.json"
FILES = {
    "dlrm8": ["dlrm_8rank/*.gz"],
    "vit_sampled2": ["hta/timeline_analysis/sampled_rank-0.json.gz", "hta/trace_filter/sampled_rank-1.json.gz"],
    "trace_diff_control": ["hta/trace_diff/control/*.gz"],
    "negative_queue": ["hta/negative_queue_length_values_check/*.gz"],
    "nccl_data_ns": ["hta/nccl_parser_config/*.gz"],
}
# HTA joins kernels whose launch is not in the trace to an unrelated row.
JOINED_WRONGLY = {("dlrm8", 1, "7"), ("dlrm8", 3, "7")}


class HtaTables(unittest.TestCase):
    def tables(self, name):
        with tempfile.TemporaryDirectory() as folder:
            files = [file for pattern in FILES[name] for file in sorted((DATA / "kineto").glob(pattern))]
            run = pathlib.Path(folder) / "run"
            self.rankscope("import", *files, "-o", run)
            return json.loads(self.rankscope("stats", run, "--tables", "hta", "--format", "json"))["tables"]

    def rankscope(self, *arguments):
        done = subprocess.run([RANKSCOPE, "-q", *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def close(self, ours, theirs, what):
        self.assertLessEqual(abs(ours - theirs), max(1, 0.001 * abs(theirs)), (what, ours, theirs))

    def row(self, rows, **key):
        found = [row for row in rows if all(str(row[name]) == str(value) for name, value in key.items())]
        self.assertEqual(len(found), 1, key)
        return found[0]

    def test_every_set(self):
        sets = json.loads(ORACLE.read_text())["sets"]
        self.assertEqual(set(sets), set(FILES))
        for name, theirs in sets.items():
            with self.subTest(recording=name):
                ours = self.tables(name)
                self.assertEqual(len(ours["temporal_breakdown"]), len(theirs["temporal"]))
                for row in theirs["temporal"]:
                    own = self.row(ours["temporal_breakdown"], rank=row["rank"])
                    for part in ("idle_time", "compute_time", "non_compute_time", "kernel_time"):
                        self.close(own[f"{part}_us"], row[f"{part}(us)"], (row["rank"], part))
                    self.assertAlmostEqual(own["idle_time_pctg"], row["idle_time_pctg"], delta=0.02)
                for row in theirs["overlap"]:
                    self.assertAlmostEqual(self.row(ours["communication_overlap"], rank=row["rank"])["comp_comm_overlap_pctg"], row["comp_comm_overlap_pctg"], delta=0.02)
                for row in theirs["idle"]:
                    if (name, row["rank"], str(row["stream"])) in JOINED_WRONGLY:
                        continue
                    own = self.row(ours["idle_breakdown"], rank=row["rank"], stream=row["stream"])
                    self.close(own[f"{row['idle_category']}_us"], row["idle_time"], row)
                for row in theirs["kernel_top"]:
                    if row["name"] == "others":
                        continue
                    own = self.row(ours["kernel_breakdown"], rank=row["rank"], name=row["name"])
                    self.assertEqual(own["type"], row["kernel_type"])
                    self.close(own["sum_us"], row["sum (us)"], row["name"])
                    self.assertAlmostEqual(own["mean_us"] * own["count"], own["sum_us"], delta=1e-6 * max(1, own["sum_us"]))


if __name__ == "__main__":
    if not ORACLE.exists():
        print(f"skipped: the recordings are not here ({DATA})")
        sys.exit(77)
    unittest.main()
