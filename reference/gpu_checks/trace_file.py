# SPDX-License-Identifier: Apache-2.0
"""Opens a trace.db."""
import contextlib
import sqlite3


def opened(trace):
    """A trace.db, to read only; closed at the end of a `with`. Raises sqlite3.Error."""
    return contextlib.closing(sqlite3.connect(f"file:{trace}?mode=ro", uri=True))
