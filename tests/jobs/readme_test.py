#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of README.md: those of `rankscope` as they stand, those of bootstrap.sh are what .ci/run runs."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from wrapped import RANKSCOPE, JobTest

SOURCE = pathlib.Path(os.environ.get("RANKSCOPE_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
README = (SOURCE / "README.md").read_text()


def commands():
    """The lines of all shell blocks, in order, without comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    lines = [re.sub(r"\s+#.*", "", line).strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


class Readme(JobTest):
    def setUp(self):
        super().setUp()
        # As a user's shell would have it: the tool in PATH, and a job to run.
        self.environment["PATH"] = f"{pathlib.Path(RANKSCOPE).parent}:{self.environment['PATH']}"
        self.environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                                OMPI_MCA_odls_base_num_threads="0")
        (self.folder / "train").write_text("#!/bin/sh\nexit 0\n")
        (self.folder / "train").chmod(0o755)

    def launcher_is_missing(self, command):
        if "srun" in command.split():  # the program is of no use without a cluster
            return not shutil.which("sinfo") or self.run_plain("sinfo").returncode != 0
        return "mpirun" in command.split() and not shutil.which("mpirun")

    def window_is_missing(self, command):
        return command.startswith("rankscope view") and not (pathlib.Path(RANKSCOPE).resolve().parents[1] / "libexec/rankscope/rankscope-view").exists()

    def test_commands_of_the_tool_work_in_their_order(self):
        tried = 0
        for command in commands():
            # torchrun's own options differ from release to release: torchrun_test.py covers it.
            if command.startswith("./bootstrap.sh") or "torchrun" in command or self.launcher_is_missing(command) or self.window_is_missing(command):
                continue
            result = self.run_plain("bash", "-c", command)
            self.assertEqual(result.returncode, 0, f"{command}\n{result.stdout.decode()}\n{result.stderr.decode()}")
            tried += 1
        self.assertGreater(tried, 5)

    def test_bootstrap_commands_are_run_by_continuous_integration(self):
        told = {command for command in commands() if command.startswith("./bootstrap.sh")}
        run = {line for line in (SOURCE / ".ci/run").read_text().splitlines() if line.startswith("./bootstrap.sh")}
        self.assertTrue(told)
        self.assertLessEqual(told, run)

    def test_linked_files_exist(self):
        for document in (SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", *(SOURCE / "docs").rglob("*.md")):
            for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
                self.assertTrue((document.parent / link).exists(), f"{document} links {link}")


if __name__ == "__main__":
    binary = pathlib.Path(RANKSCOPE).resolve().parents[1]
    if not (binary / "libexec/rankscope/rankscope-workload").exists():
        print("skipped: the reference workloads are not built")
        sys.exit(77)
    unittest.main()
