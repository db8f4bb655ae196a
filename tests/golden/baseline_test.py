#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A baseline folder as months of builds leave it: written by several at once, from machines whose clocks differ, by older versions, of several kinds of job, with bad runs, and large."""

import json
import math
import pathlib
import random
import resource
import shutil
import subprocess
import tempfile
import unittest

from virtual_run import RANKSCOPE, TIMEOUT_S

TEMPLATE = json.loads(next(iter(sorted((pathlib.Path(__file__).parent / "demo-baseline").glob("*.json")))).read_text())
STEP_NS = 170e6
ENTRIES = 10_000  # one a commit for some years
MOST_BYTES = 1 << 30  # of memory, for all of them


class Baseline(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rankscope-baseline-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.chance = random.Random(3)

    def run_file(self, name, factor=1.0, start=0, **changes):
        typical = STEP_NS * factor * math.exp(0.003 * self.chance.gauss(0, 1))
        run = dict(TEMPLATE, name=name, label="", start_unix_ns=10**18 + start, findings=[], steps=20, steps_ns=[typical * (1 + 0.001 * (i % 4)) for i in range(20)])
        run["environment"] = dict(run["environment"], **changes)
        (self.folder / f"{name}.json").write_text(json.dumps(run))
        return f"{name}.json"

    def noisy_baseline(self, noise, folder, entries=8, **changes):
        """Three runs an entry, of which one is as far below the step as another is above, so that the variance of runs is the square of `noise`, a share of the step."""
        for i in range(entries):
            names = [self.run_file(f"{folder}-{i}-{k}", 1, 10 * i + k, **changes) for k in range(3)]
            for name, off in zip(names, (-noise * math.sqrt(1.5), 0, noise * math.sqrt(1.5))):
                run = json.loads((self.folder / name).read_text())
                (self.folder / name).write_text(json.dumps(dict(run, steps_ns=[STEP_NS * math.exp(off)] * 20)))
            self.rankscope(0, "baseline", "save", *names, "--dir", folder, "--label", f"c{i}")

    def needed(self, folder, code=0):
        asked = subprocess.run([RANKSCOPE, "baseline", "runs", "--dir", folder], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(asked.returncode, code, asked.stderr)
        return asked.stdout, asked.stderr

    def entry(self, label, factor=1.0, start=0, **changes):
        return [self.run_file(f"{label}-{i}", factor, start + i, **changes) for i in range(3)]

    def rankscope(self, code, *words, **how):
        result = subprocess.run([RANKSCOPE, "-q", *words], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S, **how)
        self.assertEqual(result.returncode, code, (words, result.stdout[-500:], result.stderr))
        return result.stdout

    def save(self, label, files):
        self.rankscope(0, "baseline", "save", *files, "--dir", "baseline", "--label", label)

    def compared(self, code, files):
        return json.loads(self.rankscope(code, "compare", "--baseline", "baseline", "--new", *files, "--format", "json"))

    def test_a_baseline_says_how_many_runs_a_change_needs(self):
        self.assertEqual(self.needed("nothing-yet")[0], "3\n")
        for noise, folder in ((0.005, "quiet"), (0.01, "usual"), (0.02, "noisy"), (0.05, "wild")):
            self.noisy_baseline(noise, folder)
        said = {folder: self.needed(folder) for folder in ("quiet", "usual", "noisy", "wild")}
        self.assertEqual([runs for runs, _ in said.values()], ["3\n", "3\n", "8\n", "9\n"])
        self.assertIn("runs differ by 2.0 %: with 8 runs of each change a regression of 5.0 % is found in 97 of 100", said["noisy"][1])
        self.assertIn("longer runs or quieter machines find more", said["wild"][1])
        # A gate that is set to a larger regression needs fewer.
        (self.folder / "rankscope.toml").write_text('[compare]\nresolution.step = "10%"\n')
        self.assertEqual(self.needed("noisy")[0], "3\n")

    def test_a_kind_that_has_just_begun_needs_the_runs_that_the_others_needed(self):
        self.noisy_baseline(0.02, "baseline")
        self.noisy_baseline(0.004, "baseline", 1, world_size="64")  # three runs agree by chance
        self.assertEqual(self.needed("baseline")[0], "9\n")
        self.noisy_baseline(0.004, "baseline", 8, world_size="64")
        self.assertEqual(self.needed("baseline")[0], "3\n")

    def test_how_many_runs_are_needed_is_not_said_of_a_damaged_baseline(self):
        self.noisy_baseline(0.01, "baseline", 1)
        next((self.folder / "baseline").iterdir()).write_text("{")
        out, errors = self.needed("baseline", 3)
        self.assertEqual(out, "")
        self.assertIn("error: ", errors)

    def test_builds_that_save_at_once_lose_nothing(self):
        builds = {f"c{i}": self.entry(f"c{i}", start=100 * i) for i in range(6)}
        saving = [subprocess.Popen([RANKSCOPE, "-q", "baseline", "save", *files, "--dir", "baseline", "--label", label], cwd=self.folder, stderr=subprocess.PIPE) for label, files in builds.items()]
        for process in saving:
            self.assertEqual(process.wait(TIMEOUT_S), 0, process.stderr.read())
            process.stderr.close()
        said = self.compared(0, self.entry("new", start=9000))
        self.assertEqual((said["baseline"]["runs"], said["step_time"]["verdict"]), (18, "no change"))
        self.assertEqual(sum(level["entries"] for level in said["baseline"]["levels"]), 6, "runs of one build stay together")
        self.assertEqual(sorted(path.suffix for path in (self.folder / "baseline").iterdir()), [".json"] * 18, "no half-written file is left")

    def test_entries_are_in_the_order_of_their_saves_whatever_clocks_say(self):
        for i in range(8):
            self.save(f"c{i}", self.entry(f"c{i}", 1 if i < 6 else 0.85, start=(-10**15 if i % 2 else 0) + i))  # every second machine is behind by days
        said = self.compared(1, self.entry("new", 0.935, start=50))
        self.assertEqual([(level["first"], level["last"]) for level in said["baseline"]["levels"]], [("c0", "c5"), ("c6", "c7")])
        self.assertEqual(said["step_time"]["verdict"], "regression")

    def test_other_kinds_stand_beside_each_other_and_are_pruned_each_for_itself(self):
        for i in range(4):
            self.save(f"c{i}", self.entry(f"c{i}", start=10 * i))
        self.save("eight", self.entry("eight", 0.6, start=100, world_size="16"))
        said = self.compared(1, self.entry("new", 1.1, start=200))
        self.assertEqual((said["step_time"]["verdict"], said["baseline"]["of_other_kinds"]), ("regression", 3))
        self.rankscope(0, "baseline", "prune", "--dir", "baseline", "--keep", "3")
        self.assertEqual(self.compared(1, self.entry("more", 0.66, start=300, world_size="16"))["step_time"]["verdict"], "regression")
        self.assertEqual(self.compared(0, self.entry("same", 1, start=400))["step_time"]["verdict"], "no change")

    def test_a_bad_run_does_not_count_and_the_result_says_so(self):
        for i in range(4):
            files = self.entry(f"c{i}", start=10 * i)
            if i == 3:
                files[1] = self.run_file("c3-1", 1.4, 31)
            self.save(f"c{i}", files)
        said = self.compared(1, self.entry("new", 1.04, start=90))
        self.assertEqual([(run["label"], run["name"]) for run in said["baseline"]["left_out"]], [("c3", "c3-1")])
        self.assertEqual((said["step_time"]["verdict"], len(said["base"]["runs"])), ("regression", 11))
        self.assertRegex(self.rankscope(1, "compare", "--baseline", "baseline", "--new", "new-0.json", "new-1.json", "new-2.json"),
                         r"c3-1 of the baseline \(c3\) does not count: it is [34]\d\.\d % slower than the other runs of its entry")

    def test_entries_of_older_versions_come_first_by_their_clock(self):
        baseline = self.folder / "baseline"
        baseline.mkdir()
        for i in range(3):
            for file in self.entry(f"old{i}", start=10 * (3 - i)):  # written before entries had an order
                run = json.loads((self.folder / file).read_text())
                (baseline / file).write_text(json.dumps(dict(run, label=f"old{i}")))
        self.save("now", self.entry("now", start=-50))
        said = self.compared(0, self.entry("new", start=99))
        self.assertEqual((said["baseline"]["levels"][0]["first"], said["baseline"]["levels"][-1]["last"], said["baseline"]["runs"]), ("old2", "now", 12))

    def test_ten_thousand_entries_are_read_in_bounded_memory(self):
        baseline = self.folder / "baseline"
        baseline.mkdir()
        run = json.loads((self.folder / self.run_file("one")).read_text())
        run["roles"] = run["roles"][:1]  # of a small job: it is their number that is large
        for i in range(ENTRIES):
            typical = STEP_NS * (1 if i < 9000 else 0.9) * math.exp(0.003 * self.chance.gauss(0, 1))
            run.update(label=f"c{i}", saved_order=i + 1, start_unix_ns=10**18 + i, steps_ns=[typical] * 20)
            (baseline / f"{i:016x}.json").write_text(json.dumps(run))
        files = self.entry("new", 0.95, start=10**6)
        said = json.loads(self.rankscope(1, "compare", "--baseline", "baseline", "--new", *files, "--format", "json",
                                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))))
        self.assertEqual((said["step_time"]["verdict"], said["baseline"]["runs"], said["baseline"]["levels"][-1]["first"]), ("regression", ENTRIES, "c9000"))


if __name__ == "__main__":
    unittest.main()
