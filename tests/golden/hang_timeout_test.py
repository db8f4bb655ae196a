#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs that stand still while they are recorded: what their ranks stand in is read from outside, stored, and told as evidence; the jobs notice nothing."""

import json
import os
import pathlib
import shutil
import sqlite3
import sys
import textwrap
import unittest

from virtual_run import RANKSCOPE, SMALL, VirtualRunTest, WORKLOAD

# One rank sleeps in its data loader; in real time for a second, until a launcher would end it.
ASLEEP = dict(SMALL, name="asleep", cluster={"nodes": 1, "ranks_per_node": 4}, faults=[{"kind": "asleep", "rank": 1, "step": 2}])
# One process of Python's on the virtual GPUs, which copies once and then waits for its next batch.
PYTHON_RANK = """
    import ctypes, sys, time
    cuda = ctypes.CDLL("libcudart.so.13")
    memory = ctypes.c_void_p()
    assert cuda.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(1 << 20)) == 0
    assert cuda.cudaMemset(memory, 0, ctypes.c_size_t(1 << 20)) == 0
    def fetch_batch():
        time.sleep(float(sys.argv[1]))
    if sys.argv[2:] == ["unreadable"]:  # as without the permission: nobody may trace a process that is not dumpable
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    if sys.argv[2:] == ["goes_on"]:
        fetch_batch()
        assert cuda.cudaMemset(memory, 0, ctypes.c_size_t(1 << 20)) == 0
        sys.exit(7)
    if sys.argv[2:] == ["alone"]:  # the wrapper may have no thread or process more
        import os, resource
        resource.prlimit(os.getppid(), resource.RLIMIT_NPROC, (1, 1))
    fetch_batch()
    sys.exit(7)
"""


class HangTimeout(VirtualRunTest):
    def rows(self, name, query):
        with sqlite3.connect(self.folder / name / "trace.db") as database:
            return database.execute(query).fetchall()

    def run_asleep(self, name, timeout, *more):
        # Four ranks without a launcher, which would end the one that sleeps before the second is over.
        scenario = self.write_scenario(ASLEEP)
        script = self.folder / "ranks.sh"
        script.write_text(f'for rank in 0 1 2 3; do RANK=$rank WORLD_SIZE=4 LOCAL_RANK=$rank "{WORKLOAD}" "{scenario}" & done; wait -n; code=$?; wait; exit $code\n')
        return self.run_any(RANKSCOPE, "run", "--virtual", "--hang-timeout", timeout, *more, "-o", name, "--", "bash", script)

    def test_what_the_sleeping_rank_stands_in_is_evidence(self):
        done = self.run_asleep("hung", "0.3")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"1 rank recorded no progress for", done.stderr)
        files = list((self.folder / "hung" / "stacks").glob("*.txt"))
        self.assertEqual(len(files), 1)
        self.assertEqual(files[0].read_text().splitlines()[0], "rankscope stacks 1")
        self.assertEqual(self.rows("hung", "SELECT DISTINCT rank, reading, language FROM thread_stack"), [(1, 1, "native")])
        # In virtual time: the newest that was recorded before, which is not after the end.
        self.assertEqual(self.rows("hung", "SELECT DISTINCT read_ns > 0 AND read_ns <= end_ns FROM thread_stack JOIN rank USING (rank) JOIN process p ON p.id = process_id"), [(1,)])
        (frames,) = self.rows("hung", "SELECT frames FROM thread_stack t JOIN process p ON t.tid = p.pid")[0]
        self.assertIn("fetchBatch", frames)
        told = self.run_any(RANKSCOPE, "-q", "analyze", "hung", "--format", "json")
        self.assertEqual(told.returncode, 5)
        finding = next(finding for finding in json.loads(told.stdout)["findings"] if finding["id"] == "RS501")
        self.assertEqual(finding["ranks"], [1])
        stands = [fact for fact in finding["evidence"]["facts"] if fact.startswith("rank 1 stood in ")]
        self.assertEqual(len(stands), 1, finding["evidence"])
        self.assertRegex(stands[0], r"sleep\(\) <- .*hang\(\)")

    def test_off_reads_nothing_and_what_is_not_recorded_whole_is_not_judged(self):
        for name, timeout, more in (("off", "off", ()), ("range", "0.3", ("--capture-range", "steps:0-1"))):
            done = self.run_asleep(name, timeout, *more)
            self.assertNotIn(b"no progress", done.stderr)
            self.assertFalse((self.folder / name / "stacks").exists())
            self.assertEqual(done.stderr.count(b"--hang-timeout has no effect with --capture-range"), name == "range", done.stderr)
        self.assertEqual(self.rows("off", "SELECT * FROM thread_stack"), [])
        for timeout in ("", "0", "5 m", "-1", "1d", "inf"):
            self.assertEqual(self.run_any(RANKSCOPE, "run", "--hang-timeout", timeout, "-o", "no", "--", "true").returncode, 2, timeout)

    def test_stacks_that_cannot_be_written_are_said_once_and_cost_nothing(self):
        script = self.folder / "blocked.sh"
        script.write_text(f'touch "{self.folder}/blocked/stacks"\nRANK=0 WORLD_SIZE=1 exec "{sys.executable}" "{self.python_rank()}" 0.8\n')
        done = self.run_any(RANKSCOPE, "run", "--virtual", "--hang-timeout", "0.2", "-o", "blocked", "--", "bash", script)
        self.assertEqual(done.returncode, 7)
        self.assertEqual(done.stderr.count(b"stacks of ranks that stand still are not read"), 1, done.stderr)
        self.assertGreater(self.rows("blocked", "SELECT count(*) FROM api_call")[0][0], 0)

    def test_in_light_mode_a_program_that_calls_no_nccl_is_not_told_to_hang(self):
        for more, told in ((), True), (("--light",), False):
            name = f"unseen{len(more)}"
            done = self.run_any(RANKSCOPE, "run", "--virtual", *more, "--hang-timeout", "0.3", "-o", name, "--", sys.executable, self.python_rank(), "1", environment={"RANK": "0", "WORLD_SIZE": "1"})
            self.assertEqual(done.returncode, 7, done.stderr)
            self.assertEqual(b"recorded no progress" in done.stderr, told, done.stderr)

    def test_what_a_rank_stood_in_before_it_went_on_is_no_evidence_of_its_end(self):
        for more, expected in ((), 1), (("goes_on",), 0):
            name = f"later{len(more)}"
            self.run_any(RANKSCOPE, "run", "--virtual", "--hang-timeout", "0.3", "-o", name, "--", sys.executable, self.python_rank(), "1", *more, environment={"RANK": "0", "WORLD_SIZE": "1"})
            self.assertGreater(self.rows(name, "SELECT count(*) FROM thread_stack")[0][0], 0)
            told = json.loads(self.run_any(RANKSCOPE, "-q", "analyze", name, "--format", "json").stdout)
            facts = [fact for finding in told["findings"] for fact in finding["evidence"].get("facts", ())]
            self.assertEqual(len([fact for fact in facts if " stood in " in fact]), expected, facts)

    def as_user(self):
        """What to put before a command that root's rights must not help."""
        if os.geteuid() == 0 and not shutil.which("setpriv"):
            self.skipTest("root may do everything, and setpriv (util-linux) is not here")
        self.folder.chmod(0o777)
        other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        if other and self.run_any(*other, RANKSCOPE, "--version").returncode != 0:
            self.skipTest("root may do everything, and the build lies where nobody else may")
        return other

    def test_a_wrapper_that_may_start_no_thread_leaves_its_job_alone(self):
        other = self.as_user()
        done = self.run_any(*other, RANKSCOPE, "run", "--virtual", "--no-collect", "--hang-timeout", "0.3", "-o", "limited", "--", "/usr/bin/python3", self.python_rank(), "1", "alone",
                            environment={"RANK": "0", "WORLD_SIZE": "1"})
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertEqual(done.stderr.count(b"stacks of ranks that stand still are not read: Resource temporarily unavailable"), 1, done.stderr)
        self.assertEqual(len(list((self.folder / "limited" / "capture").glob("*.cap"))), 1)

    def test_a_rank_that_may_not_be_read_is_said_once_and_goes_on(self):
        other = self.as_user()
        done = self.run_any(*other, RANKSCOPE, "run", "--virtual", "--hang-timeout", "0.3", "-o", "refused", "--", "/usr/bin/python3", self.python_rank(), "1", "unreadable",
                            environment={"RANK": "0", "WORLD_SIZE": "1"})
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertEqual(done.stderr.count(b"native stacks of ranks that stand still are not read: ptrace: Operation not permitted"), 1, done.stderr)
        self.assertIn(("native", ""), self.rows("refused", "SELECT language, frames FROM thread_stack"))
        self.assertEqual(self.rows("refused", "SELECT count(*) FROM loss WHERE kind = 'stacks' AND severity = 'info'"), [(1,)])

    def python_rank(self):
        path = self.folder / "rank.py"
        path.write_text(textwrap.dedent(PYTHON_RANK))
        return path

    def test_of_a_python_rank_its_own_frames_are_read_where_py_spy_is(self):
        done = self.run_any(RANKSCOPE, "run", "--virtual", "--hang-timeout", "0.4", "-o", "python", "--", sys.executable, self.python_rank(), "1.5",
                            environment={"RANK": "0", "WORLD_SIZE": "1"})
        self.assertEqual(done.returncode, 7, done.stderr)
        stacks = self.rows("python", "SELECT language, frames FROM thread_stack t JOIN process p ON t.tid = p.pid")
        self.assertIn("native", [language for language, _ in stacks])
        if shutil.which("py-spy"):
            self.assertIn("fetch_batch (rank.py:8)", dict(stacks)["python"])
        else:
            self.assertEqual(self.rows("python", "SELECT severity FROM loss WHERE kind = 'stacks' AND message LIKE '%py-spy is not on PATH%'"), [("info",)])

    def test_a_job_that_ends_well_is_untouched_however_often_it_is_read(self):
        script = self.folder / "slow.sh"
        script.write_text(f'sleep 0.2; exec "{sys.executable}" "{self.python_rank()}" 0.3\n')
        done = self.run_any(RANKSCOPE, "run", "--virtual", "--hang-timeout", "0.05", "-o", "well", "--", "bash", script)
        self.assertEqual((done.returncode, done.stdout), (7, b""))


if __name__ == "__main__":
    unittest.main()
