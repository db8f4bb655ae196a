# SPDX-License-Identifier: Apache-2.0
"""The table of checks: a row as soon as it is known, so that a run that is cut short leaves what it saw."""
import sys


class Table:
    def __init__(self, path, head):
        """`head`: lines about the machine, written above the rows."""
        self.path = path
        self.failed = 0
        path.write_text("\n".join([*head, "", "| area | check | result | seen |", "| --- | --- | --- | --- |", ""]))

    def row(self, area, check, result, seen):
        """`result`: ok, FAILED, or what else to say instead (not run, noted)."""
        self.failed += result == "FAILED"
        text = " ".join(str(seen).split()).replace("|", "\\|")
        with self.path.open("a") as file:
            file.write(f"| {area} | {check} | {result} | {text} |\n")
        print(f"{area:<14} {result:<7} {check}: {text}", file=sys.stderr, flush=True)

    def expect(self, area, check, holds, seen):
        self.row(area, check, "ok" if holds else "FAILED", seen)
        return holds
