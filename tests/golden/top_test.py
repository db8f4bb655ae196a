#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rankscope top`: a job while it runs, of which nothing is touched: step time, who is late, traffic, devices and findings, for people and for programs."""

import json
import os
import signal
import subprocess
import time
import unittest

from virtual_run import RANKSCOPE, SMALL, VirtualRunTest

SLOW = [{"kind": "straggler", "rank": 1, "factor": 1.5, "throttle": "power"}]


class Top(VirtualRunTest):
    def start(self, scenario, name, *more):
        """Starts a scenario; it is ended with the test."""
        job = subprocess.Popen([RANKSCOPE, "-q", "reference", "run", str(self.write_scenario(scenario)), "-o", name, "--no-collect", *more], cwd=self.folder, env=self.environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(job.stderr.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.terminate)
        return job

    def top(self, name, *options):
        return self.check_run(RANKSCOPE, "top", name, *options)

    def once(self, name, *options):
        return json.loads(self.top(name, "--once", "--format", "json", *options).stdout)

    def until(self, name, condition):
        """Looks until the condition holds of what is told."""
        for _ in range(60):
            if (self.folder / name / "capture").is_dir():
                state = self.once(name, "--window", "2")
                if condition(state):
                    return state
            time.sleep(0.1)
        self.fail(f"never came: {state}")

    def test_what_records_no_job_is_refused_and_not_waited_for(self):
        (self.folder / "events.json").write_text("[]")
        self.run_scenario(self.write_scenario(dict(SMALL, name="whole")), "whole")
        (self.folder / "whole" / "trace.db").rename(self.folder / "alone.db")
        (self.folder / "imported").mkdir()
        (self.folder / "imported" / "trace.db").write_bytes((self.folder / "alone.db").read_bytes())
        for name in ("events.json", "alone.db", "imported", "missing"):
            done = self.run_any(RANKSCOPE, "top", name)
            self.assertEqual((done.returncode, done.stdout), (3, b""), name)
            self.assertIn(b"rankscope: hint: ", done.stderr)
        full = self.run_any("bash", "-c", f'"{RANKSCOPE}" top whole --once --format json >/dev/full')
        self.assertEqual((full.returncode, b"No space left" in full.stderr), (3, True))
        gone = self.run_any("bash", "-c", f'"{RANKSCOPE}" top whole --once --format json | true; exit ${{PIPESTATUS[0]}}')
        self.assertEqual((gone.returncode, gone.stderr), (0, b""))

    def test_a_running_job_tells_its_step_its_late_rank_its_devices_and_its_finding(self):
        job = self.start(dict(SMALL, name="slow", steps=300000, faults=SLOW), "slow", "--light")
        state = self.until("slow", lambda state: state["findings"] and state["devices"])
        self.assertIsNone(job.poll())
        self.assertEqual((state["schema"], state["phase"], state["world_size"], len(state["ranks"])), ("rankscope.top/1", "running", 4, 4))
        self.assertGreater(state["step"]["count"], 3)
        self.assertEqual(state["late"][0]["rank"], 1)
        self.assertGreater(state["late"][0]["share"], 0.5)
        self.assertEqual([row["ranks"] for row in state["communicators"]], [4])
        self.assertGreater(state["communicators"][0]["busbw_bytes_per_s"], 1e9)
        self.assertEqual({device["rank"]: device["throttled_by"] for device in state["devices"]}, {0: "", 1: "power cap", 2: "", 3: ""})
        straggler = [finding for finding in state["findings"] if finding["id"] == "RS301"]
        self.assertEqual(straggler[0]["ranks"], [1])
        text = self.top("slow", "--once", "--window", "2").stdout.decode()
        self.assertNotIn("\x1b", text)
        for said in ("slow: running, 4 ranks", "late     rank 1 ", "device   rank 1 ", "power cap: 1.32 of 1.98 GHz", "RS301 "):
            self.assertIn(said, text)
        self.assertFalse((self.folder / "slow" / "trace.db").exists())

    def test_the_collectives_of_a_window_still_meet_each_other(self):
        self.run_scenario(self.write_scenario(dict(SMALL, name="whole", steps=60, faults=SLOW)), "whole")
        told = self.once("whole")["step"]
        for window in (0.02, 0.05):
            state = self.once("whole", "--window", str(window))
            self.assertLess(state["step"]["count"], told["count"])
            self.assertEqual(state["late"][0]["rank"], 1)
            self.assertAlmostEqual(state["step"]["median_ns"], told["median_ns"], delta=0.05 * told["median_ns"])
            self.assertEqual([finding["ranks"] for finding in state["findings"] if finding["id"] == "RS301"], [[1]])

    def test_it_ends_with_the_job_or_with_its_reader_or_by_ctrl_c(self):
        self.run_scenario(self.write_scenario(dict(SMALL, name="ended")), "ended")
        done = self.top("ended", "--format", "json")
        self.assertEqual([json.loads(line)["phase"] for line in done.stdout.splitlines()], ["ended"])
        self.assertIn(b"next: rankscope analyze ended", done.stderr)
        self.start(dict(SMALL, name="goes_on", steps=300000), "goes_on", "--light")
        self.until("goes_on", lambda state: state["phase"] == "running")
        for sent in (signal.SIGINT, None):
            scratch = self.folder / "scratch"
            scratch.mkdir(exist_ok=True)
            looking = subprocess.Popen([RANKSCOPE, "top", "goes_on", "--interval", "0.1", "--window", "1"], cwd=self.folder, env=dict(self.environment, TMPDIR=str(scratch)), stdout=subprocess.PIPE)
            looking.stdout.readline()
            if sent is None:
                looking.stdout.close()
            else:
                os.kill(looking.pid, sent)
            self.assertEqual(looking.wait(60), 0)
            looking.stdout.close()
            self.assertEqual(list(scratch.iterdir()), [])

    def test_a_healthy_job_has_no_finding_of_ranks_and_one_that_has_not_begun_says_so(self):
        self.start(dict(SMALL, name="well", steps=300000, faults=[]), "well", "--light")
        state = self.until("well", lambda state: state["step"]["count"] > 3)
        self.assertFalse([finding for finding in state["findings"] if not finding["id"].startswith("RS2")])
        job = subprocess.Popen([RANKSCOPE, "-q", "run", "--virtual", "-o", "empty", "--", "sleep", "30"], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL)
        self.addCleanup(job.wait)
        self.addCleanup(job.terminate)
        self.until("empty", lambda state: state["phase"] == "starting")

    def test_bad_input_is_told(self):
        self.assertEqual(self.run_any(RANKSCOPE, "top", "nowhere").returncode, 3)
        for option in ("--interval", "--window"):
            for value in ("0", "-1", "x", "inf", "1e99"):
                self.assertEqual(self.run_any(RANKSCOPE, "top", "nowhere", option, value).returncode, 2, (option, value))
        self.run_scenario(self.write_scenario(dict(SMALL, name="torn")), "torn")
        for capture in (self.folder / "torn" / "capture").glob("*.cap"):
            capture.write_bytes(b"RANKSCAP" + bytes(5000))
        done = self.run_any(RANKSCOPE, "top", "torn", "--once", "--format", "json")
        self.assertEqual((done.returncode, done.stdout), (3, b""))
        self.assertIn(b"none of the 4 capture files of ", done.stderr)
        self.assertIn(b".cap: byte 16: ", done.stderr)
        self.assertIn(b"rankscope: hint: ", done.stderr)
        # One that can be read is shown, and what the others lack is counted.
        self.run_scenario(self.write_scenario(dict(SMALL, name="half")), "half")
        captures = sorted((self.folder / "half" / "capture").glob("*.cap"))
        for capture in captures[1:]:
            capture.write_bytes(bytes(5000))
        state = self.once("half")
        self.assertEqual(len(state["ranks"]), 4)
        self.assertGreater(state["losses"], 0)


if __name__ == "__main__":
    unittest.main()
