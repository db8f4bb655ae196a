#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A disk that is full or fails, writes that are cut short, memory that ends, and death at any write: nothing that was whole before is lost, no half file
stands under a final name, and the next command works."""

import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "jobs"))
from run_contract_test import USES_A_GPU  # noqa: E402
from wrapped import RANKSCOPE, JobTest  # noqa: E402

FAULT = os.environ.get("RANKSCOPE_FAULT_LIBRARY", "")
SKIPPED = 77
WRITING = ("nospace", "io", "short", "kill")
MOST = int(os.environ.get("RANKSCOPE_FAULT_POINTS", "16"))  # calls of a kind that are made to fail, evenly spread; 0: each
SCENARIO = {"name": "small", "kind": "ddp", "steps": 3, "seed": 1, "cluster": {"nodes": 1, "ranks_per_node": 2},
            "model": {"layers": 2, "hidden": 256, "seq": 128, "micro_batch": 1}, "parallel": {"dp": 2}}
TRACE = {"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": [
    {"ph": "X", "cat": "kernel", "name": f"k{i}", "pid": 0, "tid": 7, "ts": 10 * i, "dur": 5, "args": {"device": 0, "stream": 7, "correlation": i}} for i in range(50)]}


class Faults(JobTest):
    def setUp(self):
        super().setUp()
        self.folder = self.folder.resolve()
        self.whole = self.folder / "whole"  # as it is before every command
        self.whole.mkdir()
        self.work = self.folder / "work"

    def faulty(self, fault, *words, program="rankscope"):
        environment = {"LD_PRELOAD": FAULT, "FAULT": fault, "FAULT_PROGRAM": program, "FAULT_FOLDER": str(self.work), "FAULT_COUNT": str(self.folder / "count")}
        return subprocess.run([RANKSCOPE, *words], cwd=self.work, env=dict(self.environment, **environment), stdin=subprocess.DEVNULL, capture_output=True, timeout=120)

    def begin(self):
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.whole, self.work, symlinks=True)

    def points(self, kind, *words, program="rankscope"):
        self.begin()
        (self.folder / "count").unlink(missing_ok=True)
        self.faulty(f"{kind}:0", *words, program=program)
        count = int((self.folder / "count").read_text())
        self.assertGreater(count, 0, f"{words}: no call of kind {kind}")
        if MOST == 0 or count <= MOST:
            return range(1, count + 1)
        return sorted({1 + i * (count - 1) // (MOST - 1) for i in range(MOST)})

    def each(self, kinds, words, check, program="rankscope"):
        """Calls check(result, kind) after the command failed at each point, in the folder that it left."""
        for kind in kinds:
            for point in self.points(kind, *words, program=program):
                self.begin()
                result = self.faulty(f"{kind}:{point}", *words, program=program)
                with self.subTest(fault=f"{kind}:{point}", words=words, status=result.returncode, said=result.stderr[-160:]):
                    check(result, kind)

    def assertEndedWell(self, result, kind):
        # 4: out of memory. -9: we killed it ourselves.
        self.assertIn(result.returncode, (0, 3, 4) if kind == "memory" else (0, -9) if kind == "kill" else (0, 3))
        if result.returncode in (3, 4):
            self.assertIn(b"error: ", result.stderr)

    def clean(self, *words):
        result = subprocess.run([RANKSCOPE, "-q", *words], cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        self.assertEqual(result.returncode, 0, (words, result.stderr))
        return result.stdout

    def assertWhole(self, database):
        if not database.exists():
            return
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        self.assertEqual(connection.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        self.assertGreater(connection.execute("SELECT count(*) FROM rank").fetchone()[0], 0)
        connection.close()

    def assertNothingLeft(self, kind):
        # A file that is written first beside its final name carries the number of its process: nobody else takes it away when that is killed.
        left = [str(path) for path in self.work.rglob("*") if path.name.endswith((".part", "-journal") if kind == "kill" else (".part", "-journal", ".new"))]
        self.assertEqual(left, [])

    def record(self, *options):
        (self.folder / "small.json").write_text(json.dumps(SCENARIO))
        result = subprocess.run([RANKSCOPE, "-q", "reference", "run", "../small.json", "-o", "a", *options], cwd=self.whole, env=self.environment, capture_output=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_collect(self):
        self.record("--no-collect")

        def check(result, kind):
            self.assertEndedWell(result, kind)
            self.assertWhole(self.work / "a/trace.db")
            self.clean("collect", "a")
            self.assertWhole(self.work / "a/trace.db")
            self.assertNothingLeft(kind)
        self.each((*WRITING, "memory"), ("-q", "collect", "a"), check)

    def test_import_over_an_earlier_one(self):
        (self.whole / "k.json").write_text(json.dumps(TRACE))
        subprocess.run([RANKSCOPE, "-q", "import", "k.json", "-o", "a"], cwd=self.whole, env=self.environment, check=True, timeout=120)

        def check(result, kind):
            self.assertEndedWell(result, kind)
            self.assertTrue((self.work / "a/trace.db").exists())
            self.assertWhole(self.work / "a/trace.db")
            self.clean("import", "k.json", "-o", "a", "--force")
            self.assertNothingLeft(kind)
        self.each((*WRITING, "memory"), ("-q", "import", "k.json", "-o", "a", "--force"), check)

    def test_analyze_writes_its_findings_and_a_report(self):
        self.record()
        self.begin()
        self.clean("analyze", "a", "--format", "json", "-o", "report.json")
        expected = json.loads((self.work / "report.json").read_text())
        (self.whole / "report.json").write_text("{}\n")

        def check(result, kind):
            self.assertEndedWell(result, kind)
            present = json.loads((self.work / "report.json").read_text())
            if present:
                self.assertEqual(present["findings"], expected["findings"])
            self.clean("analyze", "a", "--format", "json", "-o", "report.json")
            self.assertEqual(json.loads((self.work / "report.json").read_text()), expected)
            self.assertWhole(self.work / "a/trace.db")
            self.assertNothingLeft(kind)
        self.each((*WRITING, "memory"), ("-q", "analyze", "a", "--format", "json", "-o", "report.json"), check)

    def test_run_whose_wrapper_has_no_luck(self):
        def check(result, kind):
            if result.returncode not in (-9, 3):  # it could not begin, or was killed
                self.assertEqual((result.returncode, result.stdout), (0, b"job\n"))
            self.assertWhole(self.work / "r/trace.db")
            self.clean("run", "--virtual", "--no-health", "--force", "-o", "r", "--", "python3", "-c", USES_A_GPU + "print('job', flush=True)")
            self.assertWhole(self.work / "r/trace.db")
        self.each(("nospace", "kill"), ("-q", "run", "--virtual", "--no-health", "-o", "r", "--", "python3", "-c", USES_A_GPU + "print('job', flush=True)"), check)

    def test_run_whose_recording_has_no_luck(self):
        def check(result, kind):
            if kind == "kill":
                self.assertEqual(result.returncode, -9)
            else:
                self.assertEqual((result.returncode, result.stdout), (0, b"job\n"))
            self.assertNotIn(b"internal", result.stderr)
        program = pathlib.Path(os.path.realpath(shutil.which("python3"))).name
        for name in {"python3", program}:
            self.begin()
            (self.folder / "count").unlink(missing_ok=True)
            words = ("-q", "run", "--virtual", "--no-health", "-o", "r", "--", "python3", "-c", USES_A_GPU + "print('job', flush=True)")
            self.faulty("nospace:0", *words, program=name)
            if (self.folder / "count").exists():
                return self.each(WRITING, words, check, program=name)
        self.fail("the job was not seen")


if __name__ == "__main__":
    if not FAULT:
        print("skipped: the fault library is not built")
        sys.exit(SKIPPED)
    unittest.main()
