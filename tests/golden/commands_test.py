#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands that Rankscope prints can be pasted into a shell as they stand, whatever a run is called."""

import json
import os
import pathlib
import shutil
import subprocess
import unittest

from virtual_run import RANKSCOPE, SMALL, TIMEOUT_S, VirtualRunTest

NAMES = ("two words", "it's", "$HOME", "a;b&c", 'say "x"', "`id`", "sub folder/run")


class Commands(VirtualRunTest):
    def setUp(self):
        super().setUp()
        self.environment["PATH"] = f"{pathlib.Path(RANKSCOPE).resolve().parent}:{os.environ['PATH']}"

    def said(self, *words):
        """What a run of the tool says on both channels."""
        result = subprocess.run([RANKSCOPE, *map(str, words)], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(result.returncode, 0, f"{words}\n{result.stderr}")
        return result.stdout + result.stderr

    def printed(self, text):
        """Commands in what was said, without those that have a placeholder."""
        found = [line.split("rankscope: next: ", 1)[1] for line in text.splitlines() if line.startswith("rankscope: next: ")]
        found += [line[6:] for line in text.splitlines() if line.startswith(("Next: rankscope", "      rankscope"))]
        found += [line.split("what if ", 1)[1] for line in text.splitlines() if line.startswith("  what if rankscope")]
        return [command for command in found if not any(word in command for word in ("COMMAND", "…", " JOB"))]

    def paste(self, command):
        result = subprocess.run(["sh", "-euc", command], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(result.returncode, 0, f"{command}\n{result.stderr}")

    def test_a_run_of_any_name(self):
        recorded = self.run_scenario(self.write_scenario(SMALL), "plain")
        for name in NAMES:
            with self.subTest(name=name):
                run = self.folder / name
                run.parent.mkdir(exist_ok=True)
                shutil.copytree(recorded, run)
                commands = self.printed(self.said("collect", name))
                self.assertTrue(commands and commands[0].startswith("rankscope analyze "), commands)
                report = self.printed(self.said("analyze", name))
                self.assertTrue(any(command.startswith("rankscope whatif ") and "--change" in command for command in report), report)
                commands += report + self.printed(self.said("recommend", name))
                for command in commands:
                    self.paste(command)

    def test_a_recording_names_its_run_as_it_was_typed(self):
        scenario = self.write_scenario(SMALL)
        (self.folder / "runs").mkdir()
        for name in ("runs/first one", "$x"):
            [command] = self.printed(self.said("reference", "run", scenario, "-o", name))
            self.assertTrue(command.startswith("rankscope analyze "))
            self.paste(command)

    def test_no_secret_of_a_command_is_stored(self):
        words = ["--password", "hunter2-0", "--token=hunter2-1", "--wandb-api-key", "hunter2-2", "HF_TOKEN=hunter2-3", "https://me:hunter2-4@host/",
                 "Authorization: Bearer hunter2-5", "train --secret hunter2-6", "--lr", "0.1"]
        result = subprocess.run([RANKSCOPE, "run", "-o", "run", "--", "true", *words], cwd=self.folder, env=self.environment, capture_output=True, timeout=TIMEOUT_S)
        self.assertEqual(result.returncode, 0, result.stderr)
        files = [path for path in (self.folder / "run").rglob("*") if path.is_file()]
        self.assertIn("run.json", [path.name for path in files])
        for path in files:
            self.assertNotIn(b"hunter2", path.read_bytes(), path)
        self.assertEqual(json.loads((self.folder / "run/run.json").read_text())["command"][-2:], ["--lr", "0.1"])

    def test_what_is_recorded_of_a_job_can_be_read(self):
        said = self.said("doctor", "--privacy")
        for part in ("NCCL_ALGO\n", "CUDA_DEVICE_MAX_CONNECTIONS\n", "SLURM_PROCID\n", "--password x"):
            self.assertIn(part, said)


if __name__ == "__main__":
    unittest.main()
