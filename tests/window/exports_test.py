#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports of the view: the table holds the events in view, pictures that scale hold shapes and texts; and the same from the menu of a real window."""

import csv
import os
import pathlib
import shutil
import sqlite3
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

from real_window import RealWindowTest
from recorded_run import RANKSCOPE

SVG = "{http://www.w3.org/2000/svg}"
TABLES = ("kernel", "memcpy", "memset", "nvtx", "api_call", "nccl_call", "step")


class Exports(RealWindowTest):
    def read_csv(self, path):
        with open(path, newline="") as file:
            return list(csv.DictReader(file))

    def export(self, name, *arguments):
        file = self.folder / name
        result = self.view(*arguments, "--export", file)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        return file

    def test_the_table_holds_every_event_in_view(self):
        run = self.run_of("ddp-slow-rank")
        events = self.read_csv(self.export("all.csv", run))
        with sqlite3.connect(f"file:{run / 'trace.db'}?mode=ro", uri=True) as database:
            for table in TABLES:
                rows = {(row[0], row[1], row[2]) for row in database.execute(
                    f"SELECT {'step' if table == 'step' else 'id'}, start_ns, coalesce(dur_ns, 0) FROM {table}")}
                shown = {(int(event["row"]), int(event["start_ns"]), int(event["duration_ns"])) for event in events if event["table"] == table}
                self.assertTrue(shown <= rows, table)
                if table in ("kernel", "memcpy", "nccl_call"):
                    self.assertEqual(shown, rows, table)
        self.assertEqual({event["rank"] for event in events}, {"0", "1", "2", "3"})
        self.assertTrue(any("nccl" in event["name"] for event in events))

    def test_the_table_of_a_finding_holds_its_step_only(self):
        run = self.run_of("ddp-slow-rank")
        whole, near = self.read_csv(self.export("whole.csv", run)), self.read_csv(self.export("near.csv", run, "--goto", "RS301"))
        self.assertLess(len(near), len(whole) / 2)
        steps = {event["row"] for event in near if event["table"] == "step"}
        self.assertTrue(1 <= len(steps) <= 3, steps)

    def test_two_runs_are_told_apart(self):
        events = self.read_csv(self.export("two.csv", self.run_of("ddp-slow-rank"), self.run_of("ddp-message-storm")))
        self.assertEqual({event["run"] for event in events}, {"A", "B"})

    def test_what_is_no_regular_file_stays_what_it_is(self):
        run = self.run_of("ddp-slow-rank")
        for ending in ("csv", "png", "svg"):
            link, target = self.folder / f"link.{ending}", self.folder / f"target.{ending}"
            link.symlink_to(target.name)
            self.export(link.name, run)
            self.assertTrue(link.is_symlink(), ending)
            self.assertGreater(target.stat().st_size, 1000, ending)
            pipe = self.folder / f"pipe.{ending}"
            os.mkfifo(pipe)
            through = self.folder / f"through.{ending}"
            with open(through, "wb") as file:
                reader = subprocess.Popen(["cat", pipe], stdout=file)
            self.export(pipe.name, run)
            self.assertEqual(reader.wait(timeout=60), 0)
            self.assertTrue(pipe.is_fifo(), ending)
            self.assertGreater(through.stat().st_size, 1000, ending)

    def test_pictures_that_scale_are_shapes_and_texts(self):
        picture = ElementTree.parse(self.export("view.svg", self.run_of("ddp-slow-rank"), "--goto", "RS301")).getroot()
        for image in picture.iter(SVG + "image"):   # the icon in a box at most
            self.assertLessEqual(float(image.get("width")), 32)
        self.assertGreater(len(list(picture.iter(SVG + "rect"))) + len(list(picture.iter(SVG + "path"))), 100)
        text = " ".join("".join(element.itertext()) for element in picture.iter(SVG + "text"))
        for expected in ("rank 2", "the rank to fix", "stream 14 communication"):
            self.assertIn(expected, text)

    def test_the_window_as_a_picture_that_scales(self):
        file = self.folder / "window.svg"
        command = [RANKSCOPE, "view", self.run_of("ddp-slow-rank"), "--screenshot", file, "--panel", "stragglers", "--dark", "--size", "1200x800"]
        result = subprocess.run(list(map(str, command)), env=self.environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(ElementTree.parse(file).getroot().get("viewBox"), "0 0 1200 800")

    def test_what_cannot_be_written_is_said_and_leaves_nothing(self):
        run = self.run_of("ddp-slow-rank")
        for name, code, words in (("no/such/folder.csv", 3, "cannot be written"), ("no/such/folder.svg", 3, "cannot be written"), ("view.docx", 2, "end in .csv"), ("view", 2, "end in .csv")):
            with self.subTest(name=name):
                result = self.view(run, "--export", self.folder / name)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertIn(words, result.stderr)
        self.assertEqual([path for path in pathlib.Path(self.folder).iterdir() if path.suffix in (".part", ".docx")], [])
        result = self.view(run, "--panel", "nonsense", "--screenshot", self.folder / "x.png")
        self.assertEqual(result.returncode, 2)
        self.assertIn("stragglers", result.stderr)

    def test_two_files_of_one_name_are_refused(self):
        picture = self.folder / "twice.png"
        result = self.view(self.run_of("ddp-slow-rank"), "--screenshot", picture, "--export", f"{self.folder}/./twice.png")
        self.assertEqual((result.returncode, result.stderr), (2, "rankscope: error: --screenshot and --export name the same file: one would replace the other\n"))
        self.assertFalse(picture.exists())

    @unittest.skipUnless(shutil.which("Xvfb") and shutil.which("xdotool"), "needs Xvfb and xdotool")
    def test_from_the_menu_of_a_real_window(self):
        self.start_display()
        self.open_window(self.run_of("ddp-slow-rank"))
        file = self.folder / "in-sight.csv"  # no e: of the key that opens the dialog the toolkit may drop the next press
        self.key("ctrl+e")
        dialog = self.xdotool("search", "--sync", "--onlyvisible", "--name", "Export what the timeline shows").split()[-1]
        self.xdotool("windowfocus", "--sync", dialog, "type", "--delay", "20", file.name)  # the dialog begins in the folder the window was started in
        self.xdotool("key", "Return")
        self.wait(lambda state: file.exists())
        self.assertGreater(len(self.read_csv(file)), 1000)


if __name__ == "__main__":
    unittest.main()
