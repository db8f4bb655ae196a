#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One number per question: every verb and the window's model are asked the same of runs of ten kinds. What README shows is what the command prints."""

import html
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

RANKSCOPE = os.environ.get("RANKSCOPE_BINARY", "rankscope")
WINDOW = os.environ.get("RANKSCOPE_WINDOW_ANSWERS", "rankscope_window_answers")
ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS = ("ddp-small-buckets", "ddp-single-bucket", "ddp-straggler", "ddp-none", "fsdp-slow-rank", "pp-few-micro-batches", "3d-straggler", "zero2-no-overlap", "tp-across-nodes",
        "ddp-fp32-grads")
DURATION = r"(\d+(?:\.\d+)?) (ns|us|ms|s)"
NS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def setUpModule():
    global folder, environment
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rankscope-answers-"))
    unittest.addModuleCleanup(shutil.rmtree, folder, ignore_errors=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RANKSCOPE_")}
    known = {line.split()[0] for line in rankscope("reference", "list").splitlines() if line}
    global runs
    runs = [name for name in RUNS if name in known]
    for name in runs:
        rankscope("reference", "run", name, "-o", name)


def rankscope(*words):
    return subprocess.run([RANKSCOPE, "-q", *map(str, words)], check=True, env=environment, cwd=folder, capture_output=True, timeout=120).stdout.decode()


answers = {}


def ask(*words):
    if words not in answers:
        answers[words] = rankscope(*words)
    return answers[words]


def report(run):
    return json.loads(ask("analyze", run, "--format", "json"))


def advice(run):
    return json.loads(ask("recommend", run, "--format", "json"))


def window(run):
    if shutil.which(WINDOW) is None:
        raise unittest.SkipTest(f"the window's model is not built ({WINDOW})")
    report(run)  # which stores what the window shows
    if ("window", run) not in answers:
        answers["window", run] = subprocess.run([WINDOW, folder / run / "trace.db"], check=True, capture_output=True, timeout=60).stdout.decode()
    return json.loads(answers["window", run])


def shown(ns):
    """As reports write a duration."""
    for unit in ("s", "ms", "us"):
        if ns >= NS[unit]:
            value = ns / NS[unit]
            return (f"{value:.0f}" if value >= 99.95 or value == int(value) else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}") + " " + unit
    return f"{ns:.0f} ns" if ns == int(ns) or ns >= 99.95 else f"{ns:.1f} ns" if ns >= 9.995 else f"{ns:.2f} ns"


def each_finding():
    return [(run, finding) for run in runs for finding in report(run)["findings"]]


class Answers(unittest.TestCase):
    def assert_shown(self, ns, text):
        """JSON rounds to whole nanoseconds, which may turn the last digit shown."""
        self.assertTrue(any(shown(about) in text for about in (ns, max(0, ns - 0.5), ns + 0.5)), f"{shown(ns)} not in {text}")

    def test_ten_runs_are_asked(self):
        self.assertEqual(len(runs), 10, runs)

    def test_the_step_has_one_length(self):
        for run in runs:
            with self.subTest(run=run):
                told = re.search(r"^step " + DURATION, ask("analyze", run), re.MULTILINE).group(1, 2)
                self.assertIn("step " + " ".join(told), ask("analyze", run, "--format", "md"))
                self.assertIn(" ".join(told), html.unescape(ask("analyze", run, "--format", "html")))
                self.assertIn("step of " + " ".join(told), ask("recommend", run))
                self.assertIn("step measured    " + " ".join(told), ask("whatif", run, "--change", "speed:factor=1"))
                self.assertEqual(shown(advice(run)["run"]["step_ns"]), " ".join(told))

    def test_a_finding_costs_and_saves_the_same_everywhere(self):
        asked = 0
        for run, finding in each_finding():
            with self.subTest(run=run, finding=finding["id"]):
                cost, saving = f"{100 * finding['severity']:.1f} %", finding["saving_ns_per_step"]
                for form in ("text", "md", "html"):
                    told = html.unescape(ask("analyze", run, "--format", form))
                    self.assertIn(cost, told)
                    if saving is not None:
                        self.assert_shown(saving, told)
                if saving is None:
                    continue
                step = advice(run)["run"]["step_ns"]
                if abs(finding["severity"] - saving / step) < 0.01 * finding["severity"]:
                    self.assertEqual(cost, f"{100 * saving / step:.1f} %", "what it costs is what the repair saves")
                asked += 1
        self.assertGreater(asked, 7)

    def test_the_window_shows_the_findings_of_the_report(self):
        for run, finding in each_finding():
            there = [f for f in window(run)["findings"] if f["id"] == finding["id"] and f["cause"] == finding["cause"]]
            self.assertEqual(len(there), 1, (run, finding["id"]))
            self.assertAlmostEqual(there[0]["severity"], finding["severity"], places=12)
            if finding["saving_ns_per_step"] is not None:
                self.assertAlmostEqual(there[0]["saving_ns"], finding["saving_ns_per_step"], delta=1)

    def test_what_if_and_recommend_gain_what_the_finding_saves(self):
        asked = 0
        for run in runs:
            findings = [f for f in report(run)["findings"] if f["saving_source"] == "replay"]
            if len(findings) != 1:
                continue  # of several each counts on top of those before it
            with self.subTest(run=run):
                finding = findings[0]
                changes = [word for change in finding["changes"] for word in ("--change", change)]
                what_if = json.loads(ask("whatif", run, *changes, "--format", "json"))
                self.assertAlmostEqual(what_if["saving_ns_per_step"], finding["saving_ns_per_step"], delta=1)
                for end in (0, 1):
                    self.assertAlmostEqual(what_if["saving_interval_ns"][end], finding["saving_interval_ns"][end], delta=1)
                self.assertAlmostEqual(what_if["saving_share"], what_if["saving_ns_per_step"] / advice(run)["run"]["step_ns"], delta=1e-6)
                text = ask("whatif", run, *changes)
                self.assertIn(f"saves            {shown(finding['saving_ns_per_step'])} per step", text)
                for own in advice(run)["recommendations"] + advice(run)["alternatives"]:
                    alone = own["alone"]["predicted_saving_ns"] if own.get("alone") else own["predicted_saving_ns"]
                    if own["findings"] == [finding["id"]] and (own["kind"] != "setting" or own["area"] in ("buckets", "global_batch", "precision")):
                        self.assertAlmostEqual(alone, finding["saving_ns_per_step"], delta=1)
                asked += 1
        self.assertGreater(asked, 5)

    def test_buckets_and_micro_batches_have_one_number(self):
        numbers = dict(report("ddp-small-buckets")["findings"][0]["evidence"]["numbers"])
        size = round(numbers["proposed_bucket_bytes"] / 2**20)
        self.assertIn(f"bucket_cap_mb={size};", ask("analyze", "ddp-small-buckets"))
        self.assertRegex(ask("recommend", "ddp-small-buckets"), rf"bucket_cap_mb={size}\n")
        count = round(report("pp-few-micro-batches")["findings"][0]["evidence"]["numbers"]["proposed_micro_batches"])
        self.assertRegex(ask("recommend", "pp-few-micro-batches"), rf"micro_batches={count}\n")

    def test_a_group_has_one_start_up(self):
        alpha = next(row["alpha_ns"] for row in report("ddp-small-buckets")["collectives"] if row["alpha_ns"])
        self.assertIn(f"pay {shown(alpha)} of start-up", ask("analyze", "ddp-small-buckets"))
        self.assertIn(f": {shown(alpha)} + ", ask("recommend", "ddp-small-buckets"))
        self.assertTrue(any(line.startswith(f"start-up {shown(alpha)},") for line in window("ddp-small-buckets")["lines"]), window("ddp-small-buckets")["lines"])

    def test_a_bubble_is_a_share_of_the_step(self):
        share = report("pp-few-micro-batches")["findings"][0]["evidence"]["numbers"]["bubble_share"]
        # The chart draws one step, the finding tells the median of all.
        self.assertAlmostEqual(window("pp-few-micro-batches")["bubble"], share, delta=0.01)

    def test_waiting_and_transfer_are_of_a_rank_and_step(self):
        for run in runs:
            with self.subTest(run=run):
                whole = report(run)
                rows = [row for row in whole["collectives"] if row["wait_ns_per_rank_and_step"] is not None]
                for row in rows[:8]:
                    self.assertIn(row["group"], ask("analyze", run))
                    for form in ("text", "md", "html"):
                        for key in ("wait_ns_per_rank_and_step", "transfer_ns_per_rank_and_step"):
                            self.assert_shown(row[key], html.unescape(ask("analyze", run, "--format", form)))
                    self.assertAlmostEqual(row["wait_ns_per_rank_and_step"], row["wait_ns"] / row["ranks"] / whole["run"]["steps"], delta=1 + 0.01 * row["wait_ns_per_rank_and_step"])
                self.assertEqual(len({(row["group"], row["op"], row["size_class"]) for row in whole["collectives"]}), len(whole["collectives"]), "no two rows read alike")

    def test_messages_of_a_storm_are_those_of_the_window_that_is_named(self):
        finding = report("ddp-small-buckets")["findings"][0]
        trace = sqlite3.connect(f"file:{folder / 'ddp-small-buckets' / 'trace.db'}?mode=ro", uri=True)
        start, end = finding["window_ns"]
        self.assertEqual(len(finding["evidence"]["rows"]), 3)
        for row in finding["evidence"]["rows"]:
            first, last = trace.execute("SELECT first_arrival_ns, end_ns FROM collective WHERE id = ?", (row["id"],)).fetchone()
            self.assertTrue(start <= first and last <= end + 0.01 * (end - start), (start, first, last, end))
        self.assertEqual([e["id"] for e in window("ddp-small-buckets")["findings"][0]["evidence"]], [row["id"] for row in finding["evidence"]["rows"]])

    def test_the_exported_trace_tells_the_findings_by_the_same_share(self):
        for run in ("fsdp-slow-rank", "pp-few-micro-batches"):
            rankscope("export", run, "--to", "perfetto", "-o", folder / f"{run}.json")
            exported = json.dumps(json.loads((folder / f"{run}.json").read_text()))
            for finding in report(run)["findings"]:
                self.assertIn(json.dumps(finding["cause"])[1:-1], exported)

    def test_a_comparison_gives_the_steps_of_the_reports(self):
        # It compares means over the ranks, a report gives the longest rank's step.
        told = re.search(DURATION + " -> " + DURATION + " a step", ask("compare", "ddp-none", "ddp-straggler"))
        for run, (number, unit) in (("ddp-none", told.group(1, 2)), ("ddp-straggler", told.group(3, 4))):
            self.assertAlmostEqual(float(number) * NS[unit] / advice(run)["run"]["step_ns"], 1, delta=0.01)

    def test_the_readme_shows_what_the_command_prints(self):
        sample = re.search(r"^```text\n(demo-run:.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL).group(1)
        rankscope("reference", "run", "fsdp-slow-rank", "-o", "demo-run")
        printed = rankscope("analyze", "demo-run").splitlines()
        at = 0
        for line in sample.splitlines():
            if line.strip() == "…":
                continue
            self.assertIn(line, printed[at:], "not printed, or not in this order")
            at = printed.index(line, at) + 1


if __name__ == "__main__":
    workload = pathlib.Path(RANKSCOPE).resolve().parents[1] / "libexec/rankscope/rankscope-workload"
    if not workload.exists():
        print(f"skipped: no reference workloads ({workload})")
        raise SystemExit(77)
    unittest.main()
