#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every statement about every recording of a real job in ../shared/data is one that expected.json judges to be true: nothing is said that is not in the table, and what
is in the table is said. The table's form is told in README.md."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

RANKSCOPE = os.environ.get("RANKSCOPE_BINARY", "rankscope")
DATA = pathlib.Path(os.environ.get("RANKSCOPE_SHARED_DATA", pathlib.Path(__file__).resolve().parents[3] / "shared/data"))
TABLE = json.loads((pathlib.Path(__file__).resolve().parent / "expected.json").read_text())
KNOWN = {"files", "map", "refused", "headline", "findings", "notes", "silent", "not_judged", "steps", "status", "why"}
KNOWN_OF_FINDING = {"id", "verdict", "ranks", "cause", "evidence", "saving_ms", "why"}


def rankscope(*arguments):
    done = subprocess.run([RANKSCOPE, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def headline(text):
    """What the report opens with, as one word of the table."""
    for word, pattern in (("nothing to analyse", r"^no device activity was recorded"), ("found", r"^\d+ findings?\. "), ("inconclusive", r"^No certain finding"),
                          ("unexplained", r"^Unexplained"), ("nothing", r"^No finding")):
        if re.search(pattern, text, re.MULTILINE):
            return word
    return "none of the known ones"


class Recordings(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_all_are_judged(self):
        there = {str(file.relative_to(DATA)) for file in DATA.rglob("*") if file.is_file() and file.parts[len(DATA.parts)] != "licences" and file.parent != DATA}
        judged = set()
        for name, entry in TABLE.items():
            judged |= {str(file.relative_to(DATA)) for file in self.files(name, entry)}
        self.assertEqual(sorted(there - judged), [], "recordings without an entry in expected.json")

    def test_the_table_is_well_formed(self):
        for name, entry in TABLE.items():
            self.assertEqual(set(entry) - KNOWN, set(), name)
            for finding in entry.get("findings", []) + entry.get("notes", []):
                self.assertEqual(set(finding) - KNOWN_OF_FINDING, set(), name)
                self.assertTrue(finding.get("why"), (name, finding))

    def files(self, name, entry):
        folder = DATA / name.partition("#")[0]
        found = [file for pattern in entry["files"] for file in sorted(folder.glob(pattern))] if "files" in entry else sorted(folder.rglob("*"))
        return [file for file in found if file.is_file()]

    def test_statements(self):
        for number, (name, entry) in enumerate(TABLE.items()):
            with self.subTest(recording=name):
                files = self.files(name, entry)
                self.assertTrue(files, "no such recording")
                if "refused" in entry:
                    self.refused(files, entry)
                else:
                    self.judged(self.imported(files, number, entry), entry)

    def refused(self, files, entry):
        for file in files:
            code, _, error = rankscope("import", "-o", pathlib.Path(self.folder.name) / "refused", "--force", file)
            self.assertNotEqual(code, 0, file)
            self.assertRegex(error, entry["refused"])

    def imported(self, files, number, entry):
        run = pathlib.Path(self.folder.name) / str(number)
        mapping = ["--map", entry["map"]] if "map" in entry else []
        code, _, error = rankscope("import", "-o", run, *mapping, *files)
        self.assertEqual(code, 0, error)
        return run

    def judged(self, run, entry):
        code, text, error = rankscope("analyze", run)
        self.assertEqual(code, entry.get("status", 0), error)
        self.assertEqual(headline(text), entry["headline"], text)
        report = json.loads(rankscope("analyze", run, "--format", "json")[1])
        if "steps" in entry:
            self.assertEqual(report["run"]["steps"], entry["steps"])
        self.assertLessEqual(set(entry.get("not_judged", [])), {open["id"] for open in report["not_judged"]})
        for kind in ("findings", "notes"):
            said = [(f["id"], f["verdict"] if kind == "findings" else "note") for f in report[kind]]
            told = [(f["id"], f.get("verdict", "note")) for f in entry.get(kind, [])]
            self.assertEqual(sorted(said), sorted(told), f"{kind} of {run.name}:\n{text}")
            for silent in entry.get("silent", {}):
                self.assertNotIn(silent, [id for id, _ in said], entry["silent"][silent])
            for expected in entry.get(kind, []):
                self.agrees(next(f for f in report[kind] if f["id"] == expected["id"]), expected)

    def agrees(self, finding, expected):
        if "ranks" in expected:
            self.assertEqual(finding["ranks"], expected["ranks"], finding)
        if "cause" in expected:
            self.assertRegex(finding["cause"], expected["cause"])
        for pattern in expected.get("evidence", []):
            self.assertRegex("\n".join(finding["evidence"]["facts"]), pattern)
        if "saving_ms" in expected:  # what the repair really gained
            low, high = (ns / 1e6 for ns in finding["saving_interval_ns"])
            self.assertLessEqual(low, expected["saving_ms"])
            self.assertGreaterEqual(high, expected["saving_ms"])


if __name__ == "__main__":
    if not DATA.is_dir():
        print(f"skipped: the recordings are not here ({DATA})")
        sys.exit(77)
    unittest.main()
