#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every chart, in a real window: a point or cell of it leads to the timeline."""

import unittest

from real_window import RealWindowTest, skip_without_display

CHARTS = (("ddp-slow-rank", "stragglers"), ("ddp-slow-rank", "step-times"), ("ddp-slow-rank", "matrix"), ("ddp-slow-rank", "bandwidth"), ("ddp-slow-rank", "roofline"),
          ("pp-few-micro-batches", "pipeline"))


class Charts(RealWindowTest):
    def test_a_point_or_cell_of_each_leads_to_the_timeline(self):
        self.start_display()
        for trace, name in CHARTS:
            with self.subTest(chart=name):
                self.forget_settings()
                self.open_window(self.run_of(trace), "--panel", name)
                before = self.wait(lambda state: f"{name}-dock" in state["charts"])
                self.assertNotIn("selected", before)
                x, y = before["charts"][f"{name}-dock"]
                self.xdotool("mousemove", "--window", self.id, x, y, "click", "1")
                there = self.wait(lambda state: "selected" in state or state["visible"] != before["visible"])
                self.assertTrue(any(row["rank"] >= 0 and not row["label"].startswith("rank") for row in there["rows"]), "the rank is open")
                if "selected" in there:
                    self.assertLess(there["visible"][0], there["selected"]["time"][1])
                    self.assertGreater(there["visible"][1], there["selected"]["time"][0])
                self.close_window()


if __name__ == "__main__":
    skip_without_display()
    unittest.main()
