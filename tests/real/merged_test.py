#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Eight ranks of a real job, merged into one file as scripts merge them, are the same job as eight files."""

import gzip
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import unittest

RANKSCOPE = os.environ.get("RANKSCOPE_BINARY", "rankscope")
DATA = pathlib.Path(os.environ.get("RANKSCOPE_SHARED_DATA", pathlib.Path(__file__).resolve().parents[3] / "shared/data")) / "kineto/dlrm_8rank"


def load(file):
    with (gzip.open if file.suffix == ".gz" else open)(file, "rt") as text:
        return json.load(text)


def labelled(rank, event):
    """As SGLang's ProfileMerger."""
    event["pid"] = f"[TP{rank:02}] {event.get('pid', 0)}"


def named(rank, event):
    """Numbers of processes moved apart, names with the rank in front."""
    if isinstance(event.get("pid"), int):
        event["pid"] += rank * 1_000_000
    if event.get("name") == "process_name":
        event["args"]["name"] = f"[R{rank}] {event['args']['name']}"


class Merged(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def imported(self, *files):
        run = pathlib.Path(self.folder.name) / f"run{len(list(pathlib.Path(self.folder.name).iterdir()))}"
        subprocess.run([RANKSCOPE, "import", "-o", run, *files], check=True, capture_output=True)
        report = json.loads(subprocess.run([RANKSCOPE, "analyze", run, "--format", "json"], check=True, capture_output=True).stdout)
        return sqlite3.connect(run / "trace.db"), report

    def test_merged_files_are_the_same_job(self):
        files = sorted(file for file in DATA.iterdir() if file.is_file())
        traces = [load(file) for file in files]
        whole, wholeReport = self.imported(*files)
        ranks = [rank for (rank,) in whole.execute("SELECT rank FROM rank ORDER BY rank")]
        for merge in (labelled, named):
            merged = {key: value for key, value in traces[0].items() if key != "traceEvents"} if isinstance(traces[0], dict) else {}
            merged["traceEvents"] = []
            for rank, trace in zip(ranks, traces):
                for event in trace["traceEvents"] if isinstance(trace, dict) else trace:
                    event = json.loads(json.dumps(event))
                    merge(rank, event)
                    merged["traceEvents"].append(event)
            file = pathlib.Path(self.folder.name) / f"{merge.__name__}.json"
            file.write_text(json.dumps(merged))
            one, report = self.imported(file)
            for query in ("SELECT rank, COUNT(*), SUM(dur_ns), MIN(start_ns) FROM kernel GROUP BY rank", "SELECT rank, COUNT(*), SUM(dur_ns) FROM api_call GROUP BY rank",
                          "SELECT seq, op, members, first_arrival_ns, last_arrival_ns, last_rank, transfer_ns FROM collective ORDER BY id", "SELECT rank, step, start_ns, dur_ns FROM step"):
                self.assertEqual(one.execute(query).fetchall(), whole.execute(query).fetchall(), (merge.__name__, query))
            self.assertEqual([(f["id"], f["cause"]) for f in report["findings"]], [(f["id"], f["cause"]) for f in wholeReport["findings"]])


if __name__ == "__main__":
    if not DATA.is_dir():
        print(f"skipped: the recordings are not here ({DATA})")
        sys.exit(77)
    unittest.main()
