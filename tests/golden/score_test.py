#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rankscope reference score` on folders of scenarios: what is counted, what a bad file does, and the exit codes."""

import json
import sqlite3
import subprocess
import unittest

from virtual_run import RANKSCOPE, SMALL, TIMEOUT_S, VirtualRunTest

# Enough compute per byte that nothing but the straggler costs anything.
STRAGGLER = dict(SMALL, model={"layers": 8, "hidden": 2048, "seq": 2048, "micro_batch": 4}, expect=[{"id": "RS301", "ranks": [1]}], fixed={"faults": []})


class Score(VirtualRunTest):
    def score(self, *options):
        return subprocess.run([RANKSCOPE, "-q", "reference", "score", *map(str, options)], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=TIMEOUT_S)

    def test_a_fault_that_is_found_meets_the_gate_and_its_saving_is_measured(self):
        self.write_scenario(STRAGGLER)
        result = self.score("--scenarios", ".", "--format", "json", "--require", "precision=1,recall=1")
        self.assertEqual(result.returncode, 0, result.stderr)
        row, = json.loads(result.stdout)["scenarios"]
        self.assertEqual((row["found"], row["missed"], row["false_alarms"]), ([{"id": "RS301", "ranks": [1]}], [], []))
        self.assertGreater(row["measured_saving_ns"], 0.1 * row["step_ns"])
        self.assertLess(row["saving_error"], 0.1)

    def test_each_scenario_has_a_world_of_its_own_unless_it_names_one(self):
        job = dict(SMALL, faults=[])
        for name in ("one", "other"):
            self.write_scenario(dict(job, name=name))
        self.write_scenario(dict(job, name="ideal", world="ideal"))
        worlds, steps = {}, {}
        for draw in (0, 1, 2):
            result = self.score("--scenarios", ".", "--no-fixed", "--worlds", draw, "--keep", f"kept{draw}", "--format", "json")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(json.loads(result.stdout)["worlds"], draw)
            steps[draw] = {row["name"]: row["step_ns"] for row in json.loads(result.stdout)["scenarios"]}
            worlds[draw] = {name: json.loads((self.folder / f"kept{draw}" / name / "scenario.json").read_text()).get("world") for name in ("one", "other", "ideal")}
        self.assertEqual(worlds[0], {"one": None, "other": None, "ideal": "ideal"})
        self.assertEqual(len({worlds[1]["one"], worlds[1]["other"], worlds[2]["one"], worlds[2]["other"]}), 4)
        self.assertEqual(worlds[2]["ideal"], "ideal")
        self.assertEqual(len({steps[draw]["one"] for draw in (0, 1, 2)}), 3)
        self.assertEqual(len({steps[draw]["ideal"] for draw in (0, 1, 2)}), 1)

    def test_advice_is_followed_and_its_gain_held_against_the_promise(self):
        cluster = {"nodes": 2, "ranks_per_node": 2, "tflops": 300, "intra": {"alpha_us": 5, "gbps": 150}, "inter": {"alpha_us": 30, "gbps": 25}}
        job = dict(SMALL, kind="ddp", steps=6, cluster=cluster, model={"layers": 8, "hidden": 1024, "seq": 1024, "micro_batch": 2}, parallel={"dp": 4, "bucket_mb": 1}, faults=[], expect=[])
        self.write_scenario(dict(job, name="with-a-way", follow={"ddp.bucket_cap_mb": {"parallel": {"bucket_mb": "$"}}}))
        self.write_scenario(dict(job, name="without"))
        result = self.score("--scenarios", ".", "--follow-advice", "--format", "json", "--keep", "kept", "--require", "kept=1")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        rows = {row["name"]: row for row in document["scenarios"]}
        advice = rows["with-a-way"]["advice"]
        self.assertEqual((advice["followed"], advice["not_followed"], advice["kept"]), (["buckets"], [], True))
        self.assertGreater(advice["gain_ns"], 0.05 * rows["with-a-way"]["step_ns"])
        given = json.loads((self.folder / "kept/with-a-way/followed/scenario.json").read_text())["parallel"]["bucket_mb"]
        self.assertGreater(given, 1)
        self.assertEqual(rows["without"]["advice"], {"followed": [], "not_followed": ["buckets"]})
        self.assertEqual((document["totals"]["promises"], document["totals"]["promises_kept"]), (1, 1))
        text = self.score("--scenarios", ".", "--follow-advice", "--keep", "kept", "--again").stdout
        self.assertIn("advice: 1 of 1 gains in their interval", text)
        self.assertIn("without: buckets", text)

    def test_a_wrong_rank_is_a_miss_and_a_false_alarm_and_fails_the_gate(self):
        self.write_scenario(dict(STRAGGLER, expect=[{"id": "RS301", "ranks": [2]}]))
        result = self.score("--scenarios", ".", "--no-fixed", "--format", "json", "--require", "recall=0.95")
        self.assertEqual(result.returncode, 1, result.stderr)
        counts = json.loads(result.stdout)["by_diagnosis"]["RS301"]
        self.assertEqual([counts[key] for key in ("true", "false", "missed", "wrong_rank")], [0, 1, 1, 1])

    def test_a_broken_file_is_an_error_and_the_rest_runs(self):
        self.write_scenario(STRAGGLER)
        (self.folder / "broken.json").write_text('{"kind": ')
        self.write_scenario(dict(SMALL, name="unknown", kind="telepathy"))
        self.write_scenario(dict(SMALL, name="outside", expect=[{"id": "RS301", "ranks": [4]}]))
        self.write_scenario(dict(SMALL, name="no-such-diagnosis", expect=[{"id": "RS299"}]))
        self.write_scenario(dict(SMALL, name="misspelt", fixed={"fault": []}))
        result = self.score("--scenarios", ".", "--no-fixed", "-o", "score.json", "--format", "json")
        self.assertEqual(result.returncode, 3)
        rows = {row["name"]: row for row in json.loads((self.folder / "score.json").read_text())["scenarios"]}
        self.assertIn("not valid JSON", rows["broken"]["error"])
        self.assertIn("telepathy", rows["unknown"]["error"])
        self.assertIn("./outside.json: 'expect[0].ranks' names 4 of 4 ranks", rows["outside"]["error"])
        self.assertIn("./no-such-diagnosis.json: 'expect[0].id' is RS299, which is no diagnosis", rows["no-such-diagnosis"]["error"])
        self.assertIn("./misspelt.json with its 'fixed' overrides: 'fault' is not a known key", rows["misspelt"]["error"])
        self.assertIsNone(rows["small"]["error"])
        self.assertEqual(len(rows["small"]["found"]), 1)

    def test_links_are_told_or_not(self):
        self.write_scenario(STRAGGLER)
        for links in ("told", "machine", "unknown"):
            result = self.score("--scenarios", ".", "--no-fixed", "--format", "json", "--links", links, "--keep", links)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(json.loads(result.stdout)["links"], links)
            connection = sqlite3.connect(f"file:{self.folder}/{links}/small/faulty/trace.db?mode=ro", uri=True)
            told = connection.execute("SELECT value FROM meta WHERE key = 'links'").fetchall()
            connection.close()
            peaks = json.loads((self.folder / links / "small/faulty.json").read_text())["link_peaks"]
            kinds = {peaks[place] and peaks[place]["kind"] for place in ("intra", "inter")}
            self.assertTrue(kinds == {links} if links != "unknown" else kinds <= {"at_least", None}, (links, peaks))
            self.assertEqual([text for text, in told], ["intra:gbps=200,alpha_us=6;inter:gbps=40,alpha_us=18"] if links == "told" else [])

    def test_recorded_runs_take_no_other_links(self):
        self.write_scenario(STRAGGLER)
        result = self.score("--scenarios", ".", "--keep", "kept", "--again", "--links", "told")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--again keeps the links that the runs were recorded with", result.stderr)
        self.assertFalse((self.folder / "kept").exists())

    def test_recorded_runs_are_judged_as_if_nobody_knew_their_links(self):
        self.write_scenario(STRAGGLER)
        kept = ("--scenarios", ".", "--no-fixed", "--keep", "kept")
        self.assertEqual(self.score(*kept, "--links", "told").returncode, 0)
        report = self.folder / "kept/small/faulty.json"
        told, run = json.loads(report.read_text()), self.folder / "kept/small/faulty/run.json"
        recorded = run.stat().st_mtime_ns
        result = self.score(*kept, "--again", "--links", "unknown", "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["links"], "unknown")
        self.assertEqual(run.stat().st_mtime_ns, recorded)
        self.assertEqual(told["link_peaks"]["intra"]["kind"], "told")
        peaks = json.loads(report.read_text())["link_peaks"]
        self.assertTrue({peaks[place] and peaks[place]["kind"] for place in ("intra", "inter")} <= {"at_least", None}, peaks)

    def test_runs_of_another_world_are_refused(self):
        self.write_scenario(STRAGGLER)
        kept = ("--scenarios", ".", "--no-fixed", "--keep", "kept")
        self.assertEqual(self.score(*kept, "--worlds", "2").returncode, 0)
        scenario = (self.folder / "kept/small/scenario.json").read_text()
        result = self.score(*kept, "--again", "--worlds", "3")
        self.assertEqual(result.returncode, 3)
        self.assertIn("give --again the same --worlds", result.stderr)
        self.assertEqual((self.folder / "kept/small/scenario.json").read_text(), scenario)
        self.assertEqual(self.score(*kept, "--again", "--worlds", "2").returncode, 0)

    def test_all_three_stand_side_by_side(self):
        self.write_scenario(STRAGGLER)
        result = self.score("--scenarios", ".", "--no-fixed", "--format", "json", "--links", "all", "--require", "recall=1,precision=1")
        self.assertEqual(result.returncode, 0, result.stderr)
        modes = json.loads(result.stdout)["modes"]
        self.assertEqual([(mode["links"], mode["totals"]["true"]) for mode in modes], [("told", 1), ("machine", 1), ("unknown", 1)])
        self.write_scenario(dict(STRAGGLER, expect=[{"id": "RS301", "ranks": [2]}]))
        text = self.score("--scenarios", ".", "--no-fixed", "--links", "all", "--require", "recall=1")
        self.assertEqual(text.returncode, 1)
        self.assertRegex(text.stdout, r"RS301 +0 / 1 / 1 +0\.000 +0\.000 +0 / 1 / 1")
        self.assertIn("links unknown: small: expected RS301 rank 2", text.stdout)

    def test_what_cannot_be_scored_is_said(self):
        (self.folder / "empty").mkdir()
        for options, code in [(["--scenarios", "empty"], 3), (["--scenarios", "missing"], 3), (["--suite", "none"], 2), (["--require", "recall"], 2),
                              (["--suite", "compare", "--require", "recall=0.9"], 2), (["--suite", "compare", "--list"], 2), (["--suite", "compare", "--links", "told"], 2), (["--links", "guessed"], 2), (["--suite", "compare", "--format", "md"], 2),
                              (["--suite", "core", "--pool", "30"], 2), (["--suite", "compare", "--only", "nothing-like-it"], 3), (["--suite", "compare", "--seed", "-1"], 2)]:
            result = self.score(*options)
            self.assertEqual(result.returncode, code, (options, result.stderr))
            self.assertTrue(result.stderr or result.stdout)


if __name__ == "__main__":
    unittest.main()
