#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What-if against what happens: a job with a fault, its repaired twin, and what `rankscope whatif` and the report predict. Savings are compared as shares of the
faulty step."""

import json
import subprocess
import unittest

from virtual_run import RANKSCOPE, TIMEOUT_S, VirtualRunTest

# Scenario, and the change that repairs its fault.
REPAIRS = {
    "ddp-straggler": "balance:ranks=5",
    "fsdp-slow-input": "no-stalls:cause=input",
    "ddp-sync-every-step": "no-stalls:cause=sync",
    "pp-slow-p2p": "speed:factor=10,links=inter",
    "zero2-no-overlap": "overlap",
}
MOST_OFF = 0.03


class WhatIf(VirtualRunTest):
    def played(self, name, *options):
        run = name + "-".join(options).replace("--", "-")
        self.check_run(RANKSCOPE, "-q", "reference", "run", name, *options, "-o", run)
        return run

    def run_plain(self, *command):
        return subprocess.run(command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S)

    def predict(self, run, *changes):
        options = [word for change in changes for word in ("--change", change)]
        return json.loads(self.check_run(RANKSCOPE, "-q", "whatif", run, *options, "--format", "json").stdout)

    def test_predicted_savings_arrive(self):
        for name, change in REPAIRS.items():
            with self.subTest(scenario=name):
                run = self.played(name)
                predicted = self.predict(run, change)
                repaired = self.predict(self.played(name, "--fixed"), "network")["measured_step_ns"]
                measured = predicted["measured_step_ns"]
                self.assertEqual(predicted["schema"], "rankscope.whatif/1")
                self.assertLess(predicted["replay"]["error"], 0.01)
                self.assertLess(abs(predicted["saving_ns_per_step"] - (measured - repaired)) / measured, MOST_OFF)
                low, high = predicted["saving_interval_ns"]
                self.assertTrue(low <= predicted["saving_ns_per_step"] <= high)
                for path in ("before", "after"):
                    total = sum(share["ns_per_step"] for share in predicted["critical_path"][path])
                    step = predicted["replay"]["predicted_step_ns"] if path == "before" else predicted["changed_step_ns"]
                    self.assertLess(abs(total - step) / step, 0.02)
                report = self.report(run)
                self.assertEqual([finding["saving_source"] for finding in report["findings"]], ["replay"])
                self.assertLess(abs(report["findings"][0]["saving_ns_per_step"] - (measured - repaired)) / measured, MOST_OFF)
                self.assertEqual(report["replay"]["ceiling"]["findings"], 1)
                efficiency = report["efficiency"]
                self.assertAlmostEqual(efficiency["load_balance"] * efficiency["serialisation"] * efficiency["transfer"], efficiency["parallel"], places=6)

    def test_what_cannot_be_done_is_refused_with_what_can(self):
        run = self.played("ddp-none-two-ranks")
        for change, hint in (("faster", "no-stalls"), ("balance:ranks=7", "0 to 1"), ("speed:factor=2,communicator=99", "communicators:"), ("speed:factor=x", "syntax:")):
            result = self.run_plain(RANKSCOPE, "whatif", run, "--change", change)
            self.assertEqual(result.returncode, 2, change)
            self.assertIn(hint, result.stderr.decode(), change)
            self.assertEqual(result.stdout, b"")
        self.assertEqual(self.run_plain(RANKSCOPE, "whatif", run).returncode, 2)
        listed = self.run_plain(RANKSCOPE, "whatif", "--list")
        self.assertEqual(listed.returncode, 0)
        self.assertIn(b"balance", listed.stdout)


if __name__ == "__main__":
    unittest.main()
