#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs of frameworks, run again and again on a busy machine, are equal to the nanosecond: every kernel, copy, call, collective and step of every rank.

Runs each job twice; `--repetitions 20` is what is promised. `--all` takes jobs of all frameworks, `--only fsdp` those whose name contains that, `--load N` runs N programs beside them that
do nothing but compute (default: one per core). Skipped where the frameworks are not installed."""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

RANKSCOPE = pathlib.Path(os.environ.get("RANKSCOPE_BINARY", "rankscope")).resolve()
BUILD = RANKSCOPE.parents[1]
ENVIRONMENT = pathlib.Path(os.environ.get("RANKSCOPE_FRAMEWORKS") or BUILD / "frameworks")
JOBS = BUILD / "share/rankscope/frameworks/jobs"
SKIPPED = 77
TIMEOUT_S = 280  # of one run
REPETITIONS, ONLY, LOAD = 2, "", os.cpu_count()

# Few steps of few layers: what could differ is how threads and ranks meet, and that happens in each step.
SMALL = {"--steps": 4, "--layers": 2, "--hidden": 1024, "--heads": 8}
CHOSEN = {"ddp-2": ("torch-ddp-none", 2, {}), "ddp-4": ("torch-ddp-none", 4, {}), "fsdp-2": ("torch-fsdp-none", 2, {}), "fsdp-4": ("torch-fsdp-none", 4, {}),
          "loader-2": ("torch-ddp-none-loader-workers", 2, {"--loader-ms": 4}),
          "pp-2": ("torch-pp-none", 2, {"--micro-batches": 4}), "pp-4": ("torch-pp-none", 4, {"--layers": 4, "--micro-batches": 6})}
# The other kinds, with --all: as often as that is worth some minutes.
OTHERS = {"hsdp-4": ("torch-hsdp-none", 4, {}), "tp-2": ("torch-tp-none", 2, {}), "sp-2": ("torch-tp-none-sequence", 2, {}), "zero1-2": ("deepspeed-zero1-none", 2, {}), "zero2-2": ("deepspeed-zero2-none", 2, {}),
          "zero3-2": ("deepspeed-zero3-none", 2, {"--no-ranges": False}), "megatron-dp-2": ("megatron-dp-none", 2, {}), "megatron-pp-2": ("megatron-pp-none", 2, {"--micro-batches": 4}),
          "megatron-3d-4": ("megatron-3d-none", 4, {"--micro-batches": 4}), "megatron-moe-4": ("megatron-moe-none", 4, {}), "accelerate-ddp-2": ("accelerate-ddp-none", 2, {}), "accelerate-fsdp-2": ("accelerate-fsdp-none", 2, {})}
# Rows and what of each must be equal; times count from the first step's start, since nobody says when the processes of a job begin.
ROWS = {
    "kernels": "SELECT k.rank, k.start_ns - z.ns, k.dur_ns, s.text, st.native_id, k.grid_blocks FROM kernel k JOIN string s ON s.id = k.name_id JOIN stream st ON st.id = k.stream_id, zero z",
    "copies": "SELECT rank, start_ns - z.ns, dur_ns, bytes, kind FROM memcpy, zero z",
    "sets": "SELECT rank, start_ns - z.ns, dur_ns, bytes FROM memset, zero z",
    "calls": "SELECT a.rank, a.start_ns - z.ns, a.dur_ns, s.text FROM api_call a JOIN string s ON s.id = a.name_id, zero z",
    "collectives": "SELECT rank, start_ns - z.ns, dur_ns, op, bytes, seq FROM nccl_call, zero z",
    "steps": "SELECT rank, step, start_ns - z.ns, dur_ns FROM step, zero z",
}


def rows_of(trace):
    """{what: {row: how often}} from the first step on, to the end of the job."""
    with contextlib.closing(sqlite3.connect(f"file:{trace}?mode=ro", uri=True)) as db:
        db.execute("CREATE TEMP TABLE zero AS SELECT min(start_ns) AS ns FROM step")
        return {what: collections.Counter(row for row in db.execute(query) if row[2 if what == "steps" else 1] >= 0) for what, query in ROWS.items()}


class Repetitions(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rankscope-repetitions-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        for _ in range(LOAD):
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            self.addCleanup(busy.wait)
            self.addCleanup(busy.kill)

    def scenario(self, name):
        table, ranks, arguments = CHOSEN[name]
        job = json.loads((JOBS / (table + ".json")).read_text())
        job["cluster"]["ranks_per_node"] = ranks // job["cluster"]["nodes"]
        job["framework"]["arguments"].update(SMALL | arguments)
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(job))
        return path

    def recorded(self, scenario):
        done = subprocess.run([RANKSCOPE, "-q", "reference", "run", scenario, "--force", "-o", self.folder / "run"], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=dict(os.environ, RANKSCOPE_FRAMEWORKS=str(ENVIRONMENT)), timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-4000:])
        self.assertNotIn("reproducible", done.stderr)
        return rows_of(self.folder / "run/trace.db")

    def check_equal(self, first, other, repetition):
        for what in ROWS:
            missing, new = first[what] - other[what], other[what] - first[what]
            self.assertFalse(missing or new, f"repetition {repetition}: {sum(missing.values())} of {sum(first[what].values())} {what} differ, first "
                             f"{min(missing, default=None, key=lambda row: row[1])} against {min(new, default=None, key=lambda row: row[1])}")

    def test_each_job_is_equal_to_the_nanosecond_each_time(self):
        for name in CHOSEN:
            if ONLY not in name:
                continue
            with self.subTest(job=name):
                scenario = self.scenario(name)
                first = self.recorded(scenario)
                self.assertGreater(len(first["kernels"]), 100)
                self.assertEqual(len(first["steps"]), CHOSEN[name][1] * SMALL["--steps"])
                for repetition in range(2, REPETITIONS + 1):
                    self.check_equal(first, self.recorded(scenario), repetition)
                print(f"{name}: {REPETITIONS} runs equal, {sum(len(rows) for rows in first.values())} rows each", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--load", type=int, default=LOAD)
    options, rest = parser.parse_known_args()
    REPETITIONS, ONLY, LOAD = options.repetitions, options.only, options.load
    if options.all:
        CHOSEN |= OTHERS
    if not (ENVIRONMENT / "bin/torchrun").exists():
        print("skipped: the frameworks are not installed; ./bootstrap.sh frameworks")
        sys.exit(SKIPPED)
    unittest.main(argv=[sys.argv[0], *rest])
