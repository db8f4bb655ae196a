#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rankscope compare` and `rankscope baseline` from recorded runs to the exit status: what a CI owner types, and what comes back."""

import contextlib
import copy
import json
import shutil
import sqlite3
import subprocess
import unittest

from virtual_run import RANKSCOPE, SMALL, TIMEOUT_S, VirtualRunTest

JOB = dict(SMALL, name="job", steps=12, noise_run=0.002, model={"layers": 6, "hidden": 1024, "seq": 1024, "micro_batch": 4}, faults=[])
STRAGGLER = [{"kind": "straggler", "rank": 2, "factor": 1.3}]


class Compare(VirtualRunTest):
    def record(self, name, seed, **changes):
        self.write_scenario(dict(copy.deepcopy(JOB), name=name, seed=seed, **changes))
        self.run_scenario(name + ".json", name)
        return name

    def rankscope(self, *words):
        return subprocess.run([RANKSCOPE, "-q", *words], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S)

    def expect(self, code, *words):
        result = self.rankscope(*words)
        self.assertEqual(result.returncode, code, (words, result.stdout, result.stderr))
        return result

    def compare(self, code, *words):
        return json.loads(self.expect(code, "compare", "--format", "json", *words).stdout)

    def test_a_slow_rank_fails_the_gate_with_its_reason_and_a_baseline_needs_no_trace(self):
        base = [self.record(f"base{seed}", seed) for seed in (1, 2, 3)]
        same = [self.record(f"same{seed}", seed) for seed in (4, 5, 6)]
        slow = [self.record(f"slow{seed}", seed, faults=STRAGGLER) for seed in (7, 8, 9)]

        result = self.compare(1, "--base", *base, "--new", *slow)
        self.assertEqual(result["schema"], "rankscope.compare/1")
        self.assertEqual(result["step_time"]["verdict"], "regression")
        self.assertLess(result["step_time"]["interval"][0], result["step_time"]["ratio"])
        self.assertEqual((result["causes"][0]["kind"], result["causes"][0]["ranks"]), ("straggler", [2]))
        self.assertAlmostEqual(sum(row["ns"] for row in result["attribution"]), result["step_time"]["change_ns"], delta=1)
        self.assertIn("RS301", [row["id"] for row in result["findings"] if row["status"] == "new"])
        self.assertTrue(result["gate"]["failed"] and result["gate"]["reasons"])

        # The same from saved summaries, with the traces gone.
        self.expect(0, "baseline", "save", *base, "--dir", "baseline", "--label", "main")
        files = list((self.folder / "baseline").iterdir())
        self.assertEqual(len(files), 3)
        self.assertLess(max(file.stat().st_size for file in files), 64 << 10)
        self.expect(0, "baseline", "save", *base, "--dir", "baseline")
        self.assertEqual(len(list((self.folder / "baseline").iterdir())), 3)
        saved = self.compare(1, "--baseline", "baseline", *slow)
        self.assertAlmostEqual(saved["step_time"]["ratio"], result["step_time"]["ratio"], places=6)  # saved to the nanosecond
        self.assertEqual(self.compare(0, "--baseline", "baseline", *same)["gate"]["failed"], False)
        self.assertIn("steps of", self.expect(0, "baseline", "list", "--dir", "baseline").stdout)
        self.assertIn("world_size", self.expect(0, "baseline", "show", "--dir", "baseline").stdout)

        # Gates.
        self.expect(0, "compare", "--baseline", "baseline", "--fail-on", "never", *slow)
        self.expect(1, "compare", "--baseline", "baseline", "--fail-on", "RS3*", *slow)
        self.expect(0, "compare", "--baseline", "baseline", "--fail-on", "RS3*", "--allow", "RS301", *slow)
        self.expect(0, "compare", "--baseline", "baseline", "--threshold", "step=90%", *slow)
        (self.folder / "rankscope.toml").write_text('[compare]\nbaseline = "baseline"\nfail-on = ["new-finding"]\n')
        self.expect(1, "compare", *["--new", *slow])
        self.expect(0, "compare", *["--new", *same])
        (self.folder / "rankscope.toml").write_text('[compare]\nbaseline = "baseline"\nfail-onn = ["new-finding"]\n')
        self.assertRegex(self.expect(3, "compare", "--new", *same).stderr, r"rankscope\.toml, line 3: unknown key fail-onn")
        (self.folder / "rankscope.toml").unlink()

        # One against one claims nothing, whatever it is.
        one = self.compare(0, base[0], slow[0])
        self.assertEqual((one["step_time"]["verdict"], one["step_time"]["interval"], one["step_time"]["more_runs"]), ("not enough samples", None, 2))
        self.assertEqual(one["causes"][0]["kind"], "straggler")

        # Old runs go.
        self.expect(0, "baseline", "prune", "--dir", "baseline", "--keep", "2")
        self.assertEqual(len(list((self.folder / "baseline").iterdir())), 2)

    def test_a_run_that_cannot_be_replayed_has_no_other_findings_for_that(self):
        played = self.record("played", 7, faults=STRAGGLER)
        shutil.copytree(self.folder / played, self.folder / "unplayed")
        with contextlib.closing(sqlite3.connect(self.folder / "unplayed/trace.db")) as trace, trace:
            trace.execute("INSERT INTO communicator VALUES (1000, 1000, 'unique_id', 2, NULL, NULL, 1)")
            trace.execute("INSERT INTO communicator_member (communicator_id, comm_rank, rank) VALUES (1000, 0, 0)")  # the other is not recorded
        for pair, unplayed in ((played, "unplayed"), "new"), (("unplayed", played), "base"):
            result = self.compare(0, *pair, "--fail-on", "new-finding")
            findings = {row["id"]: row for row in result["findings"]}
            self.assertIn("RS301", findings)
            self.assertEqual({row["status"] for row in findings.values()}, {"same"}, result["findings"])
            straggler, other = findings["RS301"], "base" if unplayed == "new" else "new"
            self.assertIsNone(straggler[unplayed + "_saving_ns"])
            self.assertGreater(straggler[other + "_saving_ns"], 0)
            self.assertAlmostEqual(straggler["base_cost_ns"], straggler["new_cost_ns"], delta=1)
            self.assertIn(f"not played on the {unplayed} side", self.expect(0, "compare", *pair).stdout)

    def test_other_jobs_and_bad_input_are_said(self):
        four = self.record("four", 1)
        two = self.record("two", 1, cluster={"nodes": 1, "ranks_per_node": 2}, parallel={"dp": 2})
        refused = self.compare(3, four, two)
        self.assertEqual(refused["step_time"]["verdict"], "incomparable")
        self.assertIn("world size", [row["what"] for row in refused["incomparable"] if row["refused"]])
        self.compare(0, four, two, "--across", "world-size,layout,hosts")
        one_step = self.record("one-step", 1, steps=1)
        self.assertIn(self.rankscope("compare", four, one_step).returncode, (0, 3))

        self.expect(0, "compare", "--baseline", "nowhere", four)
        self.assertIn("no baseline", self.expect(0, "compare", "--baseline", "nowhere", four).stdout)
        kept = self.folder / "kept"
        kept.mkdir()
        (kept / ".gitkeep").touch()
        (kept / "README.md").write_text("Runs to come.\n")
        self.assertIn("no baseline", self.expect(0, "compare", "--baseline", "kept", four).stdout)
        self.assertEqual(self.expect(0, "baseline", "list", "--dir", "kept").stdout, "")
        self.assertIn("the new side is empty", self.expect(3, "compare", "--base", four, "--new", "kept").stderr)
        self.assertIn("there is no folder nodir", self.expect(3, "baseline", "list", "--dir", "nodir").stderr)

        self.expect(0, "baseline", "save", four, "--dir", "names", "--label", "\x1b]0;title\x07\u202e\r")
        for act in ("list", "show"):
            out = self.expect(0, "baseline", act, "--dir", "names").stdout
            self.assertFalse(set("\x1b\x07\u202e\r") & set(out), out)
        self.assertIn("'two words'", subprocess.run([RANKSCOPE, "baseline", "save", four, "--dir", "two words"], cwd=self.folder, env=self.environment,
                                                    capture_output=True, text=True, timeout=TIMEOUT_S).stderr)
        (self.folder / "bad.json").write_text('{"schema": "rankscope.run-summary/7"}')
        self.assertIn("another version", self.expect(3, "compare", "bad.json", four).stderr)
        (self.folder / "nan.json").write_text('{"schema": "rankscope.run-summary/1", "steps_ns": [NaN]}')
        self.assertIn("nan.json", self.expect(3, "compare", "nan.json", four).stderr)
        self.expect(3, "compare", "missing", four)
        for words in (["compare"], ["compare", four], ["compare", four, four, four], ["compare", four, four, "--fail-on", "RS9*"], ["compare", four, four, "--threshold", "step=fast"],
                      ["compare", four, four, "--write", "paper=x"], ["baseline"], ["baseline", "save"]):
            self.expect(2, *words)


if __name__ == "__main__":
    unittest.main()
