#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a trace.db as text, one line per row, without what may differ between two runs of one scenario: pids, names of hosts and paths, the
command line and the wall-clock start. Two runs of a virtual job are equal when this text is.

Usage: dump_trace.py TRACE.db"""

import sqlite3
import sys

MASKED = {
    "process": {"pid", "parent_pid", "executable", "capture_file"},
    "thread": {"tid"},
    "host": {"name", "boot_id"},
    "loss": {"file"},
}
MASKED_META = {"start_unix_ns", "run_name", "command"}


def masked_row(table, row):
    hidden = MASKED.get(table, set())
    if table == "meta" and row["key"] in MASKED_META:
        hidden = {"value"}
    return " ".join(f"{column}={'*' if column in hidden and row[column] is not None else row[column]!r}" for column in row.keys())


def dump(path):
    """Lines of all tables in a fixed order."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")]
    lines = []
    for table in tables:
        key = ", ".join(column["name"] for column in connection.execute(f'PRAGMA table_info("{table}")') if column["pk"]) or "rowid"
        lines += [f"{table}: {masked_row(table, row)}" for row in connection.execute(f'SELECT * FROM "{table}" ORDER BY {key}')]
    connection.close()
    return lines


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print("\n".join(dump(sys.argv[1])))
