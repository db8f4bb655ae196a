# SPDX-License-Identifier: Apache-2.0
"""However a process ends, it ends as it does alone, and every call it made before is in the capture."""

import os
import signal
import struct
import time
import unittest

from victim import VictimTest, gpu_kinds, main, victim

KILLS = int(os.environ.get("VICTIMS_KILLS", "3"))  # moments at which a group is killed; by hand: more
CLEAN = {"return": 3, "exit": 4, "_exit": 5, "_Exit": 6, "quick_exit": 7, "exit-in-thread": 8, "running-threads": 9, "late-calls": 10, "raw-exit": 11}
SIGNALS = {"segv": -11, "abort": -6, "throw": -6, "kill": -9, "term": -15, "int": -2}


class Ends(VictimTest):
    def test_clean_ends_keep_status_and_calls(self):
        for gpu in gpu_kinds():
            for how, status in CLEAN.items():
                with self.subTest(how=how, gpu=gpu):
                    outcome = self.compare(victim("ends"), how, 1000, gpu=gpu)
                    self.assertEqual(outcome.returncode, status)
                    capture = self.one_capture()
                    self.assertCalls(capture, 1010 if how == "late-calls" else 1000)
                    self.assertEqual(self.left_rings(), [])
                    self.assertEqual([record["code"] for record in capture.of("processEnd")], [status])
                    self.assertEqual(capture.of("readerLoss"), [])

    def test_rings_in_the_processs_own_memory_hold_what_a_clean_end_leaves(self):
        for how, status in CLEAN.items():
            with self.subTest(how=how):
                outcome = self.compare(victim("ends"), how, 1000, environment={"RANKSCOPE_RINGS": "memory"})
                self.assertEqual(outcome.returncode, status)
                self.assertCalls(self.one_capture(), 1010 if how == "late-calls" else 1000)
                self.assertEqual(self.left_rings(), [])

    def test_rings_in_the_processs_own_memory_that_a_kill_takes_along_are_told(self):
        outcome = self.compare(victim("ends"), "kill", 1000, environment={"RANKSCOPE_RINGS": "memory"})
        self.assertEqual(outcome.returncode, -9)
        capture = self.one_capture()
        self.assertLessEqual(capture.calls(), 1000)
        self.assertEqual([record["kind"] for record in capture.of("readerLoss")], ["damaged ring"])
        self.assertEqual((self.capture_folder / self.left_rings()[0]).stat().st_size, 4096)  # the header

    def test_pthread_exit_of_the_main_thread_ends_the_process_well(self):
        outcome = self.compare(victim("ends"), "pthread_exit", 1000)
        self.assertEqual(outcome.returncode, 0)
        self.assertCalls(self.one_capture(), 1000)

    def test_a_fatal_signal_stays_the_same_and_loses_no_committed_call(self):
        for gpu in gpu_kinds():
            for how, status in SIGNALS.items():
                with self.subTest(how=how, gpu=gpu):
                    outcome = self.compare(victim("ends"), how, 1000, gpu=gpu)
                    self.assertEqual(outcome.returncode, status)
                    self.assertCalls(self.one_capture(), 1000)

    def test_a_group_of_processes_that_is_killed_at_any_moment_loses_no_committed_call(self):
        counters = self.folder / "counters"
        for moment in range(KILLS):
            with self.subTest(moment=moment):
                counters.write_bytes(b"")

                def kill(job):
                    while not counters.stat().st_size or min(calls for _, calls in struct.iter_unpack("qq", counters.read_bytes())) == 0:
                        self.assertIsNone(job.poll())
                    time.sleep(0.37 * moment / KILLS)  # over several rounds of the thread that empties the rings
                    os.killpg(job.pid, signal.SIGKILL)
                outcome = self.run_injected(victim("killed_group"), 16, counters, meanwhile=kill)
                self.assertEqual(outcome.returncode, -9)
                made = dict(struct.iter_unpack("qq", counters.read_bytes()))
                self.assertEqual(sorted(capture.header["pid"] for capture in self.captures), sorted(made))
                for capture in self.captures:
                    # A call may have been committed and not yet counted.
                    self.assertIn(capture.calls() + capture.lost() - made[capture.header["pid"]], (0, 1))
                    self.assertEqual(capture.of("readerLoss"), [])

    def test_the_own_handler_of_a_crash_runs(self):
        outcome = self.compare(victim("ends"), "own-handler", 100)
        self.assertEqual(outcome.returncode, 66)
        self.assertIn(b"own handler", outcome.out)
        self.assertCalls(self.one_capture(), 100)

    def test_more_calls_than_a_ring_holds_are_there_or_counted_after_a_kill(self):
        for gpu in gpu_kinds():
            with self.subTest(gpu=gpu):
                self.compare(victim("ends"), "kill", 100000, gpu=gpu)
                capture = self.one_capture()
                self.assertCalls(capture, 100000)
                self.assertGreater(capture.calls(), 10000)

    def test_a_handler_may_leave_in_the_middle_of_a_hook(self):
        for gpu in gpu_kinds():
            with self.subTest(gpu=gpu):
                outcome = self.compare(victim("exit_in_handler"), gpu=gpu)
                self.assertEqual(outcome.out, b"40 ended\n")


if __name__ == "__main__":
    main()
