# SPDX-License-Identifier: Apache-2.0
"""What the job tests share: a scratch folder per test, and a way to run commands in it with and without the wrapper."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

RANKSCOPE = os.environ.get("RANKSCOPE_BINARY", "rankscope")
TIMEOUT_S = 120
LAUNCHER_VARIABLES = ("OMPI_", "PMIX_", "PMI_", "SLURM_", "RANK", "LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC_")


class JobTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rankscope-jobs-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        # The tests may themselves run under a launcher or a wrapper: their jobs start from a plain environment.
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(LAUNCHER_VARIABLES) and not (name.startswith("RANKSCOPE_")) and name != "LD_PRELOAD"}

    def start(self, *command, environment=None, **options):
        variables = dict(self.environment, **(environment or {}))
        return subprocess.Popen([str(word) for word in command], cwd=self.folder, env=variables, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def run_plain(self, *command, environment=None):
        process = self.start(*command, environment=environment)
        try:
            out, err = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.fail(f"no end within {TIMEOUT_S} s: {command}")
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def rankscope(self, *arguments, environment=None):
        return self.run_plain(RANKSCOPE, *arguments, environment=environment)

    def wrapped(self, name, *command, options=(), environment=None):
        """The command under a quiet `rankscope run`: what it writes to stderr is the job's alone, and warnings."""
        return self.rankscope("-q", "run", "-o", name, *options, "--", *command, environment=environment)

    def description(self, name):
        return json.loads((self.folder / name / "run.json").read_text())
