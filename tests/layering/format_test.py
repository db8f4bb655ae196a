#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the layout of the sources: every file is as clang-format 14 leaves it with the repository's own .clang-format."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("injector", "collector", "analyzer", "gui", "reference", "tests")
CODE = {".h", ".hpp", ".c", ".cpp", ".cu", ".cuh"}
COMMAND = "git ls-files '*.h' '*.c' '*.cpp' '*.cu' | xargs clang-format-14 -i"


def formatter():
    """The program clang-format of version 14, or None: other versions break lines elsewhere."""
    for name in ("clang-format-14", "clang-format"):
        program = shutil.which(name)
        if not program:
            continue
        version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        if re.search(r"version 14\.", version):
            return program
    return None


def unformatted(files):
    """Those of the files that clang-format would change, with the first place in each."""
    result = subprocess.run([formatter(), "--dry-run", "--style=file", *map(str, files)], capture_output=True, text=True,
                            cwd=ROOT)
    places = {}
    changed = re.compile(r"^(.+?):(\d+):\d+: warning: code should be clang-formatted", re.MULTILINE)
    for path, line in changed.findall(result.stderr):
        places.setdefault(path, line)
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return [f"{path}, line {line}" for path, line in places.items()]


class Format(unittest.TestCase):
    def test_sources_are_formatted(self):
        paths = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*"))]
        sources = [path.relative_to(ROOT) for path in paths if path.suffix in CODE]
        self.assertGreater(len(sources), 1000)
        self.assertEqual(unformatted(sources), [], "format them with: " + COMMAND)

    def test_an_unformatted_file_is_told(self):
        with tempfile.TemporaryDirectory(dir=ROOT) as folder:
            path = pathlib.Path(folder) / "long.cpp"
            path.write_text("int  sum(int a,int b) { return a+b; }\n")
            self.assertEqual(len(unformatted([path])), 1)


if __name__ == "__main__":
    if formatter() is None:
        print("skipped: clang-format 14 is not installed (package clang-format-14)")
        sys.exit(77)
    unittest.main()
