#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""install_test.py CMAKE BUILD-FOLDER: what `cmake --install` puts under a prefix works there, on its own."""

import subprocess
import sys
import unittest

from virtual_run import SMALL, VirtualRunTest

CMAKE, BUILD = sys.argv[1:3]


class Install(VirtualRunTest):
    def setUp(self):
        super().setUp()
        self.prefix = self.folder / "prefix"
        self.check_run(CMAKE, "--install", BUILD, "--prefix", self.prefix)
        self.tool = self.prefix / "bin/rankscope"

    def test_the_installed_tool_finds_its_own_parts(self):
        doctor = self.check_run(self.tool, "doctor").stdout.decode()
        self.assertIn(str(self.prefix), doctor)
        self.assertNotIn(BUILD, doctor)
        scenario = self.write_scenario(SMALL)
        self.check_run(self.tool, "-q", "reference", "run", scenario, "-o", "run")
        report = self.check_run(self.tool, "-q", "analyze", "run", "--format", "json").stdout
        self.assertIn(b'"RS301"', report)
        self.assertIn(b"RS301", self.check_run(self.tool, "explain", "RS301").stdout)

    def test_nothing_that_was_installed_asks_for_a_library_of_the_build(self):
        for path in self.prefix.rglob("*"):
            if path.is_symlink() or not path.is_file() or path.read_bytes()[:4] != b"\x7fELF":
                continue
            dynamic = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
            paths = [line for line in dynamic.splitlines() if "RPATH" in line or "RUNPATH" in line]
            self.assertEqual([line for line in paths if BUILD in line], [], path)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
