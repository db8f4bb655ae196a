#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dumps of PyTorch's flight recorder, written by Python's own pickler for jobs on paper, from import to finding: in every form that they come in, whole and damaged, of
jobs that hang in each of the known ways, and of healthy ones."""

import gzip
import json
import os
import pathlib
import pickle
import random
import subprocess
import tempfile
import unittest

from flight_recorder_drawn import DrawnJob
from flight_recorder_job import Job, as_json

RANKSCOPE = os.environ.get("RANKSCOPE_BINARY", "rankscope")
WORLD = {"0": ("default_pg", range(4))}
PIPELINE = WORLD | {"5": ("PIPELINE", range(4))}


def healthy(groups=None, calls=5):
    job = Job(4, groups or WORLD)
    for _ in range(calls):
        job.all_call("0")
    return job


def without_rank_2():
    job = healthy()
    for rank in (0, 1, 3):
        job.ranks[rank].call("0", "all_reduce", state="started", place=("step", "/job/train.py", 41))
    return job


class FlightRecorder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.runs = 0

    def rankscope(self, *arguments, code=0):
        done = subprocess.run([RANKSCOPE, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stdout}{done.stderr}")
        return done

    def imported(self, *paths):
        self.runs += 1
        run = self.folder / f"run{self.runs}"
        self.rankscope("import", *paths, "-o", run)
        return run

    def report(self, job, code, **form):
        dumps = job.write(self.folder / f"dumps{self.runs}", **form)
        return json.loads(self.rankscope("analyze", self.imported(dumps), "--format", "json", code=code).stdout)

    def said(self, job, code=5, **form):
        return [(finding["id"], finding["ranks"], finding["verdict"]) for finding in self.report(job, code, **form)["findings"]]

    def test_the_missing_rank_is_found_in_every_form_of_dump(self):
        expected = [("RS501", [2], "found")]
        for protocol in (2, 3, 4, 5):
            self.assertEqual(self.said(without_rank_2(), protocol=protocol), expected, protocol)
        for minor in range(11):
            self.assertEqual(self.said(without_rank_2(), version=f"2.{minor}"), expected, minor)
        for form in ({"json_form": True, "pattern": "rank_{}.json"}, {"only_active": True}, {"ring": 3}, {"frames": False}, {"pattern": "trace{}"},
                     {"json_form": True, "only_active": True}):
            self.assertEqual(self.said(without_rank_2(), **form), expected, form)
        compressed = self.folder / "compressed" / "host1"
        compressed.mkdir(parents=True)
        for rank in range(4):
            (compressed / f"dump_{rank}.json.gz").write_bytes(gzip.compress(as_json(without_rank_2().dump(rank)).encode()))
        run = self.imported(compressed.parent)  # a folder below it
        self.assertIn("rank 2 did not call all_reduce 6 of default_pg 0-3", self.rankscope("analyze", run, code=5).stdout)

    def test_the_report_tells_places_and_what_is_not_judged(self):
        finding = self.report(without_rank_2(), 5)["findings"][0]
        self.assertIn("called in step (/job/train.py:40)", "\n".join(finding["evidence"]["facts"]))
        text = self.rankscope("analyze", f"run{self.runs}", code=5).stdout
        self.assertIn("dumps of PyTorch's flight recorder", text)
        self.assertIn("no device activity and nothing of the host", text.replace("\n  ", " "))
        for form in ("md", "html"):
            self.rankscope("analyze", f"run{self.runs}", "--format", form, "-o", f"report.{form}", code=5)
            self.assertIn("did not call", (self.folder / f"report.{form}").read_text())

    def test_healthy_jobs_have_no_finding(self):
        on_its_way = healthy().all_call("0", state="started")
        ahead = healthy()  # its dumps are of later than rank 2's
        for rank in (0, 1, 3):
            for _ in range(4):
                ahead.ranks[rank].call("0", "all_reduce")
            ahead.ranks[rank].call("0", "all_reduce", state="started")
        ring = healthy(PIPELINE)
        for _ in range(3):
            for rank in range(4):
                ring.ranks[rank].batch("5", [("send", (rank + 1) % 4), ("recv", (rank - 1) % 4)])
        coalesced = healthy()
        for rank in coalesced.ranks:
            rank.call("0", "_reduce_scatter_base", state="scheduled").call("0", "_reduce_scatter_base", state="scheduled", same=True)
            rank.call("0", "REDUCE_SCATTER_coalesced", sizes=(), same=True)
        uneven = healthy()
        for number, rank in enumerate(uneven.ranks):
            rank.call("0", "all_to_all", sizes=((100 + number, 8),), out=((104 - number, 8),))
        for job in (healthy(), on_its_way, ahead, ring, coalesced, uneven):
            for form in ({}, {"only_active": True}, {"json_form": True, "pattern": "rank_{}.json"}):
                if job is ahead and form.get("only_active"):
                    continue  # what rank 2 is behind is not in them
                self.assertEqual(self.said(job, code=0, **form), [], form)
        self.assertEqual(self.said(healthy(), code=0, skip=(1, 2, 3)), [])
        self.assertEqual(self.said(healthy(), code=0, skip=(1,)), [])

    def test_mismatches_name_who_differs_and_in_what(self):
        for options, word in (({"name": "all_gather", "out": ((4096,),)}, "operation"), ({"sizes": ((512,),)}, "size"), ({"dtype": "Int"}, "type")):
            job = healthy()
            for rank in (0, 1, 3):
                job.ranks[rank].call("0", "all_reduce", state="started")
            job.ranks[2].call("0", **({"name": "all_reduce", "state": "started"} | options))
            finding = self.report(job, 5)["findings"][0]
            self.assertEqual((finding["id"], finding["ranks"]), ("RS502", [2]))
            self.assertTrue(finding["cause"].endswith(f"they differ in {word}"), finding["cause"])

    def test_waiting_is_followed_to_each_root(self):
        groups = WORLD | {"1": ("TP", [0, 1]), "2": ("TP", [2, 3]), "3": ("DP", [0, 2])}
        job = healthy(groups)
        for name in groups:
            job.all_call(name)
        job.ranks[0].call("1", "all_reduce", state="started")  # for rank 1
        job.ranks[2].call("3", "all_reduce", state="started")  # for rank 0, behind it
        job.ranks[3].call("2", "all_reduce", state="started")  # for rank 2
        self.assertEqual(self.said(job), [("RS501", [1], "found")])

        pipeline = healthy(PIPELINE)
        for _ in range(3):
            for rank in range(4):
                if rank > 0:
                    pipeline.ranks[rank].message("5", "recv", rank - 1)
                if rank < 3:
                    pipeline.ranks[rank].message("5", "send", rank + 1)
        pipeline.ranks[0].message("5", "send", 1)
        pipeline.ranks[1].message("5", "recv", 0)
        for rank in (2, 3):
            pipeline.ranks[rank].message("5", "recv", rank - 1, state="started")
        self.assertEqual(self.said(pipeline), [("RS503", [1], "found")])
        # Dumps that have dropped their first messages do not tell which of them belong together.
        for form in ({"only_active": True}, {"ring": 4}):
            self.assertEqual(self.said(pipeline, code=0, **form), [("RS503", [1], "inconclusive")], form)

        # Rank 1 has sent what rank 2 waits for, and the device of rank 2 hangs. Wrapped dumps lack the number of messages that shows it.
        sent = healthy(PIPELINE)
        for _ in range(3):
            sent.ranks[1].message("5", "send", 2)
            sent.ranks[2].message("5", "recv", 1)
        sent.ranks[1].message("5", "send", 2)
        sent.ranks[2].message("5", "recv", 1, state="started")
        for rank in (0, 1, 3):
            sent.ranks[rank].call("0", "all_reduce", state="started")
        self.assertEqual(self.said(sent), [("RS501", [2], "found")])
        self.assertEqual(self.said(sent, code=0, ring=5), [("RS503", [1, 2], "inconclusive")])

        batches = healthy(PIPELINE)
        for rank in (0, 1, 3):
            batches.ranks[rank].batch("5", [("send", (rank + 1) % 4), ("recv", (rank - 1) % 4)], state="started")
        self.assertEqual(self.said(batches), [("RS503", [2], "found")])

        stuck = healthy()
        stuck.ranks[2].call("0", "all_reduce", state="started")
        for rank in (0, 1, 3):
            stuck.ranks[rank].call("0", "all_reduce")
        for rank in stuck.ranks:
            rank.call("0", "all_reduce", state="scheduled")
        self.assertEqual(self.said(stuck), [("RS501", [2], "found")])

        never = Job(4, WORLD)
        for rank in range(3):
            never.ranks[rank].call("0", "all_reduce", state="started")
        self.assertEqual(self.said(never), [("RS501", [3], "found")])

        crossed = Job(2, {"0": ("A", [0, 1]), "1": ("B", [0, 1])}).all_call("0").all_call("1")
        crossed.ranks[0].call("0", "all_reduce", state="started")
        crossed.ranks[1].call("1", "all_reduce", state="started")
        self.assertEqual(self.said(crossed), [("RS503", [0, 1], "found")])

    def test_of_drawn_jobs_the_culprit_is_named_and_nobody_else(self):
        told = {"host": 0, "no dump": 0, "device": 0}
        drawn = dict.fromkeys(told, 0)
        for seed in range(100):
            drawing = DrawnJob(random.Random(seed))
            with self.subTest(seed=seed, fault=drawing.fault, culprits=drawing.culprits, form=drawing.dumps):
                dumps = drawing.job().write(self.folder / f"drawn{seed}", **drawing.dumps)
                done = subprocess.run([RANKSCOPE, "analyze", self.imported(dumps), "--format", "json"], capture_output=True, text=True, timeout=120, check=False)
                findings = json.loads(done.stdout)["findings"]
                self.assertEqual(done.returncode, 5 if any(finding["verdict"] == "found" for finding in findings) else 0)
                certain = {rank for finding in findings if finding["verdict"] == "found" for rank in finding["ranks"]}
                named = {rank for finding in findings for rank in finding["ranks"]}
                self.assertLessEqual(certain, set(drawing.culprits))
                if drawing.fault == "none":
                    self.assertEqual(findings, [])
                    continue
                # Of two, one may never have been waited for. A device that has not begun, where starts are not told, is one of those that called the same.
                told[drawing.fault] += bool(named & set(drawing.culprits))
                drawn[drawing.fault] += 1
                if drawing.fault == "host":
                    self.assertTrue(certain)
        self.assertEqual((told["host"], told["no dump"]), (drawn["host"], drawn["no dump"]))
        # What is left are the last calls of a job: all have made them, and nobody stands behind.
        self.assertGreaterEqual(told["device"], 0.7 * drawn["device"], (told, drawn))

    def test_a_rank_without_a_dump_or_with_a_part_of_one_is_suspected_at_most(self):
        all_called = healthy().all_call("0", state="started")
        self.assertEqual(self.said(all_called, code=0, skip=(3,)), [("RS501", [3], "inconclusive")])
        self.assertEqual(self.said(all_called, code=0, skip=(1, 2, 3)), [])
        self.assertEqual(self.said(without_rank_2(), skip=(0,)), [("RS501", [2], "found")])

        dumps = without_rank_2().write(self.folder / "cut", version="2.0")  # without pg_status, and pg_config comes last
        whole = (dumps / "_dump_0").read_bytes()
        (dumps / "_dump_0").write_bytes(whole[: len(whole) // 2])
        report = json.loads(self.rankscope("analyze", self.imported(dumps), "--format", "json", code=5).stdout)
        self.assertEqual([(finding["id"], finding["ranks"]) for finding in report["findings"]], [("RS501", [2])])
        self.assertIn("torn_tail", {loss["kind"] for loss in report["loss"]})

    def test_a_pickle_that_wants_code_run_is_refused_and_nothing_is_written(self):
        class Hostile:
            def __reduce__(self):
                return os.system, ("touch pwned",)

        dumps = healthy().write(self.folder / "dumps")
        for protocol in (2, 4):
            (dumps / "_dump_1").write_bytes(pickle.dumps(healthy().dump(1) | {"entries": [Hostile()]}, protocol=protocol))
            error = self.rankscope("import", dumps, "-o", "hostile", code=3).stderr
            self.assertRegex(error, r"_dump_1, offset \d+: this pickle is not read: it holds the opcode (STACK_)?GLOBAL \w+.system")
            self.assertFalse((self.folder / "hostile").exists())
        self.assertFalse((self.folder / "pwned").exists())


if __name__ == "__main__":
    unittest.main()
