#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the gate of `rankscope compare` does in every case: the tables of docs/compare.md, the exit status and the JSON say the same."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from virtual_run import RANKSCOPE, TIMEOUT_S

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEMPLATE = json.loads(next(iter(sorted((ROOT / "tests/golden/demo-baseline").glob("*.json")))).read_text())
STEP_NS = 170e6
STEPS = [1 + 0.001 * (i % 4) for i in range(12)]  # of a run, as factors
NOISE = [-0.002, 0, 0.002]  # of the three runs of a side
FINDING = {"id": "RS301", "title": "straggler rank", "verdict": "found", "ranks": [2], "roles": [], "cause": "rank 2 computes 1.3x as long", "fix": ["repair it"], "cost_ns": 9e6, "saving_ns": 9e6,
           "severity": 0.05, "least_share": 0.05}
# Verdict: factors of the new runs' steps, and what else is done to them.
VERDICTS = {"regression": [1.1, 1.1, 1.1], "improvement": [0.9, 0.9, 0.9], "no change": [1, 1, 1], "not enough samples": [1.1], "undecided": [1, 1.3, 1], "no baseline": [1, 1, 1],
            "incomparable": [1, 1, 1]}


def tables():
    """The two tables of the gate: {verdict: {word: (conclusion, exit status)}}."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", (ROOT / "docs/compare.md").read_text(), re.M):
        rows = [[cell.strip().strip("`") for cell in line.strip().strip("|").split("|")] for line in block.splitlines()]
        if rows[0][0] == "verdict" and "new-finding" in rows[0]:
            found.append({row[0]: {word: (cell.rsplit(", ", 1)[0], int(cell.rsplit(", ", 1)[1])) for word, cell in zip(rows[0][1:], row[1:])} for row in rows[2:]})
    return found


class Gate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="rankscope-gate-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        # One run a side tells no noise: the base of `not enough samples` is one run, too.
        for name, runs in (("three", 3), ("one", 1)):
            for i in range(runs):
                cls.write(f"{name}/base{i}.json", f"base{i}", 1 + NOISE[i], i)
        for verdict, factors in VERDICTS.items():
            for findings in ("none", "found"):
                for i, factor in enumerate(factors):
                    cls.write(f"{verdict}-{findings}/new{i}.json", f"new{i}", factor * (1 + NOISE[i] / 2), 10 + i, verdict == "incomparable", findings == "found")

    @classmethod
    def write(cls, file, name, factor, start, other=False, found=False):
        run = dict(TEMPLATE, name=name, start_unix_ns=10**18 + start, steps_ns=[STEP_NS * factor * step for step in STEPS], findings=[FINDING] if found else [])
        if other:
            run["environment"] = dict(run["environment"], world_size="16")
        (cls.folder / file).parent.mkdir(exist_ok=True)
        (cls.folder / file).write_text(json.dumps(run))

    def gate(self, verdict, findings, *words):
        base = {"no baseline": "nowhere", "not enough samples": "one"}.get(verdict, "three")
        written = self.folder / "written.json"
        written.unlink(missing_ok=True)
        result = subprocess.run([RANKSCOPE, "-q", "compare", "--baseline", base, "--new", f"{verdict}-{findings}", *words, "--format", "json", "--write", "json=written.json"],
                                cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S)
        said = json.loads(result.stdout)
        self.assertEqual(said["step_time"]["verdict"], verdict, result.stderr)
        self.assertEqual(json.loads(written.read_text()), said, "a result is written whatever the verdict is")
        gate = said["gate"]
        self.assertEqual((gate["exit_status"], gate["failed"], gate["judged"]), (result.returncode, gate["conclusion"] == "failed", gate["conclusion"] != "not judged"))
        self.assertEqual(bool(gate["reasons"]), gate["failed"])
        return gate["conclusion"], result.returncode

    def test_documentation_exit_status_and_json_agree_in_every_case(self):
        without, new = tables()
        self.assertEqual(list(without), list(VERDICTS))
        self.assertEqual(set(next(iter(without.values()))), {"regression", "new-finding", "undecided", "no-baseline", "incomparable", "RS301", "never"})
        for verdict, cells in without.items():
            for word, expected in cells.items():
                with self.subTest(verdict=verdict, fail_on=word):
                    self.assertEqual(self.gate(verdict, "none", "--fail-on", word), expected)
                    self.assertEqual(self.gate(verdict, "found", "--fail-on", word, "--allow", "RS301"), expected, "an allowed finding is none")
                    now = new.get(verdict, new["all others"]).get(word, expected)
                    self.assertEqual(self.gate(verdict, "found", "--fail-on", word), now)
                    if word == "RS301":
                        for other in ("finding:RS301", "RS3*"):
                            self.assertEqual(self.gate(verdict, "found", "--fail-on", other), now)

    def test_of_several_words_the_worst_counts_and_never_goes_before_all(self):
        without, new = tables()
        worst = ["passed", "undecided", "not judged", "failed"]
        for verdict, cells in without.items():
            expected = max((cells["regression"], cells["undecided"], new.get(verdict, new["all others"])["new-finding"]), key=lambda cell: worst.index(cell[0]))
            with self.subTest(verdict=verdict):
                self.assertEqual(self.gate(verdict, "found", "--fail-on", "regression,undecided", "--fail-on", "new-finding"), expected)
                self.assertEqual(self.gate(verdict, "found", "--fail-on", "regression,incomparable,RS301,never"), cells["never"])

    def test_runs_of_two_kinds_on_a_side_are_said_in_every_format(self):
        mixed = self.folder / "mixed"
        shutil.copytree(self.folder / "three", mixed)
        shutil.copy(self.folder / "incomparable-none/new0.json", mixed / "other.json")
        words = ["--base", *map(str, sorted(mixed.glob("*.json"))), "--new", "no change-none"]
        result = subprocess.run([RANKSCOPE, "-q", "compare", *words, "--write", "md=mix.md", "--write", "junit=mix.xml"], cwd=self.folder, capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(result.returncode, 3, result.stderr)
        for text in (result.stdout, (self.folder / "mix.md").read_text(), (self.folder / "mix.xml").read_text()):
            self.assertIn("world size is 8 in base0 and 16 in new0", text)
        # A baseline may hold several kinds: those of the new runs' kind are compared with.
        result = subprocess.run([RANKSCOPE, "-q", "compare", "--baseline", "mixed", "--new", "no change-none"], cwd=self.folder, capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("1 run of another kind", result.stdout)

    def test_one_bad_run_of_three_is_named_and_can_be_left_out(self):
        rank = dict(FINDING, ranks=[1], cause="rank 1 computes 1.5x as long")
        for i, factor in enumerate((1, 1.3, 1)):
            self.write(f"bad/step-time-{i + 1}.json", f"step-time-{i + 1}", factor * (1 + NOISE[i] / 2), 20 + i)
        run = json.loads((self.folder / "bad/step-time-2.json").read_text())
        (self.folder / "bad/step-time-2.json").write_text(json.dumps(dict(run, findings=[rank])))
        result = subprocess.run([RANKSCOPE, "-q", "compare", "--baseline", "three", "--new", "bad"], cwd=self.folder, capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(result.returncode, 0)
        for words in ("undecided: one of your three runs is not like the others", "step-time-2 takes 221 ms, the other two 170 ms and 170 ms", "rank 1 on node0", "RS301",
                      "one of your machines, not your change", "without it: no change", "--drop step-time-2", "Gate undecided"):
            self.assertIn(words, result.stdout)
        dropped = subprocess.run([RANKSCOPE, "-q", "compare", "--baseline", "three", "--new", "bad", "--drop", "step-time-2", "--format", "json"], cwd=self.folder, capture_output=True, text=True,
                                 timeout=TIMEOUT_S)
        self.assertEqual(json.loads(dropped.stdout)["step_time"]["verdict"], "no change")
        # Two of three that are slow are no bad run.
        for i, factor in enumerate((1.1, 1.3, 1.1)):
            self.write(f"slow/step-time-{i + 1}.json", f"step-time-{i + 1}", factor * (1 + NOISE[i] / 2), 20 + i)
        slow = subprocess.run([RANKSCOPE, "-q", "compare", "--baseline", "three", "--new", "slow", "--format", "json"], cwd=self.folder, capture_output=True, text=True, timeout=TIMEOUT_S)
        said = json.loads(slow.stdout)
        self.assertEqual((said["step_time"]["verdict"], slow.returncode, said["odd_runs"][0]["run"]), ("regression", 1, "step-time-2"))
        self.assertAlmostEqual(said["step_time"]["ratio"], 1.1, delta=0.005)


if __name__ == "__main__":
    unittest.main()
