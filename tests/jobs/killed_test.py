#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job of 16 ranks whose processes are killed all at once, at any moment: no call that was committed is missing, and where CUPTI had not delivered what the devices did, that is told."""

import os
import pathlib
import signal
import sqlite3
import struct
import time
import unittest

from wrapped import RANKSCOPE, JobTest

RANKS = 16
KILLS = int(os.environ.get("RANKSCOPE_KILLS", "3"))  # moments at which the job is killed; by hand: more
# Each rank counts its calls that have returned in its place of a file.
JOB = f"""
import ctypes, mmap, os, sys, time
with open(sys.argv[1], "r+b") as file:
    counters = mmap.mmap(file.fileno(), 8 * {RANKS})
rank = 0
for other in range(1, {RANKS}):
    if os.fork() == 0:
        rank = other
        break
os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank % 8), WORLD_SIZE="{RANKS}")
ctypes.CDLL("libcudart.so.13", mode=ctypes.RTLD_GLOBAL)
job = ctypes.CDLL(None)
assert job.cudaSetDevice(rank % 8) == 0
memory = ctypes.c_void_p()
assert job.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(4096)) == 0
counted = (ctypes.c_int64 * {RANKS}).from_buffer(counters)
while True:
    job.cudaMemsetAsync(memory, 0, ctypes.c_size_t(4096), None)
    counted[rank] += 1
    if counted[rank] % 20 == 0:
        job.cudaStreamSynchronize(None)
        time.sleep(0.001)
"""


class Killed(JobTest):
    def kill_job(self, name, after_s):
        """Kills the wrapper and all ranks, once each has made a call; returns how many each had made."""
        counters = self.folder / "counters"
        counters.write_bytes(bytes(8 * RANKS))
        process = self.start(RANKSCOPE, "-q", "run", "--virtual", "-o", name, "--", "python3", "-c", JOB, counters, start_new_session=True)

        def made():
            return [calls for calls, in struct.iter_unpack("q", counters.read_bytes())]
        begin = time.monotonic()
        while min(made()) == 0:
            self.assertIsNone(process.poll(), process.communicate)
            self.assertLess(time.monotonic() - begin, 60)
        time.sleep(after_s)  # over several times at which CUPTI delivers
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return made()

    def rows(self, name, query):
        with sqlite3.connect(self.folder / name / "trace.db") as database:
            return database.execute(query).fetchall()

    def test_what_was_committed_is_there_and_what_cupti_had_not_delivered_is_told(self):
        self.addCleanup(lambda: [path.unlink(missing_ok=True) for path in pathlib.Path("/dev/shm").glob(f"rankscope-vgpu*{self.folder.name}*")])
        self.environment["RANKSCOPE_VGPU_JOB"] = self.folder.name
        lost = 0
        for moment in range(KILLS):
            with self.subTest(moment=moment):
                name = f"killed{moment}"
                made = self.kill_job(name, 0.43 * moment / KILLS)
                collected = self.rankscope("collect", name)
                self.assertEqual(collected.returncode, 0, collected.stderr)
                recorded = dict(self.rows(name, "SELECT rank, count(*) FROM api_call JOIN string ON string.id = name_id WHERE text = 'cudaMemsetAsync' GROUP BY rank"))
                delivered = dict(self.rows(name, "SELECT rank, count(*) FROM memset GROUP BY rank"))
                told = {rank for rank, in self.rows(name, "SELECT rank FROM loss WHERE kind = 'cupti_undelivered'")}
                full = dict(self.rows(name, "SELECT rank, sum(count) FROM loss WHERE kind = 'ring_full' GROUP BY rank"))
                for rank in range(RANKS):
                    # A call may have been committed and not yet counted.
                    self.assertIn(recorded.get(rank, 0) + full.get(rank, 0) - made[rank], (0, 1), rank)
                    if delivered.get(rank, 0) < recorded.get(rank, 0):
                        lost += 1
                        self.assertIn(rank, told)
                self.assertEqual(self.rows(name, "SELECT DISTINCT kind FROM loss WHERE kind IN ('bad_ring', 'bad_block')"), [])
                # The kill may come inside a write. What the hooks wrote is in the ring still; what CUPTI had delivered is lost.
                torn = {rank for rank, in self.rows(name, "SELECT rank FROM loss WHERE kind = 'torn_tail'")}
                self.assertLessEqual(torn, told)
                analyzed = self.rankscope("-q", "analyze", name)
                self.assertIn(analyzed.returncode, (0, 5), analyzed.stderr)
        self.assertGreater(lost, 0)


if __name__ == "__main__":
    unittest.main()
