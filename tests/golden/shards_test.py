#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rankscope collect --shards`: every verb tells of a trace.db with shards what it tells of one file, and refuses shards that are not those of it."""

import os
import pathlib
import shutil
import sqlite3
import unittest

from virtual_run import RANKSCOPE, SMALL, VirtualRunTest

LIBRARY = pathlib.Path(RANKSCOPE).resolve().parents[1] / "lib/rankscope/librankscope_mpi_openmpi.so"
MPIRUN = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"]
HAS_WINDOW = (pathlib.Path(RANKSCOPE).resolve().parents[1] / "libexec/rankscope/rankscope-view").exists()
HAS_MPI = shutil.which(MPIRUN[0]) is not None and LIBRARY.exists()


class Shards(VirtualRunTest):
    def setUp(self):
        super().setUp()
        self.environment["OMPI_MCA_odls_base_num_threads"] = "0"
        self.run_scenario(self.write_scenario(SMALL), "job")
        self.check_run(RANKSCOPE, "-q", "collect", "job")

    def shards(self):
        return sorted((self.folder / "job/trace.d").glob("*.db"))

    def collect(self, processes=1):
        mpirun = [*MPIRUN, "-n", processes] if processes > 1 else []
        self.check_run(*mpirun, RANKSCOPE, "-q", "collect", "job", "--shards")
        self.assertEqual(len(self.shards()), processes)

    def told(self):
        """What the verbs tell of the run."""
        outputs = [self.check_run(RANKSCOPE, "-q", *words).stdout for words in (
            ["analyze", "job", "--format", "json"], ["analyze", "job", "--format", "html"], ["recommend", "job"], ["stats", "job"],
            ["whatif", "job", "--change", "balance:ranks=1"])]
        for form in ("csv", "perfetto", "chrome"):
            self.check_run(RANKSCOPE, "-q", "export", "job", "--to", form, "-o", "exported")
            exported = self.folder / "exported"
            for file in sorted(exported.glob("*.csv")) if exported.is_dir() else [exported]:
                if file.name not in ("shard.csv", "meta.csv"):
                    outputs.append(file.read_bytes())
            shutil.rmtree(exported) if exported.is_dir() else exported.unlink()
        if HAS_WINDOW:
            self.check_run(RANKSCOPE, "-q", "view", "job", "--screenshot", "window.png", environment={"QT_QPA_PLATFORM": "offscreen"})
            outputs.append((self.folder / "window.png").read_bytes())
        return outputs

    def test_every_verb_tells_what_it_tells_of_one_file(self):
        expected = self.told()
        for processes in (1, 3) if HAS_MPI else (1,):
            self.collect(processes)
            with sqlite3.connect(f"file:{self.folder}/job/trace.db?mode=ro", uri=True) as trace:
                self.assertEqual(trace.execute("SELECT count(*) FROM kernel").fetchone(), (0,))
            for number, (found, expectation) in enumerate(zip(self.told(), expected, strict=True)):
                self.assertEqual(found, expectation, f"output {number}, {processes} processes")

    def test_one_file_takes_the_place_of_shards(self):
        before = (self.folder / "job/trace.db").read_bytes()
        self.collect()
        (self.folder / "job/trace.d/notes.txt").write_text("mine")
        self.check_run(RANKSCOPE, "-q", "collect", "job")
        self.assertEqual((self.folder / "job/trace.db").read_bytes(), before)
        self.assertEqual([path.name for path in (self.folder / "job/trace.d").iterdir()], ["notes.txt"])

    def test_only_shards_are_removed(self):
        self.collect()
        elsewhere = self.folder / "elsewhere"
        (self.folder / "job/trace.d").rename(elsewhere)
        shutil.copy2(self.folder / "job/trace.db", elsewhere / "accounts.db")
        (elsewhere / "letters.db").write_text("mine")
        kept = sorted(elsewhere.iterdir())
        (self.folder / "job/trace.d").symlink_to(elsewhere)
        refused = self.check_run(RANKSCOPE, "-q", "collect", "job", "--shards", status=3)
        self.assertIn(b"job/trace.d: it is a link", refused.stderr)
        self.check_run(RANKSCOPE, "-q", "collect", "job")
        self.assertEqual(sorted(elsewhere.iterdir()), kept)
        (self.folder / "job/trace.d").unlink()
        elsewhere.rename(self.folder / "job/trace.d")
        self.check_run(RANKSCOPE, "-q", "collect", "job", "--shards")
        self.check_run(RANKSCOPE, "-q", "collect", "job")
        self.assertEqual(sorted(path.name for path in (self.folder / "job/trace.d").iterdir()), ["accounts.db", "letters.db"])

    def test_what_a_killed_collection_left_is_removed(self):
        self.collect()
        left = self.folder / "job/trace.d/.host.db.4194399.part"  # above the largest pid
        left.write_text("half")
        self.check_run(RANKSCOPE, "-q", "collect", "job", "--shards")
        self.assertFalse(left.exists())

    def test_several_folders_have_no_shards(self):
        refused = self.check_run(RANKSCOPE, "collect", "job", "job", "--shards", status=2)
        self.assertIn(b"--shards takes one NAME", refused.stderr)

    def refused(self, shard, cause):
        """`analyze` names the shard and the cause, and leaves trace.db as it was."""
        before = (self.folder / "job/trace.db").read_bytes()
        refused = self.check_run(RANKSCOPE, "-q", "analyze", "job", status=3)
        self.assertIn(f"trace.d/{shard.name}: {cause}", refused.stderr.decode())
        self.assertIn("hint: ", refused.stderr.decode())
        self.assertEqual(refused.stdout, b"")
        self.assertEqual((self.folder / "job/trace.db").read_bytes(), before)

    def test_a_shard_that_is_not_whole_or_not_of_this_trace_is_refused_by_name(self):
        self.collect()
        shard, = self.shards()
        whole = shard.read_bytes()
        shard.unlink()
        self.refused(shard, "no such file: it holds the events of ranks 0, 1, 2 and 1 more")
        shard.write_bytes(whole[:len(whole) // 2])
        self.refused(shard, "not a readable trace.db: damaged or cut off")
        shard.write_bytes(whole[:-1000])
        self.refused(shard, "not a whole trace.db: it is cut off")
        shard.write_bytes(b"")
        self.refused(shard, "the file is empty")
        shard.write_bytes(b"no database, but long enough to be looked at" * 100)
        self.refused(shard, "not a readable trace.db")

        def changed(sql):
            shard.write_bytes(whole)
            with sqlite3.connect(shard) as database:
                database.executescript(sql)
            database.close()

        changed("PRAGMA user_version = 99")
        self.refused(shard, "trace.db has schema version 99")
        changed("UPDATE meta SET value = 'another' WHERE key = 'shard_of'")
        self.refused(shard, "it belongs to another collection than trace.db")
        changed("UPDATE extent SET rank = 77 WHERE rank = 3")
        self.refused(shard, "it holds events of rank 77, which trace.db does not have in shards")
        changed("DELETE FROM extent WHERE table_name = 'kernel' AND rank = 2")
        self.refused(shard, "damaged: its table extent is not what trace.db says of ranks 0, 1, 2 and 1 more")
        changed("DELETE FROM kernel WHERE id = (SELECT last_id FROM extent WHERE table_name = 'kernel' AND rank = 2)")
        self.refused(shard, "damaged: events that table extent promises are missing, or are another rank's (kernel)")

    @unittest.skipUnless(HAS_MPI, "Open MPI is not here")
    def test_a_rank_in_two_shards_is_refused(self):
        self.collect(2)
        first, second = self.shards()
        kept = second.read_bytes()
        second.write_bytes(first.read_bytes())
        # Its name sorts before or behind the other's.
        refused = self.check_run(RANKSCOPE, "-q", "analyze", "job", status=3).stderr.decode()
        self.assertRegex(refused, rf"trace.d/{second.name}: it holds events of rank [01], which trace.db has in job/trace.d/{first.name}")
        self.assertIn("hint: a rank is in one shard: ", refused)
        second.write_bytes(kept)
        self.check_run(RANKSCOPE, "-q", "analyze", "job")

    def test_names_lead_out_of_no_folder(self):
        self.collect()
        with sqlite3.connect(self.folder / "job/trace.db") as database:
            database.execute("UPDATE shard SET file = '../../elsewhere.db'")
        database.close()
        refused = self.check_run(RANKSCOPE, "-q", "analyze", "job", status=3)
        self.assertIn(b"damaged: table shard says that rank 0 is in", refused.stderr)

    @unittest.skipUnless(HAS_MPI, "Open MPI is not here")
    def test_a_collection_that_fails_leaves_the_older_one(self):
        self.collect(2)
        before = {path.name: path.read_bytes() for path in [*self.shards(), self.folder / "job/trace.db"]}
        # The second process has no room for its shard.
        failed = self.run_any(*MPIRUN, "-n", 1, RANKSCOPE, "collect", "job", "--shards", ":", "-n", 1, "sh", "-c",
                              f"ulimit -f 100; exec {RANKSCOPE} collect job --shards")
        self.assertNotEqual(failed.returncode, 0)
        self.assertEqual({path.name: path.read_bytes() for path in [*self.shards(), self.folder / "job/trace.db"]}, before)
        self.assertEqual([path.name for path in (self.folder / "job/trace.d").glob(".*")], [], failed.stderr)
        self.check_run(RANKSCOPE, "-q", "analyze", "job")


if __name__ == "__main__":
    unittest.main()
