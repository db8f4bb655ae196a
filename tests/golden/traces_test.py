#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recorded runs of traces/, read anew: every record, the findings that expect.json names and no others, sums to the nanosecond.
Needs neither a GPU nor the harness. What an older version recorded must stay readable."""

import json
import pathlib
import sqlite3
import tarfile
import unittest

from virtual_run import RANKSCOPE, VirtualRunTest

TRACES = pathlib.Path(__file__).resolve().parents[2] / "traces"


class Traces(VirtualRunTest):
    def collected(self, trace):
        run = self.folder / trace.name
        with tarfile.open(trace / "run.tar.xz") as archive:
            for member in archive.getmembers():
                self.assertTrue(member.isfile() and ".." not in member.name and not member.name.startswith("/"), member.name)
            archive.extractall(run)
        self.check_run(RANKSCOPE, "-q", "collect", trace.name)
        return run

    def check(self, trace):
        expected = json.loads((trace / "expect.json").read_text())
        run = self.collected(trace)
        status = expected.get("status", 0)  # 5: the job that was recorded failed
        report = self.report(trace.name, status=status)
        found = sorted((finding["id"], finding["ranks"]) for finding in report["findings"])
        verdicts = {finding["id"]: finding["verdict"] for finding in report["findings"]}
        self.assertEqual([name for name, _ in found], sorted(entry["id"] for entry in expected["expect"]), found)
        for entry in expected["expect"]:
            if "ranks" in entry:
                self.assertIn((entry["id"], entry["ranks"]), found)
            if "verdict" in entry:
                self.assertEqual(verdicts[entry["id"]], entry["verdict"], entry)
        self.assertEqual(sorted({loss["kind"] for loss in report["loss"]}), expected.get("loss", []))
        self.assertEqual((report["run"]["world_size"], report["run"]["steps"]), (expected["world_size"], expected["steps"]))
        for row in report["breakdown"]:
            self.assertEqual(row["compute_ns"] + row["exposed_comm_ns"] + row["memory_ns"] + row["idle_ns"], row["step_ns"], row)
        connection = sqlite3.connect(f"file:{run / 'trace.db'}?mode=ro", uri=True)
        self.addCleanup(connection.close)
        rows = {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in expected["rows"]}
        self.assertEqual(rows, expected["rows"])
        self.check_path(connection, report)

    def check_path(self, connection, report):
        """The critical path that is kept for the timeline is one chain, and as long on each rank as the report says; none is kept of a replay that failed."""
        path = connection.execute("SELECT start_ns, dur_ns, rank FROM critical_path ORDER BY start_ns").fetchall()
        replay = report["replay"]
        told = {} if replay["unavailable"] else {share["rank"]: share["ns"] for share in replay["critical_ranks"]}
        self.assertEqual(bool(path), bool(told))
        for (start, duration, rank), (then, _, then_rank) in zip(path, path[1:]):
            self.assertEqual(start + duration, then)
            self.assertNotEqual(rank, then_rank)
        length = sum(duration for _, duration, _ in path)
        for rank, ns_per_step in told.items():
            on_rank = sum(duration for _, duration, on in path if on == rank)
            self.assertAlmostEqual(on_rank / max(1, length), ns_per_step / sum(told.values()), delta=0.02, msg=f"rank {rank}")

    def test_recorded_runs_give_what_they_must(self):
        traces = sorted(path.parent for path in TRACES.glob("*/expect.json"))
        self.assertGreaterEqual(len(traces), 17)
        for trace in traces:
            with self.subTest(trace=trace.name):
                self.check(trace)

    def test_a_cut_recording_is_told(self):
        run = self.collected(TRACES / "ddp-slow-rank")
        capture = sorted((run / "capture").glob("*.cap"))[2]
        capture.write_bytes(capture.read_bytes()[:-50_000])
        self.check_run(RANKSCOPE, "-q", "collect", run.name)
        losses = self.report(run.name)["loss"]
        self.assertTrue(any(loss["severity"] != "info" for loss in losses), losses)
        told = self.check_run(RANKSCOPE, "-v", "analyze", run.name).stderr.decode()
        self.assertRegex(told, r"read \S+trace.db: \d+ ranks, \d+ events, .*\d+ steps \(.*s\)")
        self.assertRegex(told, r"analysed: \d+ steps without \d+ of warm-up, \d+ findings?, \d+ notes? \(.*s\)")
        self.assertRegex(told, r"  warning: .*the file ends inside a block")
        self.assertEqual(self.check_run(RANKSCOPE, "analyze", run.name).stderr, b"")
        for verb in (("collect", run.name), ("compare", run.name, run.name), ("recommend", run.name)):
            self.assertRegex(self.check_run(RANKSCOPE, "-v", *verb).stderr.decode(), r"steps \(.*s\)", verb)


if __name__ == "__main__":
    unittest.main()
