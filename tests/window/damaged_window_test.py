#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a real window says of a file that is damaged, or held by another program."""

import shutil
import sqlite3
import unittest

from real_window import RealWindowTest, skip_without_display


class DamagedWindow(RealWindowTest):
    def setUp(self):
        self.start_display()
        self.copy = self.folder / self._testMethodName / "trace.db"
        self.copy.parent.mkdir()
        shutil.copy(self.run_of("ddp-slow-rank") / "trace.db", self.copy)

    def change(self, statement):
        with sqlite3.connect(self.copy) as database:
            database.execute(statement)

    def test_a_rank_of_which_events_are_missing_says_so(self):
        self.change("DELETE FROM kernel WHERE rank = 2")
        self.open_window(self.copy)
        damaged = self.wait(lambda state: state["problems"])
        for row in damaged["rows"]:
            self.assertEqual(row["trouble"], "not all of it can be read: table kernel holds 0 of its 1029 events" if row["rank"] == 2 else "", row)
        self.assertEqual(len(damaged["problems"]), 1)
        self.assertIn("rank 2: not all of it can be read", damaged["problems"][0])

    def test_a_page_that_is_gone_is_said_at_the_rank_and_once(self):
        with sqlite3.connect(self.copy) as database:
            root, page = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'kernel'").fetchone()[0], database.execute("PRAGMA page_size").fetchone()[0]
        with open(self.copy, "r+b") as file:
            file.seek((root - 1) * page)
            file.write(b"\x7f" * page)
        self.open_window(self.copy)
        damaged = self.wait(lambda state: state["problems"])
        for row in damaged["rows"]:
            if row["rank"] >= 0:
                self.assertTrue(row["trouble"].startswith("not readable: table kernel: "), row)
        self.assertEqual(len(damaged["problems"]), 1, damaged["problems"])
        self.assertIn("ranks 0-3: not readable", damaged["problems"][0])

    def test_a_locked_file_is_waited_for_until_it_is_free(self):
        database = sqlite3.connect(self.copy, isolation_level=None)
        database.execute("BEGIN EXCLUSIVE")
        try:
            self.start_window(self.copy)
            self.wait(lambda state: "is locked by another program" in state["message"])
        finally:
            database.execute("ROLLBACK")
            database.close()
        self.wait(lambda state: state["loaded"] and state["rows"])
        self.assertEqual(self.state()["problems"], [])


if __name__ == "__main__":
    skip_without_display()
    unittest.main()
