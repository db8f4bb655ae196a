#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs under Open MPI's mpirun, wrapped from outside (`rankscope run -- mpirun`) and rank by rank (`mpirun rankscope run`)."""

import shutil
import signal
import sys
import unittest

from wrapped import RANKSCOPE, JobTest

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--tag-output"]
# Many ranks that exit at once hang Open MPI 4.1.4 now and then; with one launching thread they do not.
STEADY = {"OMPI_MCA_odls_base_num_threads": "0", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
SPEAK = "printf 'rank %s of %s\\n' $OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_SIZE; printf 'message %s\\n' $OMPI_COMM_WORLD_RANK >&2"


def lines(stream):
    """Ranks write in any order; each line is whole, because mpirun tags it."""
    return sorted(stream.splitlines())


class Mpirun(JobTest):
    def setUp(self):
        super().setUp()
        self.environment.update(STEADY)

    def three_ways(self, name, script, n=3):
        rank = ["sh", "-c", script]
        return (self.run_plain(*MPIRUN, "-n", n, *rank), self.wrapped(name + "-inside", *MPIRUN, "-n", n, *rank),
                self.run_plain(*MPIRUN, "-n", n, RANKSCOPE, "-q", "run", "-o", name + "-outside", "--", *rank))

    def test_output_is_the_jobs_own(self):
        plain, inside, outside = self.three_ways("a", SPEAK)
        self.assertEqual(len(lines(plain.stdout)), 3)
        self.assertEqual(lines(inside.stdout), lines(plain.stdout))
        self.assertEqual(lines(outside.stdout), lines(plain.stdout))
        for result in (inside, outside):
            self.assertLessEqual(set(lines(plain.stderr)), set(lines(result.stderr)))
            self.assertEqual([line for line in lines(result.stderr) if line not in lines(plain.stderr)], [])
        # A CPU job records nothing, which is worth one warning where nobody asked for silence, by the last rank of the host only.
        loud = self.run_plain(*MPIRUN, "-n", 3, RANKSCOPE, "run", "-o", "a-loud", "--", "sh", "-c", SPEAK)
        self.assertEqual(sum(b"nothing was recorded" in line for line in lines(loud.stderr)), 1, loud.stderr)

    def test_exit_status_is_the_jobs_own(self):
        for status in (0, 3):
            plain, inside, outside = self.three_ways(f"s{status}", f"[ $OMPI_COMM_WORLD_RANK = 1 ] && exit {status}; exit 0")
            self.assertEqual(plain.returncode, status)
            self.assertEqual(inside.returncode, status)
            self.assertEqual(outside.returncode, status)

    def test_death_of_a_rank_by_a_signal_is_seen_by_the_launcher(self):
        plain, inside, outside = self.three_ways("k", "[ $OMPI_COMM_WORLD_RANK = 1 ] && kill -SEGV $$; exit 0")
        self.assertEqual(inside.returncode, plain.returncode)
        self.assertEqual(outside.returncode, plain.returncode)
        self.assertEqual(plain.returncode, 128 + signal.SIGSEGV)
        self.assertEqual(self.description("k-outside")["signal"], signal.SIGSEGV)

    def test_ranks_wrapped_one_by_one_share_one_run(self):
        result = self.run_plain(*MPIRUN, "-n", 4, RANKSCOPE, "-q", "run", "-o", "job-%t", "--", "sh", "-c", SPEAK)
        self.assertEqual(result.returncode, 0)
        runs = list(self.folder.iterdir())
        self.assertEqual(len(runs), 1, runs)
        description = self.description(runs[0].name)
        self.assertEqual(description["launcher"], "openmpi")
        self.assertEqual(description["world_size"], 4)

    def test_a_rank_that_starts_when_another_is_done_finds_the_run_of_its_job(self):
        late = """
            if [ $OMPI_COMM_WORLD_RANK = 1 ]; then
                until grep -q ' 1$' job-*/.members 2>/dev/null; do sleep 0.05; done
                start=$(date +%s); until [ $(date +%s) != $start ]; do sleep 0.05; done
            fi
            exec "$0" -q run -o job-%t -- true"""
        result = self.run_plain(*MPIRUN, "-n", 2, "sh", "-c", late, RANKSCOPE)
        self.assertEqual(result.returncode, 0, result.stderr)
        runs = list(self.folder.iterdir())
        self.assertEqual(len(runs), 1, runs)  # neither a second run nor the file in which the ranks met

    def test_a_second_job_does_not_join_the_run_of_the_first(self):
        first = self.run_plain(*MPIRUN, "-n", 2, RANKSCOPE, "-q", "run", "-o", "a", "--", "true")
        self.assertEqual(first.returncode, 0)
        second = self.run_plain(*MPIRUN, "-n", 2, RANKSCOPE, "-q", "run", "-o", "a", "--", "touch", "started")
        self.assertNotEqual(second.returncode, 0)
        self.assertIn(b"--force", second.stdout + second.stderr)
        self.assertFalse((self.folder / "started").exists())
        forced = self.run_plain(*MPIRUN, "-n", 2, RANKSCOPE, "-q", "run", "-o", "a", "--force", "--", "true")
        self.assertEqual(forced.returncode, 0)

    def test_interrupt_reaches_the_ranks_through_both_and_the_run_is_kept(self):
        script = "trap 'exit 5' INT TERM; echo ready; while :; do sleep 0.05; done"
        process = self.start(RANKSCOPE, "-q", "run", "-o", "a", "--", *MPIRUN, "-n", 2, "sh", "-c", script, start_new_session=True)
        ready = [process.stdout.readline(), process.stdout.readline()]
        self.assertTrue(all(b"ready" in line for line in ready), ready)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("end_unix_ns", self.description("a"))

    def test_signals_to_the_launcher_do_to_wrapped_ranks_what_they_do_to_bare_ones(self):
        rank = ["python3", "-c", "import os, signal, sys\n"
                "def caught(number, frame):\n"
                "    os.write(1, b'caught %d\\n' % number)\n"
                "    for each in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM): signal.signal(each, signal.SIG_IGN)\n"
                "    sys.exit(0)\n"
                "for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM): signal.signal(number, caught)\n"
                "os.write(1, b'ready\\n')\n"
                "while True: signal.pause()"]
        for numbers in ([signal.SIGUSR1], [signal.SIGUSR2], [signal.SIGTERM], [signal.SIGTSTP, signal.SIGCONT, signal.SIGUSR1]):
            ends = []
            for name in ("bare", "wrapped"):
                wrapper = [] if name == "bare" else [RANKSCOPE, "-q", "run", "-o", f"signal{int(numbers[0])}", "--"]
                process = self.start(*MPIRUN, "-n", 2, *wrapper, *rank, start_new_session=True)
                ready = [process.stdout.readline(), process.stdout.readline()]
                if not all(b"ready" in line for line in ready):
                    self.fail((name, ready, process.communicate(timeout=60)))
                for number in numbers:
                    process.send_signal(number)
                out, _ = process.communicate(timeout=60)
                # mpirun signals the process group, and the wrapper passes on what it gets: the rank may be told twice (README).
                ends.append((process.returncode, sorted(set(lines(out)))))
            with self.subTest(signals=numbers):
                self.assertEqual(ends[1], ends[0])
                self.assertEqual(len(ends[0][1]), 2, ends)

    def test_hosts_option_brings_the_variables_to_forward(self):
        # A launcher of that name that only ends: what counts is what rankscope says about the command.
        (self.folder / "mpirun").write_text("#!/bin/sh\nexit 0\n")
        (self.folder / "mpirun").chmod(0o755)
        told = self.rankscope("run", "-o", "a", "--", "./mpirun", "--host", "a,b", "-x", "LD_PRELOAD", "true")
        self.assertIn(b"-x RANKSCOPE_DIR", told.stderr)
        self.assertNotIn(b"-x LD_PRELOAD", told.stderr)
        silent = self.rankscope("run", "-o", "b", "--", "./mpirun", "true")
        self.assertNotIn(b"-x RANKSCOPE_DIR", silent.stderr)


if __name__ == "__main__":
    if not shutil.which("mpirun"):
        print("skipped: mpirun is not installed (package openmpi-bin)")
        sys.exit(77)
    unittest.main()
