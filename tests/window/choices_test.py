#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is chosen for a run is there again the next time, for that run alone; the window's layout too; nothing fails where nothing can be kept."""

import unittest

from real_window import RealWindowTest, skip_without_display


class Choices(RealWindowTest):
    def setUp(self):
        self.start_display()

    def pin_and_open_rank_one(self):
        row = next(row for row in self.state()["rows"] if row["label"] == "rank 1")
        self.xdotool("mousemove", "--window", self.id, "60", row["y"], "click", "1")
        self.wait(lambda state: state["expanded"] == 1)
        self.key("p")
        return self.wait(lambda state: state["pinned"] == [1])

    def test_they_come_back_with_their_run_and_go_when_forgotten(self):
        self.open_window(self.run_of("ddp-slow-rank"))
        self.pin_and_open_rank_one()
        self.close_window()
        self.open_window(self.run_of("ddp-message-storm"))
        self.assertEqual((self.state()["pinned"], self.state()["expanded"]), ([], 0))
        self.close_window()
        self.open_window(self.run_of("ddp-slow-rank"))
        self.wait(lambda state: state["pinned"] == [1] and state["expanded"] == 1)
        self.key("alt+v", "g")
        self.wait(lambda state: state["pinned"] == [] and state["expanded"] == 0)
        self.close_window()
        self.open_window(self.run_of("ddp-slow-rank"))
        self.assertEqual(self.state()["pinned"], [])

    def test_the_filter_narrows_and_is_not_kept(self):
        self.open_window(self.run_of("ddp-slow-rank"))
        x, y, width, height = self.state()["filter_box"]
        self.xdotool("mousemove", "--window", self.id, x + 20, y + height // 2, "click", "1", "type", "--delay", "30", "node1")
        narrow = self.wait(lambda state: state["filter"] == "node1" and len(state["rows"]) == 3)
        self.assertEqual([row["label"] for row in narrow["rows"]], ["node1", "rank 2", "rank 3"])
        self.close_window()
        self.open_window(self.run_of("ddp-slow-rank"))
        self.wait(lambda state: state["filter"] == "" and len(state["rows"]) > 3)

    def test_panels_are_where_they_were_and_can_be_put_back(self):
        self.open_window(self.run_of("ddp-slow-rank"), "--panel", "stragglers")
        self.wait(lambda state: "stragglers-dock" in state["charts"])
        self.close_window()
        self.open_window(self.run_of("ddp-slow-rank"))
        self.wait(lambda state: "stragglers-dock" in state["charts"])
        self.key("alt+v", "p")
        self.wait(lambda state: not state["charts"])

    def test_the_width_of_the_labels_is_kept_for_all_runs(self):
        self.open_window(self.run_of("ddp-slow-rank"))
        before = self.state()
        left, top, width, height = before["lanes"]
        self.move_to(left, top + height // 2)
        self.xdotool("mousedown", "1")
        self.move_to(left + 40, top + height // 2)
        self.move_to(left + 90, top + height // 2)
        self.xdotool("mouseup", "1")
        self.wait(lambda state: state["label_width"] == before["label_width"] + 90)
        self.close_window()
        self.open_window(self.run_of("ddp-message-storm"))
        wide = self.wait(lambda state: state["label_width"] == before["label_width"] + 90)
        self.assertEqual(wide["minimap"]["picture"][0], wide["lanes"][0], "the minimap lies over the lanes")
        self.key("alt+v", "p")
        self.wait(lambda state: state["label_width"] == before["label_width"])
        self.close_window()
        self.open_window(self.run_of("ddp-slow-rank"))
        self.assertEqual(self.state()["label_width"], before["label_width"])

    def test_nothing_fails_where_nothing_can_be_kept(self):
        blocked = self.folder / "no-folder"
        blocked.write_text("a file where the settings folder should be")
        self.display["XDG_CONFIG_HOME"] = str(blocked)
        self.open_window(self.run_of("ddp-slow-rank"))
        self.pin_and_open_rank_one()
        self.close_window()
        self.open_window(self.run_of("ddp-slow-rank"))
        self.assertEqual(self.state()["pinned"], [])


if __name__ == "__main__":
    skip_without_display()
    unittest.main()
