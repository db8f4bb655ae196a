#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rankscope run --virtual` puts the virtual libraries in front of those that a program's RPATH leads to, and leaves programs without CUDA alone."""

import os
import pathlib
import unittest

from virtual_run import RANKSCOPE, VirtualRunTest

ASKER = os.environ["RANKSCOPE_ASKER"]  # needs libcublas.so.13, with a DT_RPATH to one that answers 1


class Preload(VirtualRunTest):
    def virtual(self, *command, environment=None):
        return self.check_run(RANKSCOPE, "-q", "run", "--virtual", "--force", "-o", "run", "--", *command, environment=environment)

    def test_alone_the_program_finds_the_library_of_its_rpath(self):
        self.assertEqual(self.check_run(ASKER).stdout, b"1\n")

    def test_under_virtual_it_gets_ours(self):
        self.assertRegex(self.virtual(ASKER).stdout, rb"^13\d{4}\n$")

    def test_a_changed_library_path_changes_nothing(self):
        for change in (["env", "-u", "LD_LIBRARY_PATH"], ["env", "LD_LIBRARY_PATH=/nowhere"]):
            result = self.virtual(*change, ASKER)
            self.assertRegex(result.stdout, rb"^13\d{4}\n$")
            self.assertEqual(result.stderr, b"")

    def test_programs_without_cuda_notice_nothing(self):
        for command in (["sh", "-c", "echo word; ls / | grep -c ."], ["python3", "-c", "import subprocess, sys; print(subprocess.run(['true']).returncode)"]):
            alone, wrapped = self.check_run(*command), self.virtual(*command)
            self.assertEqual(wrapped.stdout, alone.stdout)
            self.assertEqual(wrapped.stderr, b"")

    def test_torch_compile_does_without_worker_processes_unless_the_user_wants_them(self):
        name = "TORCHINDUCTOR_COMPILE_THREADS"
        for given, expected in (({}, "1"), ({name: "4"}, "4")):
            self.assertIn(f"{name}={expected}", self.virtual("env", environment=given).stdout.decode().splitlines())
        plain = self.check_run(RANKSCOPE, "-q", "run", "--force", "-o", "run", "--", "env").stdout.decode()
        self.assertNotIn(name, plain)

    def test_the_users_own_preloads_stay_behind(self):
        shown = self.virtual("env", environment={"LD_PRELOAD": "libm.so.6"}).stdout.decode()
        parts = next(line for line in shown.splitlines() if line.startswith("LD_PRELOAD=")).removeprefix("LD_PRELOAD=").split(":")
        self.assertEqual(parts[-1], "libm.so.6")
        self.assertTrue(all(pathlib.Path(part).is_file() for part in parts[:-1]), parts)
        self.assertEqual(len(set(parts)), len(parts))


if __name__ == "__main__":
    unittest.main()
