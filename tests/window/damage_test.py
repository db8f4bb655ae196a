#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damaged, hostile and odd databases: the window says what is wrong or shows what can be read, and never crashes or hangs."""

import csv
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import unittest

from recorded_run import RANKSCOPE, TIMEOUT_S, RecordedRunTest

BYTES_ROUNDS = 12
ROWS_ROUNDS = 12
EVENT_TABLES = ("proxy_op", "nccl_call", "api_call", "nvtx", "kernel", "memcpy", "memset", "synchronization", "cuda_event", "allocation")


class Damage(RecordedRunTest):
    def setUp(self):
        self.original = self.run_of("ddp-slow-rank") / "trace.db"
        self.copy = self.folder / self._testMethodName / "damaged.db"   # apart: SQLite's own files beside it belong to it
        self.copy.parent.mkdir()
        shutil.copy(self.original, self.copy)

    def check(self, what):
        picture = self.folder / "damaged.png"
        picture.unlink(missing_ok=True)
        result = self.view(self.copy, "--screenshot", picture, "--size", "800x500")
        self.assertIn(result.returncode, (0, 3), f"{what}: {result.returncode} {result.stderr}")
        if result.returncode == 3:
            self.assertIn("rankscope: error: ", result.stderr, what)
        else:
            self.assertTrue(picture.exists(), what)
        return result

    def change(self, *statements):
        database = sqlite3.connect(self.copy)
        database.execute("PRAGMA foreign_keys = OFF")
        for statement in statements:
            database.execute(*statement) if isinstance(statement, tuple) else database.execute(statement)
        database.commit()
        database.close()

    def test_random_bytes(self):
        for seed in range(BYTES_ROUNDS):
            numbers = random.Random(seed)
            data = bytearray(self.original.read_bytes())
            for _ in range(numbers.choice((1, 10, 200, 5000))):
                data[numbers.randrange(0 if seed % 3 == 0 else 4096, len(data))] = numbers.randrange(256)
            self.copy.write_bytes(data)
            self.check(f"bytes, seed {seed}")

    def test_random_rows(self):
        tables = ("kernel", "memcpy", "api_call", "nvtx", "nccl_call", "extent", "step", "rank", "host", "stream", "thread", "finding", "finding_evidence", "string",
                  "collective_member", "collective", "clock_model", "loss", "idle_gap")
        values = (None, -1, 0, 2**31, 2**62, -2**62, "text", "\u202e\u0007" * 50, 1.5)
        for seed in range(ROWS_ROUNDS):
            numbers = random.Random(100 + seed)
            shutil.copy(self.original, self.copy)
            database = sqlite3.connect(self.copy)
            database.execute("PRAGMA ignore_check_constraints = ON")
            for _ in range(30):
                table = numbers.choice(tables)
                columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
                try:
                    database.execute(f"UPDATE {table} SET {numbers.choice(columns)} = ? WHERE rowid % ? = 0" if table not in ("extent", "step", "finding_evidence", "collective_member")
                                     else f"UPDATE {table} SET {numbers.choice(columns)} = ? WHERE abs(rank) % ? = 0", (numbers.choice(values), numbers.choice((1, 2, 7))))
                except sqlite3.Error:
                    pass   # what the file itself forbids cannot be in it
            database.commit()
            database.close()
            self.check(f"rows, seed {seed}")

    def test_truncated_and_empty(self):
        data = self.original.read_bytes()
        for size in (0, 1, 100, 4096, len(data) // 2, len(data) - 1):
            self.copy.write_bytes(data[:size])
            result = self.check(f"{size} bytes")
            self.assertEqual(result.returncode, 3, size)
            self.assertNotIn("SQLite file", result.stderr, size)

    def test_another_version_is_refused(self):
        self.change("PRAGMA user_version = 999", "UPDATE meta SET value = '999' WHERE key = 'schema_version'")
        result = self.check("version 999")
        self.assertEqual(result.returncode, 3)
        self.assertIn("version", result.stderr)

    def test_no_steps_no_events_no_ranks(self):
        self.change("DELETE FROM step", "DELETE FROM finding", "DELETE FROM finding_evidence", "DELETE FROM attribution")
        self.assertEqual(self.check("no steps").returncode, 0)
        self.change(*[f"DELETE FROM {table}" for table in EVENT_TABLES + ("extent",)])
        self.assertEqual(self.check("no events").returncode, 0)
        self.change("DELETE FROM rank", "DELETE FROM host")
        self.assertEqual(self.check("no ranks").returncode, 0)

    def test_a_file_that_would_lack_events_is_not_written(self):
        for damage, said in (("DELETE FROM extent", "table extent gives some events to no rank (kernel, memcpy"),
                             ("DELETE FROM extent WHERE table_name = 'kernel' AND rank = 2", "table extent gives some events to no rank (kernel)"),
                             ("UPDATE extent SET last_id = last_id + 9 WHERE rank = 0", "two ranks"),
                             ("DELETE FROM kernel WHERE rank = 1", "rank 1: not all of it can be read: table kernel holds 0 of its 1029 events"),
                             ("UPDATE kernel SET start_ns = 'soon' WHERE rank > 1", "ranks 2-3: not all of it can be read: 1029 of the 1029 events in table kernel"),
                             ("DELETE FROM string WHERE id = 1", "table string"),
                             ("UPDATE step SET dur_ns = 'long'", "table step"),
                             ("UPDATE kernel SET dur_ns = -dur_ns WHERE id % 1029 = 5", "ranks 0-3: not all of it can be read: 1 of the 1029 events in table kernel have a negative duration"),
                             ("UPDATE step SET dur_ns = -dur_ns WHERE rank = 0 AND step = 1", "1 row of table step has a negative duration"),
                             ("UPDATE nvtx SET start_ns = -start_ns WHERE rank = 1", "begin before the event above them"),
                             ("DELETE FROM rank WHERE rank = 3", "rank that table rank does not list")):
            with self.subTest(damage=damage):
                shutil.copy(self.original, self.copy)
                self.change(damage)
                for option, name in (("--export", "part.csv"), ("--screenshot", "part.png")):
                    result = self.view(self.copy, option, self.folder / name)
                    self.assertEqual(result.returncode, 3, result.stderr)
                    self.assertIn(said, result.stderr)
                    self.assertIn("damaged", result.stderr)
                    self.assertEqual(len(result.stderr.splitlines()), len(set(result.stderr.splitlines())), "said twice")
                    self.assertFalse((self.folder / name).exists())

    def test_other_verbs_refuse_a_file_whose_events_belong_to_no_rank(self):
        written = self.folder / "refused.csv"
        for damage, said in (("DELETE FROM extent", "table extent gives some events to no rank (kernel, memcpy"),
                             ("UPDATE extent SET last_id = last_id - 3 WHERE rank = 1 AND table_name = 'kernel'", "table extent gives some events to no rank (kernel)"),
                             ("DELETE FROM nvtx WHERE rank = 1", "events that table extent promises are missing")):
            shutil.copy(self.original, self.copy)
            self.change(damage)
            for words in (("analyze", self.copy), ("compare", self.copy, self.original), ("compare", self.original, self.copy), ("export", self.copy, "--to", "csv", "-o", written)):
                with self.subTest(damage=damage, words=words):
                    result = subprocess.run([RANKSCOPE, *map(str, words)], env=self.environment, capture_output=True, text=True, timeout=TIMEOUT_S)
                    self.assertEqual(result.returncode, 3, result.stderr)
                    self.assertIn(f"rankscope: error: {self.copy}: damaged: {said}", result.stderr)
                    self.assertIn("make it again with `rankscope collect`", result.stderr)
                    self.assertFalse(written.exists())

    def test_events_too_deep_to_be_drawn_are_in_the_table(self):
        # Every range of rank 0 within the one before, every kernel of rank 1 at once: 254 and 1,029 deep.
        self.change("UPDATE nvtx SET start_ns = 1000000 + id * 10, dur_ns = 50000000 - id * 20 WHERE rank = 0", "UPDATE kernel SET start_ns = 1000000 + id, dur_ns = 50000000 WHERE rank = 1")
        table = self.folder / "deep.csv"
        result = self.view(self.copy, "--export", table)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(table, newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        database = sqlite3.connect(self.copy)
        for name in ("nvtx", "kernel"):
            rows = [row for (row,) in database.execute(f"SELECT id FROM {name} ORDER BY id")]
            self.assertEqual(sorted(int(line["row"]) for line in lines if line["table"] == name), rows)
        database.close()

    def test_what_is_missing_is_named(self):
        for damage, said in (("DROP TABLE nvtx", "table nvtx is missing"), ("DROP TABLE kernel", "table kernel is missing"), ("DROP TABLE meta", "table meta is missing"),
                             ("DROP TABLE p2p", "table p2p is missing"), ("ALTER TABLE step RENAME COLUMN dur_ns TO other", "column dur_ns of table step is missing")):
            with self.subTest(damage=damage):
                shutil.copy(self.original, self.copy)
                self.change(damage)
                result = self.view(self.copy, "--export", self.folder / "part.csv")
                self.assertEqual((result.returncode, result.stderr), (3, f"rankscope: error: {self.copy}: not a whole trace.db: {said} (make it again with `rankscope collect` or `rankscope import`)\n"))

    def test_what_is_no_file_is_refused(self):
        self.copy.unlink()
        os.mkfifo(self.copy)
        self.assertEqual(self.check("a pipe").returncode, 3)

    def test_names_of_any_kind(self):
        self.change(("UPDATE string SET text = ? WHERE id % 3 = 0", ("long " * 20_000,)), ("UPDATE string SET text = ? WHERE id % 3 = 1", ("\u05e9\u05dc\u05d5\u05dd \u202e<b>bold</b>\n\t\u0001",)),
                    ("UPDATE host SET name = ?", ("<img src=x>\u202e" * 10,)))
        self.assertEqual(self.check("names").returncode, 0)

    def test_a_thousand_ranks(self):
        self.change("INSERT INTO rank WITH RECURSIVE n(i) AS (SELECT 8 UNION ALL SELECT i + 1 FROM n WHERE i < 1023) SELECT i, NULL, NULL, NULL, NULL, 'missing' FROM n")
        self.assertEqual(self.check("1,024 ranks").returncode, 0)

    def test_one_rank(self):
        self.change(*[f"DELETE FROM {table} WHERE rank <> 2" for table in EVENT_TABLES + ("extent", "step", "rank")])
        self.assertEqual(self.check("one rank").returncode, 0)

    def test_another_process_inserts(self):
        script = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
print(database.execute("PRAGMA journal_mode = WAL").fetchone()[0], flush=True)
while True:
    database.execute("BEGIN")
    for row in range(500):
        database.execute("INSERT INTO loss (kind, severity, count, message) VALUES ('dropped', 'warning', ?, 'more')", (row,))
        database.execute("UPDATE extent SET last_id = last_id + 1 WHERE table_name = 'kernel' AND last_id = (SELECT max(id) FROM kernel)")
        database.execute("INSERT INTO kernel (id, rank, stream_id, start_ns, dur_ns, name_id, nccl) SELECT max(id) + 1, rank, stream_id, start_ns, dur_ns, name_id, nccl FROM kernel")
    database.execute("COMMIT")
"""
        writer = subprocess.Popen([sys.executable, "-c", script, self.copy], stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual(writer.stdout.readline().strip(), "wal")
            for _ in range(3):
                self.assertEqual(self.check("another process inserts").returncode, 0)
            self.assertIsNone(writer.poll(), "the writer ended")
        finally:
            writer.kill()
            writer.wait()
            writer.stdout.close()

    def test_being_written(self):
        database = sqlite3.connect(self.copy, isolation_level=None)
        database.execute("BEGIN EXCLUSIVE")
        try:
            result = self.check("locked")
            self.assertEqual(result.returncode, 3)
            waiting, error = result.stderr.splitlines()
            self.assertEqual(waiting, f"rankscope: {self.copy} is locked by another program, which writes to it: waiting for it to end, at most 10 s")
            self.assertIn("locked by another program", error)
        finally:
            database.execute("ROLLBACK")
            database.close()


if __name__ == "__main__":
    unittest.main()
