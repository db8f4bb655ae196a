#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ring of light mode, dumped while the job goes on: when somebody asks for it, by a signal, when ranks stand still, and when a step is slow. Dumps are runs of their own."""

import json
import os
import signal
import sqlite3
import subprocess
import time
import unittest

from virtual_run import RANKSCOPE, SMALL, TIMEOUT_S, VirtualRunTest, WORKLOAD

# One rank sleeps in its data loader, for a second of real time: so long the job can be looked at.
ASLEEP = dict(SMALL, name="asleep", steps=30, cluster={"nodes": 1, "ranks_per_node": 4}, faults=[{"kind": "asleep", "rank": 1, "step": 28}])


class Ring(VirtualRunTest):
    def command(self, name, *options, scenario=ASLEEP):
        path = self.write_scenario(scenario)
        script = self.folder / "ranks.sh"
        script.write_text(f'for rank in 0 1 2 3; do RANK=$rank WORLD_SIZE=4 LOCAL_RANK=$rank "{WORKLOAD}" "{path}" & done; wait -n; code=$?; wait; exit $code\n')
        return [str(word) for word in (RANKSCOPE, "run", "--virtual", "--light", *options, "-o", name, "--", "bash", script)]

    def dumps(self, name):
        folder = self.folder / name / "dumps"
        return sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []

    def analyze(self, name):
        done = self.run_any(RANKSCOPE, "-q", "analyze", name, "--format", "json")
        return done.returncode, json.loads(done.stdout)

    def ranks(self, name):
        with sqlite3.connect(self.folder / name / "trace.db") as database:
            return database.execute("SELECT count(process_id) FROM rank").fetchone()[0]

    def test_ranks_that_stand_still_leave_a_dump_that_says_who_did_not_come(self):
        done = self.run_any(*self.command("hung", "--hang-timeout", "0.3"))
        self.assertEqual(self.dumps("hung"), ["1-hang"], done.stderr)
        self.assertIn(b"hung/dumps/1-hang: rankscope analyze", done.stderr)
        for name in ("hung", "hung/dumps/1-hang"):
            status, report = self.analyze(name)
            self.assertEqual(status, 5, name)
            self.assertEqual([(finding["id"], finding["ranks"]) for finding in report["findings"] if finding["id"].startswith("RS5")], [("RS501", [1])], name)
            self.assertEqual(self.ranks(name), 4)
        kinds = {loss["kind"]: loss["severity"] for loss in self.analyze("hung/dumps/1-hang")[1]["loss"]}
        self.assertEqual(kinds.get("running"), "info")
        self.assertEqual(kinds.get("dump"), "info")

    def test_somebody_who_asks_gets_one_and_the_job_does_not_notice(self):
        job = subprocess.Popen(self.command("asked", "--hang-timeout", "off"), cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(job.kill)
        until = time.monotonic() + TIMEOUT_S
        while len(list((self.folder / "asked" / "capture").glob("*.detail"))) < 4 and time.monotonic() < until and job.poll() is None:
            time.sleep(0.02)
        asked = self.run_any(RANKSCOPE, "trigger", "asked")
        os.kill(job.pid, signal.SIGRTMIN + 7)
        _, told = job.communicate(timeout=TIMEOUT_S)
        self.assertEqual(asked.returncode, 0, asked.stderr)
        self.assertTrue(asked.stdout.decode().strip().endswith("asked/dumps/1-trigger"), asked.stdout)
        self.assertEqual(self.dumps("asked"), ["1-trigger", "2-signal"], told)
        for name in self.dumps("asked"):
            self.assertEqual(json.loads((self.folder / "asked" / "dumps" / name / "run.json").read_text())["dump"]["reason"], name[2:])
        self.analyze("asked")
        self.assertEqual(self.ranks("asked"), 4)  # its dumps are no ranks of it
        done = self.run_any(RANKSCOPE, "trigger", "asked")
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"has ended", done.stderr)

    def test_a_slow_step_leaves_one_dump(self):
        slow = dict(ASLEEP, faults=[*ASLEEP["faults"], {"kind": "jitter", "share": 0.1, "ms": 400}])
        done = self.run_any(*self.command("slow", "--hang-timeout", "off", "--slow-step", "3", scenario=slow))
        self.assertEqual(self.dumps("slow"), ["1-slow_step"], done.stderr)
        status, report = self.analyze("slow/dumps/1-slow_step")
        self.assertGreater(max(step["dur_ns"] for step in report["steps"]), 3 * min(step["dur_ns"] for step in report["steps"]))
        self.run_any(*self.command("even", "--hang-timeout", "off", "--slow-step", "3"))
        self.assertEqual(self.dumps("even"), [])

    def test_a_run_without_a_ring_has_nothing_to_dump(self):
        scenario = self.write_scenario(dict(SMALL, name="whole"))
        self.check_run(RANKSCOPE, "-q", "reference", "run", scenario, "-o", "whole")
        done = self.run_any(RANKSCOPE, "trigger", "whole")
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"without a ring", done.stderr)
        self.assertFalse((self.folder / "whole" / "dumps").exists())
        for options in (["--slow-step", "2"], ["--light", "--ring", "off", "--slow-step", "2"], *(["--light", "--slow-step", bad] for bad in ("nan", "inf", "1", "2x", ""))):
            self.assertEqual(self.run_any(RANKSCOPE, "run", *options, "-o", "no", "--", "true").returncode, 2, options)
        self.assertFalse((self.folder / "no").exists())


if __name__ == "__main__":
    unittest.main()
