#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Manual pages, desktop file and icon: well-formed, complete, and installed where systems look for them."""

import configparser
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANKSCOPE = os.environ.get("RANKSCOPE_BINARY", "rankscope")
BUILD = os.environ.get("RANKSCOPE_BUILD")
DESKTOP = ROOT / "gui" / "desktop"
MAN = ROOT / "docs" / "man"


def help_of(*verb):
    return subprocess.run([RANKSCOPE, *verb, "--help"], check=True, capture_output=True, text=True).stdout


def page(name):
    return (MAN / name).read_text().replace("\\-", "-")


class Manual(unittest.TestCase):
    def test_every_verb_has_its_line(self):
        verbs = re.findall(r"^  ([a-z]+)  ", help_of(), re.MULTILINE)
        self.assertIn("run", verbs)
        for verb in verbs:
            self.assertIn(f"\n.B {verb}\n", page("rankscope.1"), f"docs/man/rankscope.1 does not name the verb {verb}")

    def test_every_option_of_view_is_explained(self):
        options = re.findall(r"^  (?:-\w,)?(--[a-z-]+)", help_of("view"), re.MULTILINE)
        self.assertIn("--goto", options)
        for option in options:
            self.assertRegex(page("rankscope-view.1"), rf"\n\.(B|BI|BR) .*{option}\b", f"docs/man/rankscope-view.1 does not explain {option}")

    def test_formatting_raises_no_warning(self):
        if not shutil.which("groff"):
            self.skipTest("groff is not installed")
        for name in ("rankscope.1", "rankscope-view.1"):
            result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", str(MAN / name)], capture_output=True, text=True)
            self.assertEqual((result.returncode, result.stderr), (0, ""), name)


class Desktop(unittest.TestCase):
    def test_desktop_file(self):
        entries = configparser.ConfigParser(interpolation=None)
        entries.optionxform = str
        entries.read(DESKTOP / "rankscope.desktop")
        entry = entries["Desktop Entry"]
        self.assertEqual(entry["Type"], "Application")
        self.assertEqual(entry["Exec"].split()[:2], ["rankscope", "view"])
        self.assertTrue((DESKTOP / f"{entry['Icon']}.svg").exists())
        if shutil.which("desktop-file-validate"):
            subprocess.run(["desktop-file-validate", DESKTOP / "rankscope.desktop"], check=True)

    def test_icon(self):
        icon = xml.etree.ElementTree.parse(DESKTOP / "rankscope.svg").getroot()
        self.assertEqual(icon.tag, "{http://www.w3.org/2000/svg}svg")
        self.assertEqual(icon.get("viewBox"), "0 0 128 128")

    def test_all_is_installed_where_systems_look(self):
        if not BUILD:
            self.skipTest("no build tree named")
        with tempfile.TemporaryDirectory() as prefix:
            for component in ("documentation", "desktop"):
                subprocess.run(["cmake", "--install", BUILD, "--component", component, "--prefix", prefix], check=True, capture_output=True)
            self.assertTrue((pathlib.Path(prefix) / "share/man/man1/rankscope-view.1").exists())
            with_window = (pathlib.Path(BUILD) / "libexec/rankscope/rankscope-view").exists()
            for file in ("share/applications/rankscope.desktop", "share/icons/hicolor/scalable/apps/rankscope.svg"):
                self.assertEqual((pathlib.Path(prefix) / file).exists(), with_window, file)


if __name__ == "__main__":
    unittest.main()
