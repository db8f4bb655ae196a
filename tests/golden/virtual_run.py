# SPDX-License-Identifier: Apache-2.0
"""What the golden tests share: running a scenario on the virtual GPUs in a scratch folder, and reading what came out."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

RANKSCOPE = os.environ.get("RANKSCOPE_BINARY", "rankscope")
WORKLOAD = pathlib.Path(RANKSCOPE).resolve().parents[1] / "libexec/rankscope/rankscope-workload"
TIMEOUT_S = 240

# Small enough to run in a blink, with every part in it: two nodes, several buckets, a straggler.
SMALL = {"name": "small", "kind": "ddp", "steps": 5, "seed": 3, "noise": 0.02, "cluster": {"nodes": 2, "ranks_per_node": 2},
         "model": {"layers": 4, "hidden": 1024, "seq": 512, "micro_batch": 2}, "parallel": {"dp": 4},
         "faults": [{"kind": "straggler", "rank": 1, "factor": 1.5}]}


class VirtualRunTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rankscope-golden-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        outer = ("OMPI_", "PMIX_", "PMI_", "SLURM_", "RANK", "LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC_", "RANKSCOPE_", "LD_PRELOAD")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(outer)}

    def run_any(self, *command, environment=None):
        return subprocess.run([str(word) for word in command], cwd=self.folder, env=dict(self.environment, **(environment or {})),
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S)

    def check_run(self, *command, environment=None, status=0):
        result = self.run_any(*command, environment=environment)
        self.assertEqual(result.returncode, status, f"{command}\n{result.stdout.decode()}\n{result.stderr.decode()}")
        return result

    def write_scenario(self, scenario):
        path = self.folder / (scenario["name"] + ".json")
        path.write_text(json.dumps(scenario))
        return path

    def run_scenario(self, scenario, name, environment=None):
        self.check_run(RANKSCOPE, "-q", "reference", "run", scenario, "-o", name, environment=environment)
        return self.folder / name

    def report(self, name, status=0):
        return json.loads(self.check_run(RANKSCOPE, "-q", "analyze", name, "--format", "json", status=status).stdout)
