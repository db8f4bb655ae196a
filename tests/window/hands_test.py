#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real window under Xvfb, driven by xdotool as a hand would: zoom, pan, select, click a finding and land on its evidence, search."""

import sqlite3
import time
import unittest

from real_window import RealWindowTest, skip_without_display


class Hands(RealWindowTest):
    def setUp(self):
        self.start_display()
        self.run_folder = self.run_of("ddp-slow-rank")
        self.open_window(self.run_folder)
        self.wait(lambda state: state["findings"])

    def test_zoom_keeps_what_is_under_the_pointer_and_back_undoes_it(self):
        before = self.state()
        self.assertEqual(before["visible"], before["whole"])
        self.hover(0.25, 0.6)
        self.key("w", "w", "w")
        near = self.wait(lambda state: self.span(state) < self.span(before) / 3)
        self.assertAlmostEqual(self.time_at(near, 0.25), self.time_at(before, 0.25), delta=0.01 * self.span(near) + self.span(before) / 400)
        self.key("d")
        self.wait(lambda state: state["visible"][0] > near["visible"][0])
        self.key("a")
        self.wait(lambda state: abs(state["visible"][0] - near["visible"][0]) < 0.02 * self.span(near))
        self.key("s")
        self.wait(lambda state: self.span(state) > 1.3 * self.span(near))
        self.key("f")
        self.wait(lambda state: state["visible"] == state["whole"])
        self.key("BackSpace")
        self.wait(lambda state: self.span(state) < self.span(before))

    def test_the_wheel_zooms_with_control(self):
        before = self.state()
        self.hover(0.5, 0.6)
        self.xdotool("keydown", "ctrl", "click", "--repeat", "4", "4", "keyup", "ctrl")
        self.wait(lambda state: self.span(state) < self.span(before) / 2)

    def test_dragging_selects_time_and_z_zooms_to_it(self):
        before = self.state()
        self.hover(0.2, 0.6)
        self.xdotool("mousedown", "1")
        self.hover(0.3, 0.6)
        self.hover(0.4, 0.6)
        self.xdotool("mouseup", "1")
        selected = self.wait(lambda state: "time_selection" in state and state["time_selection"][1] > self.time_at(before, 0.35))["time_selection"]
        self.assertAlmostEqual(selected[0], self.time_at(before, 0.2), delta=0.02 * self.span(before))
        self.key("z")
        zoomed = self.wait(lambda state: self.span(state) < self.span(before) / 2)
        self.assertEqual(zoomed["visible"], selected)

    def test_shift_and_drag_moves(self):
        self.key("w", "w", "w")
        near = self.wait(lambda state: self.span(state) < (state["whole"][1] - state["whole"][0]) / 3)
        self.hover(0.6, 0.6)
        self.xdotool("keydown", "shift", "mousedown", "1")
        self.hover(0.5, 0.6)
        self.hover(0.4, 0.6)
        self.xdotool("mouseup", "1", "keyup", "shift")
        moved = self.wait(lambda state: state["visible"][0] > near["visible"][0])
        self.assertAlmostEqual(moved["visible"][0] - near["visible"][0], 0.2 * self.span(near), delta=0.05 * self.span(near))

    def test_the_minimap_moves_what_is_in_view(self):
        self.key("w", "w", "w", "w")
        near = self.wait(lambda state: self.span(state) < (state["whole"][1] - state["whole"][0]) / 4)
        left, top, width, height = near["minimap"]["picture"]
        middle = lambda state: (sum(state["visible"]) / 2 - state["whole"][0]) / (state["whole"][1] - state["whole"][0])
        self.xdotool("mousemove", "--window", self.id, left + width * 8 // 10, top + height // 2, "click", "1")
        there = self.wait(lambda state: abs(middle(state) - 0.8) < 0.02)
        self.assertAlmostEqual(self.span(there), self.span(near), delta=2)
        x, _, frame, _ = there["minimap"]["frame"]
        self.assertTrue(x <= left + width * 0.8 <= x + frame, there["minimap"])
        # Held by the frame and drawn to the left.
        self.xdotool("mousedown", "1")
        for share in (7, 5, 3):
            self.xdotool("mousemove", "--window", self.id, left + width * share // 10, top + height // 2)
        self.xdotool("mouseup", "1")
        self.wait(lambda state: abs(middle(state) - 0.3) < 0.02)
        self.key("BackSpace")
        self.wait(lambda state: abs(middle(state) - 0.8) < 0.02)

    def test_a_click_on_a_label_opens_the_rank(self):
        row = next(row for row in self.state()["rows"] if row["label"] == "rank 0")
        self.xdotool("mousemove", "--window", self.id, "60", row["y"], "click", "1")
        self.wait(lambda state: any("compute" in row["label"] and row["rank"] == 0 for row in state["rows"]))
        self.hover(0.5, 0.5)
        self.key("p")

    def test_a_click_on_a_finding_lands_on_its_evidence(self):
        state = self.state()
        title = next(title for title in state["findings"] if title.startswith("RS301"))
        x, y, width, height = state["findings"][title]
        self.xdotool("mousemove", "--window", self.id, x + width // 2, y + height // 2, "click", "1")
        there = self.wait(lambda state: "selected" in state and state["marks"] > 0)
        chosen = there["selected"]
        with sqlite3.connect(f"file:{self.run_folder / 'trace.db'}?mode=ro", uri=True) as database:
            # A collective is shown by its kernels.
            evidence = database.execute("SELECT count(*) FROM finding f JOIN finding_evidence e ON e.finding_id = f.id "
                                        "JOIN collective_member m ON e.table_name = 'collective' AND m.collective_id = e.row_id AND m.rank = e.rank "
                                        "WHERE f.diagnosis = 'RS301' AND ? = 'kernel' AND m.kernel_id = ?", (chosen["table"], chosen["row"])).fetchone()[0]
        self.assertEqual(evidence, 1, chosen)
        self.assertGreaterEqual(chosen["time"][0], there["visible"][0])
        self.assertLessEqual(chosen["time"][1], there["visible"][1])
        left, top, width, height = there["lanes"]
        self.assertTrue(top <= chosen["area"][1] <= top + height, (chosen["area"], there["lanes"]))
        # It is a collective: its members on the other ranks are shown with it.
        self.wait(lambda state: state["flows"] > 0)

    def test_search_goes_to_what_it_finds(self):
        self.key("slash")
        time.sleep(0.3)
        self.xdotool("type", "--delay", "30", "nccl.*")
        self.xdotool("key", "Return")
        found = self.wait(lambda state: "selected" in state)
        self.assertIn("nccl", found["selected"]["name"].lower())
        self.assertGreater(found["hits"], 1)   # all that was found is marked

    def search_for(self, expression):
        self.key("slash")
        time.sleep(0.3)
        self.xdotool("type", "--delay", "30", expression)
        self.xdotool("key", "Return")
        return self.wait(lambda state: "selected" in state)

    def test_f3_goes_from_hit_to_hit(self):
        first = self.search_for("layerNorm")["selected"]
        self.xdotool("key", "F3")
        second = self.wait(lambda state: state["selected"]["row"] != first["row"])["selected"]
        self.assertGreaterEqual(second["time"][0], first["time"][0])
        self.xdotool("key", "F3")
        self.wait(lambda state: state["selected"]["row"] not in (first["row"], second["row"]))
        self.xdotool("key", "shift+F3")
        self.wait(lambda state: state["selected"]["row"] == second["row"])

    def test_brackets_follow_the_flow_to_the_launch_and_back(self):
        kernel = self.search_for("layerNorm")["selected"]
        self.assertEqual(kernel["table"], "kernel")
        self.xdotool("key", "Escape")   # the keyboard is the lanes' again
        self.wait(lambda state: state["flows"] > 0)
        self.key("bracketleft")
        launch = self.wait(lambda state: state["selected"]["table"] == "api_call" and state["flows"] > 0)["selected"]
        with sqlite3.connect(f"file:{self.run_folder / 'trace.db'}?mode=ro", uri=True) as database:
            launched = database.execute("SELECT k.id FROM kernel k JOIN api_call a ON a.rank = k.rank AND a.correlation_id = k.correlation_id WHERE a.id = ?", (launch["row"],)).fetchall()
        self.assertIn((kernel["row"],), launched)
        self.key("bracketright")
        self.wait(lambda state: state["selected"]["table"] == "kernel" and state["selected"]["row"] == kernel["row"])

    def rank_row(self, rank):
        return next(row for row in self.state()["rows"] if row["rank"] == rank)

    def choose(self, number):
        """From the menu that a right click has opened."""
        time.sleep(0.3)
        self.xdotool("key", *["Down"] * number, "Return")

    def test_the_context_menu_pins_and_hides(self):
        self.move_to(60, self.rank_row(1)["y"])
        self.xdotool("click", "3")
        self.choose(1)
        pinned = self.wait(lambda state: state["pinned"] == [1])
        self.move_to(60, next(row for row in pinned["rows"] if row["rank"] == 2)["y"])
        self.xdotool("click", "3")
        self.choose(2)
        self.wait(lambda state: state["hidden"] == 1 and all(row["rank"] != 2 for row in state["rows"]))
        self.move_to(60, self.rank_row(3)["y"])
        self.xdotool("click", "3")
        self.choose(3)
        self.wait(lambda state: state["hidden"] == 0 and any(row["rank"] == 2 for row in state["rows"]))

    def test_a_rank_is_dragged_to_another_place(self):
        order = lambda state: [row["rank"] for row in state["rows"] if row["rank"] in (0, 1)]
        self.assertEqual(order(self.state()), [0, 1])
        self.move_to(60, self.rank_row(1)["y"])
        self.xdotool("mousedown", "1")
        self.move_to(62, self.rank_row(1)["y"] - 8)
        self.move_to(62, self.rank_row(0)["y"])
        self.xdotool("mouseup", "1")
        self.wait(lambda state: order(state) == [1, 0])

    def test_the_border_of_the_labels_is_dragged(self):
        before = self.state()
        left, top, width, height = before["lanes"]
        self.move_to(left, top + height // 2)
        self.xdotool("mousedown", "1")
        self.move_to(left + 40, top + height // 2)
        self.move_to(left + 90, top + height // 2)
        self.xdotool("mouseup", "1")
        wide = self.wait(lambda state: state["label_width"] == before["label_width"] + 90)
        self.assertEqual(wide["lanes"][0], left + 90)
        self.assertEqual(wide["lanes"][2], width - 90)
        self.assertEqual(wide["visible"], before["visible"])
        picture = self.wait(lambda state: state["minimap"]["picture"][0] == before["minimap"]["picture"][0] + 90)["minimap"]["picture"]
        self.assertEqual(picture[0], wide["lanes"][0], "the minimap lies over the lanes")
        self.assertNotIn("time_selection", wide)
        self.xdotool("mousedown", "1")
        self.move_to(5, top + height // 2)
        self.xdotool("mouseup", "1")
        self.wait(lambda state: 0 < state["label_width"] < before["label_width"])

    def test_a_finding_says_what_to_look_at_until_it_is_left(self):
        self.click_on(next(area for title, area in self.state()["findings"].items() if title.startswith("RS301")))
        there = self.wait(lambda state: state["marks"] > 0)
        self.assertIn("rank 2", there["caption"])
        self.hover(0.5, 0.95)
        self.xdotool("click", "1")
        self.key("Escape")
        self.wait(lambda state: state["marks"] == 0 and "caption" not in state)


class HighDensity(RealWindowTest):
    """Two pixels of the screen for one of the window."""
    scale = 2

    def setUp(self):
        self.start_display()
        self.display["QT_SCALE_FACTOR"] = "2"
        self.open_window(self.run_of("ddp-slow-rank"))
        self.wait(lambda state: state["findings"] and state["device_pixel_ratio"] == 2)

    def test_hands_hit_what_they_point_at(self):
        before = self.state()
        self.hover(0.2, 0.6)
        self.xdotool("mousedown", "1")
        self.hover(0.3, 0.6)
        self.hover(0.4, 0.6)
        self.xdotool("mouseup", "1")
        selected = self.wait(lambda state: "time_selection" in state and state["time_selection"][1] > self.time_at(before, 0.35))["time_selection"]
        self.assertAlmostEqual(selected[0], self.time_at(before, 0.2), delta=0.02 * self.span(before))
        self.assertAlmostEqual(selected[1], self.time_at(before, 0.4), delta=0.02 * self.span(before))
        self.click_on(next(area for title, area in self.state()["findings"].items() if title.startswith("RS301")))
        there = self.wait(lambda state: "selected" in state and state["marks"] > 0)
        # What is drawn there is what is selected there.
        self.wait(lambda state: "caption" in state)
        self.hover(0.5, 0.97)  # on no event: below the lanes that stay above while the finding is looked at
        self.xdotool("click", "1")
        after = self.wait(lambda state: "selected" not in state)
        x, y, width, height = there["selected"]["area"]
        y += after["lanes"][1] - there["lanes"][1]  # the caption has come since, above the lanes
        self.move_to(x + width // 2, y + height // 2)
        self.xdotool("click", "1")
        again = self.wait(lambda state: "selected" in state)
        self.assertEqual(again["selected"]["row"], there["selected"]["row"])


if __name__ == "__main__":
    skip_without_display()
    unittest.main()
