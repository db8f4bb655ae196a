#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two runs of one scenario and seed give the same trace, however loaded the machine is."""

import os
import subprocess
import sys
import unittest

from dump_trace import dump
from virtual_run import RANKSCOPE, SMALL, VirtualRunTest


class Determinism(VirtualRunTest):
    def assert_same_trace(self, first, second):
        # Devices and ports are read once a second of real time, beside the job.
        left, right = ([row for row in dump(self.folder / run / "trace.db") if "device_health" not in row and "port_counter" not in row] for run in (first, second))
        self.assertGreater(len(left), 100)
        different = [f"{a}\n{b}" for a, b in zip(left, right) if a != b]
        self.assertEqual((len(left), different[:5]), (len(right), []))

    def test_a_loaded_machine_changes_nothing(self):
        scenario = self.write_scenario(SMALL)
        self.run_scenario(scenario, "idle")
        load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3 * (os.cpu_count() or 1))]
        try:
            self.run_scenario(scenario, "loaded")
        finally:
            for process in load:
                process.kill()
                process.wait()
        self.assert_same_trace("idle", "loaded")

    def test_collecting_again_changes_nothing(self):
        self.run_scenario(self.write_scenario(SMALL), "a")
        before = dump(self.folder / "a" / "trace.db")
        self.check_run(RANKSCOPE, "-q", "collect", "a")
        self.assertEqual(dump(self.folder / "a" / "trace.db"), before)

    def test_another_seed_is_another_trace(self):
        self.run_scenario(self.write_scenario(SMALL), "a")
        self.run_scenario(self.write_scenario(dict(SMALL, name="other", seed=4)), "b")
        self.assertNotEqual(dump(self.folder / "a" / "trace.db"), dump(self.folder / "b" / "trace.db"))


if __name__ == "__main__":
    unittest.main()
