#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two runs in a real window: the same step begins at the same place, one follows the other's hands, differences lead to both."""

import json
import re
import subprocess
import unittest

from real_window import RealWindowTest, skip_without_display
from recorded_run import RANKSCOPE


class TwoRuns(RealWindowTest):
    def setUp(self):
        self.start_display()
        self.open_window(self.run_of("ddp-slow-rank"), self.run_of("ddp-message-storm"))
        self.both = self.wait(lambda state: state["second"]["loaded"] and state["second"]["differences"] and "anchor" in state["second"])

    def assert_aligned(self, state):
        a, b, _ = state["second"]["anchor"]
        second = state["second"]["visible"]
        self.assertEqual(a - state["visible"][0], b - second[0], state["second"])
        self.assertEqual(self.span(state), second[1] - second[0])

    def test_a_step_begins_at_the_same_place_in_both_wherever_the_hand_goes(self):
        self.assert_aligned(self.both)
        self.hover(0.3, 0.4)
        self.key("w", "w", "w", "w", "w")
        near = self.wait(lambda state: self.span(state) < self.span(self.both) / 7)
        self.assert_aligned(near)
        self.key("d", "d", "d", "d", "d", "d")
        moved = self.wait(lambda state: state["second"]["anchor"][2] != near["second"]["anchor"][2])
        self.assert_aligned(moved)
        # The second run leads as well.
        left, top, width, height = moved["second"]["lanes"]
        self.xdotool("mousemove", "--window", self.id, left + width // 2, top + height // 2, "click", "1", "key", "f")
        whole = self.wait(lambda state: self.span(state) > 5 * self.span(moved))
        self.assert_aligned(whole)
        self.xdotool("keydown", "ctrl", "click", "--repeat", "5", "4", "keyup", "ctrl")
        self.assert_aligned(self.wait(lambda state: self.span(state) < self.span(whole) / 3))

    def test_time_selected_in_one_is_selected_in_the_other_with_statistics_of_both(self):
        self.hover(0.2, 0.5)
        self.xdotool("mousedown", "1")
        self.hover(0.25, 0.5)
        self.hover(0.3, 0.5)
        self.xdotool("mouseup", "1")
        both = self.wait(lambda state: "time_selection" in state and "time_selection" in state["second"] and
                         all("from" in state["statistics"].get(f"range-dock-{letter}", "") for letter in "ab"))
        a, b = both["time_selection"], both["second"]["time_selection"]
        self.assertLess(a[0], a[1])
        self.assertLess(b[0], b[1])
        # The second run leads as well, and one Escape is enough.
        left, top, width, height = both["second"]["lanes"]
        self.move_to(left + width // 2, top + height // 2)
        self.xdotool("mousedown", "1")
        self.move_to(left + width * 6 // 10, top + height // 2)
        self.move_to(left + width * 7 // 10, top + height // 2)
        self.xdotool("mouseup", "1")
        moved = self.wait(lambda state: state["second"].get("time_selection", b)[0] > b[0] and state["time_selection"][0] > a[0])
        self.assertGreater(moved["time_selection"][1], moved["time_selection"][0])
        self.key("Escape")
        self.wait(lambda state: "time_selection" not in state and "time_selection" not in state["second"])

    def test_differences_are_listed_and_lead_to_the_evidence(self):
        lines = {line["what"]: line for line in self.both["second"]["differences"] if isinstance(line, dict)}
        gone = next(line for what, line in lines.items() if what.startswith("RS301"))
        new = next(line for what, line in lines.items() if what.startswith("RS202"))
        self.assertEqual((gone["change"], new["change"]), ("gone", "new"))
        said = subprocess.run([RANKSCOPE, "-q", "compare", "--format", "json", self.run_of("ddp-slow-rank"), self.run_of("ddp-message-storm")],
                              check=True, capture_output=True, text=True, env=self.environment)
        comparison = json.loads(said.stdout)
        for sentence in [comparison["step_time"]["reason"], *(cause["text"] for cause in comparison["causes"])]:
            self.assertIn(sentence, self.both["second"]["differences_head"])
        self.assertTrue(any(re.fullmatch(r"-[0-9.]+ ms  compute of all ranks", what) for what in lines), list(lines))
        self.click_on(gone["area"])
        there = self.wait(lambda state: "selected" in state and state["marks"] > 0)
        self.assertGreaterEqual(there["selected"]["time"][0], there["visible"][0])
        self.assert_aligned(there)


if __name__ == "__main__":
    skip_without_display()
    unittest.main()
