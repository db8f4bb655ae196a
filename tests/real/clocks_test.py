#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings of real jobs as they would be if the hosts' clocks differed: whatever the distance, and whether file names tell hosts or nothing does, the report says of layout,
late ranks and findings what it says of the recording as it is."""

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
DATA = pathlib.Path(os.environ.get("RANKSCOPE_SHARED_DATA", pathlib.Path(__file__).resolve().parents[3] / "shared/data")) / "kineto"


class Clocks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def report(self, job, ahead_us, hosts):
        """Of a job whose rank r has a clock that is ahead by ahead_us(r), on the host hosts(r) by its file's name; None: the name tells none."""
        folder = self.folder / "traces"
        folder.mkdir()
        for number, file in enumerate(sorted((DATA / job).glob("*.json.gz"))):
            with gzip.open(file, "rt") as text:
                trace = json.load(text)
            rank = trace.get("distributedInfo", {}).get("rank", number)
            for event in trace["traceEvents"]:
                if event.get("ph") != "M" and "ts" in event:
                    event["ts"] += ahead_us(rank)
            host = hosts(rank)
            name = f"{host}_{4000 + rank}.1694128201545.pt.trace.json" if host else f"rank_{rank}.json"
            (folder / name).write_text(json.dumps(trace))
        self.rankscope("import", folder, "-o", self.folder / "run", "--force")
        report = json.loads(self.rankscope("analyze", self.folder / "run", "--format", "json"))
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        return report

    def rankscope(self, *arguments):
        done = subprocess.run([RANKSCOPE, "-q", *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    @staticmethod
    def said(report):
        """What must not change: the layout, the findings, and who is last of all."""
        return {
            "layout": report["layout"],
            "findings": [(finding["id"], finding["verdict"], finding["ranks"]) for finding in report["findings"]],
            "collectives": sorted((row["op"], row["size_class"], row["group"], row["ranks"], row["last_ranks"][0]["rank"]) for row in report["collectives"]),
        }

    def check(self, job):
        hosts = {"none": lambda rank: None, "two": lambda rank: f"node{rank // 4}"}
        for name, host in hosts.items():
            straight = self.report(job, lambda rank: 0, host)
            for ahead, ranks in [(40, range(4, 8)), (300, range(4, 8)), (3200, range(4, 8)), (2000000, range(4, 8)), (-700, range(4, 8)), (900, range(0, 4))]:
                with self.subTest(job=job, hosts=name, ahead_us=ahead):
                    shifted = self.report(job, lambda rank, ahead=ahead, ranks=ranks: ahead if rank in ranks else 0, host)
                    self.assertEqual(self.said(shifted), self.said(straight))
                    for one, other in zip(shifted["breakdown"], straight["breakdown"]):
                        self.assertAlmostEqual(one["exposed_wait_ns"], other["exposed_wait_ns"], delta=0.01 * other["step_ns"])
                    for one, other in zip(shifted["collectives"], straight["collectives"]):
                        if other["bytes"] >= 1 << 20:
                            self.assertAlmostEqual(one["busbw"], other["busbw"], delta=0.05 * other["busbw"])

    def test_one_name_of_two_machines(self):
        """The clocks tell that there are two; on one machine there is one."""
        for job in ("dlrm_8rank", "megatron_tp8"):
            straight = self.report(job, lambda rank: 0, lambda rank: f"node{rank // 4}")
            hosts = sqlite3.connect(self.folder / "run/trace.db").execute("SELECT COUNT(*) FROM host").fetchone()
            self.assertEqual(hosts, (2,))
            for ahead, expected in ((0, ["node"]), (3200, ["node", "node (2)"])):
                with self.subTest(job=job, ahead_us=ahead):
                    shifted = self.report(job, lambda rank, ahead=ahead: ahead if rank >= 4 else 0, lambda rank: "node")
                    names = [name for (name,) in sqlite3.connect(self.folder / "run/trace.db").execute("SELECT name FROM host ORDER BY id")]
                    self.assertEqual(names, expected)
                    if ahead:
                        self.assertEqual(self.said(shifted), self.said(straight))

    def test_eight_ranks_of_dlrm(self):
        self.check("dlrm_8rank")

    def test_eight_ranks_of_megatron_without_groups(self):
        self.check("megatron_tp8")


if __name__ == "__main__":
    if not DATA.is_dir():
        print(f"skipped: the recordings are not here ({DATA})")
        sys.exit(77)
    unittest.main()
