#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs of training frameworks: their list, what is said where the frameworks are not installed, and, where they are, one of each kind end to end."""

import json
import os
import pathlib
import unittest

from virtual_run import RANKSCOPE, VirtualRunTest

BUILD = pathlib.Path(RANKSCOPE).resolve().parents[1]
ENVIRONMENT = pathlib.Path(os.environ.get("RANKSCOPE_FRAMEWORKS", BUILD / "frameworks"))
JOBS = BUILD / "share/rankscope/frameworks/jobs"


class FrameworkJobs(VirtualRunTest):
    def test_every_job_and_its_repair_can_be_read(self):
        listed = json.loads(self.check_run(RANKSCOPE, "-q", "reference", "list", "--suite", "frameworks", "--format", "json").stdout)
        self.assertGreaterEqual(len(listed), 40)
        self.assertGreaterEqual(sum(job["faults"] != ["none"] for job in listed), 25)
        for job in listed:
            self.assertEqual(job["kind"], "framework")
            self.assertTrue(job["description"], job["name"])
            document = json.loads((JOBS / (job["name"] + ".json")).read_text())
            # A healthy control, or one whose clocks alone are wrong, expects nothing; a fault has a repair.
            self.assertEqual(job["faults"] in (["none"], ["clock_offset"]), not document["expect"], job["name"])
            if document["expect"]:
                self.assertIn("fixed", document, job["name"])

    def test_what_installs_the_frameworks_is_said_where_they_are_missing(self):
        for verb in (("score", "--suite", "frameworks"), ("run", "torch-ddp-none", "-o", "run")):
            result = self.run_any(RANKSCOPE, "-q", "reference", *verb, environment={"RANKSCOPE_FRAMEWORKS": str(self.folder / "nowhere")})
            self.assertEqual(result.returncode, 3, verb)
            self.assertIn(b"./bootstrap.sh frameworks", result.stderr)
        self.assertFalse((self.folder / "run").exists())


@unittest.skipUnless((ENVIRONMENT / "bin/torchrun").exists(), "the frameworks are not installed: ./bootstrap.sh frameworks")
class RealFrameworks(VirtualRunTest):
    def test_a_straggler_in_a_job_of_two_ranks_is_found_and_the_job_is_equal_each_time(self):
        job = json.loads((JOBS / "torch-fsdp-straggler.json").read_text())
        job["cluster"]["ranks_per_node"] = 2
        job["framework"]["arguments"].update({"--steps": 5, "--layers": 2})
        job["faults"][0]["rank"], job["expect"][0]["ranks"] = 1, [1]
        path = self.write_scenario(job)
        steps = []
        for name in ("one", "two"):
            self.run_scenario(path, name, environment={"RANKSCOPE_FRAMEWORKS": str(ENVIRONMENT)})
            report = self.report(name)
            self.assertEqual([(finding["id"], finding["ranks"]) for finding in report["findings"]], [("RS301", [1])])
            steps.append([step["dur_ns"] for step in report["steps"]])
        self.assertEqual(steps[0], steps[1])


if __name__ == "__main__":
    unittest.main()
