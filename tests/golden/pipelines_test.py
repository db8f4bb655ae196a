#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drawn pipelines of 36 changes, as docs/ci describes them: as many runs of every change as the baseline asks for, against that baseline, which grows with what is merged. What share of the regressions
the gate finds, whatever was merged before, and how often it blames a change that is harmless.

`pipelines_test.py --pipelines 8` prints the table for as many pipelines of each noise, `--runs 3` with as many runs of every change; as a test it draws one of each."""

import argparse
import collections
import concurrent.futures
import json
import math
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

from virtual_run import RANKSCOPE, TIMEOUT_S

TEMPLATE = json.loads(next(iter(sorted((pathlib.Path(__file__).parent / "demo-baseline").glob("*.json")))).read_text())
STEP_NS = 170e6
KEEP_RUNS = 90  # as docs/ci keeps
# What a change is, its true effect on the step, whether it is merged whatever the gate says, and the number of ranks from there on.
CHANGES = [("harmless", 1)] * 4 + [("+2 %", 1.02), ("harmless", 1), ("+5 %", 1.05), ("harmless", 1), ("+10 %", 1.10),
           ("-5 %", 0.95), ("harmless", 1), ("harmless", 1), ("+5 % after -5 %", 1.05), ("harmless", 1), ("+2 %", 1.02),
           ("-15 %", 0.85), ("harmless", 1), ("+5 % after -15 %", 1.05), ("+10 % after -15 %", 1.10), ("harmless", 1),
           ("accepted +10 %", 1.10), ("harmless", 1), ("harmless", 1), ("+5 % after accepted +10 %", 1.05), ("+2 %", 1.02),
           ("8 -> 16 ranks", 0.8), ("harmless", 1), ("+10 % after other ranks", 1.10), ("+5 % after other ranks", 1.05), ("bad run of three", 1)] + [("drift", 1.005)] * 6
# Of a main branch that was left alone for long, and then gets slower little by little.
DRIFT_BEHIND_A_LEVEL = [("harmless", 1)] * 12 + [("drift", 1.005)] * 6
MERGED = {"harmless", "-5 %", "-15 %", "accepted +10 %", "8 -> 16 ranks", "drift"}
IS_REGRESSION = [name for name, factor in dict.fromkeys(CHANGES) if factor > 1.006 and not name.startswith("accepted")]


class Pipeline:
    """One repository with its baseline. Noise between runs of `noise`, within one of 0.4 %. `runs`: of every change; None: as many as the baseline asks for."""

    def __init__(self, noise, seed, runs=None, changes=CHANGES):
        self.runs, self.changes, self.recorded = runs, changes, []
        self.random, self.noise, self.ranks, self.level, self.number = random.Random(f"{noise} {seed}"), noise, "8", 1.0, 0
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rankscope-pipeline-"))

    def rankscope(self, *words):
        return subprocess.run([RANKSCOPE, "-q", *words], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S)

    def record(self, factor, bad=False):
        """As many runs of the tree with that change."""
        names = []
        self.recorded.append(self.runs or int(self.rankscope("baseline", "runs", "--dir", "baseline").stdout))
        for i in range(self.recorded[-1]):
            self.number += 1
            typical = STEP_NS * self.level * factor * math.exp(self.noise * self.random.gauss(0, 1)) * (1.3 if bad and i == 1 else 1)
            run = dict(TEMPLATE, name=f"step-time-{i + 1}", label="", start_unix_ns=10**18 + self.number * 10**12, findings=[], steps=20,
                       steps_ns=[typical * math.exp(0.004 * self.random.gauss(0, 1)) for _ in range(20)])
            run["environment"] = dict(run["environment"], world_size=self.ranks)
            names.append(f"step-time-{i + 1}.json")
            (self.folder / names[-1]).write_text(json.dumps(run))
        return names

    def merge(self, names, factor):
        self.level *= factor
        assert self.rankscope("baseline", "save", *names, "--dir", "baseline", "--label", f"c{len(self.recorded)}").returncode == 0
        assert self.rankscope("baseline", "prune", "--dir", "baseline", "--keep", str(KEEP_RUNS)).returncode == 0

    def play(self):
        """[(change, verdict, exit status, whether drift is told, runs)]."""
        results = []
        for _ in range(3):
            self.merge(self.record(1), 1)
        for name, factor in self.changes:
            if name == "8 -> 16 ranks":
                self.ranks = "16"
            names = self.record(factor, name == "bad run of three")
            compared = self.rankscope("compare", "--baseline", "baseline", "--new", *names, "--format", "json")
            said = json.loads(compared.stdout)
            results.append((name, said["step_time"]["verdict"], compared.returncode, any("drift:" in note for note in said["notes"]), len(names)))
            if name in MERGED or compared.returncode == 0:
                self.merge(names, factor)
                if name == "accepted +10 %":
                    assert self.rankscope("baseline", "accept", "--dir", "baseline").returncode == 0
        shutil.rmtree(self.folder)
        return results


def play(noise, seed, runs=None, changes=CHANGES):
    return Pipeline(noise, seed, runs, changes).play()


def table(noise, results):
    counts = collections.defaultdict(collections.Counter)
    drift = collections.Counter()
    for pipeline in results:
        told, number = None, 0
        for name, verdict, _, says, _ in pipeline:
            counts[name][verdict] += 1
            if name == "drift":
                number += 1
                if told is None and (says or verdict == "regression"):
                    told = number
        drift[told] += 1
    runs = [row[-1] for pipeline in results for row in pipeline]
    print(f"noise between runs {noise:.1%}, {len(results)} pipelines, {sum(runs) / len(runs):.1f} runs of a change, {max(runs)} at most")
    large = [name for name in IS_REGRESSION if name != "+2 %"]
    for what, names in (("+5 and +10 %", large), ("+2 %", ["+2 %"]), ("harmless", ["harmless"])):
        print(f"  {what:28} called a regression: {sum(counts[name]['regression'] for name in names)} of {sum(counts[name].total() for name in names)}")
    for name, verdicts in counts.items():
        print(f"  {name:28} {dict(verdicts)}")
    print(f"  drift of 0.5 % a change is told at change {dict(sorted(drift.items(), key=str))}")
    return counts, drift


class Pipelines(unittest.TestCase):
    def test_a_gate_finds_what_got_slower_whatever_was_merged_before(self):
        for noise in (0.005, 0.01, 0.02):
            results = play(noise, 1)
            counts, drift = table(noise, [results])
            with self.subTest(noise=noise):
                # Of one pipeline: shares are for the table of many. What was found in none, once a level had moved, is found.
                large = [name for name in IS_REGRESSION if name != "+2 %"]
                self.assertGreaterEqual(sum(counts[name]["regression"] for name in large), len(large) - 1)
                self.assertLessEqual(counts["harmless"]["regression"], 1)
                self.assertEqual(counts["8 -> 16 ranks"], {"incomparable": 1})
                self.assertEqual(counts["bad run of three"], {"undecided": 1})
                self.assertEqual(counts["-15 %"], {"improvement": 1})
                runs = [row[-1] for row in results]
                self.assertEqual(max(runs) > 3, noise > 0.01, "more runs where three would miss too much, and only there")


if __name__ == "__main__":
    if "--pipelines" in sys.argv:
        parser = argparse.ArgumentParser()
        parser.add_argument("--pipelines", type=int)
        parser.add_argument("--first-seed", type=int, default=1)
        parser.add_argument("--runs", type=int)
        parser.add_argument("--drift-alone", action="store_const", const=DRIFT_BEHIND_A_LEVEL, default=CHANGES, dest="changes", help="twelve harmless changes, and then drift")
        parser.add_argument("--noise", type=float, nargs="+", default=(0.005, 0.01, 0.02))
        options = parser.parse_args()
        for noise in options.noise:
            with concurrent.futures.ProcessPoolExecutor(2) as pool:
                table(noise, list(pool.map(play, [noise] * options.pipelines, range(options.first_seed, options.first_seed + options.pipelines), [options.runs] * options.pipelines, [options.changes] * options.pipelines)))
    else:
        unittest.main()
