# SPDX-License-Identifier: Apache-2.0
"""Nowhere to write, no room, no rights: the job does not notice, and what was lost is told where there is room to tell it."""

import os
import re
import resource
import subprocess
import unittest

from victim import SOURCE_HOOKS, VictimTest, gpu_kinds, main, victim

CUTS = int(os.environ.get("VICTIMS_CUTS", "20"))  # processes whose files are cut off; by hand: more


class Storage(VictimTest):
    def test_a_folder_that_cannot_be_written_does_not_harm(self):
        file = self.folder / "file"
        file.write_text("")
        for directory in ("/nonexistent/folder", str(file), "/proc/self", "relative/folder", "/nonexistent" * 300):
            for gpu in gpu_kinds():
                with self.subTest(directory=directory[:20], gpu=gpu):
                    self.compare(victim("ends"), "return", 1000, gpu=gpu, directory=directory)
                    self.assertEqual(self.captures, [])
        self.assertEqual(file.read_text(), "")

    def test_a_limit_of_file_size_does_not_kill(self):
        # SIGXFSZ ends a process that writes beyond the limit and does not expect it.
        for limit in (0, 1024, 100_000, 2_000_000):
            with self.subTest(limit=limit):
                def limited():
                    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
                self.compare(victim("ends"), "return", 100000, preexec_fn=limited, may_be_cut=True)

    def test_no_descriptors_left_does_not_harm(self):
        for limit in range(4, 12):
            with self.subTest(limit=limit):
                def limited():
                    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
                self.compare(victim("ends"), "return", 1000, preexec_fn=limited)

    def test_little_address_space_does_not_harm(self):
        for megabytes in (64, 128, 512):
            with self.subTest(megabytes=megabytes):
                def limited():
                    resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
                self.compare(victim("threads"), "storm", preexec_fn=limited)

    def test_files_are_as_open_as_their_folder(self):
        for mode, capture, ring in ((0o700, 0o600, 0o400), (0o755, 0o644, 0o444)):
            with self.subTest(mode=oct(mode)):
                folder = self.folder / f"mode{mode:o}"
                folder.mkdir()
                folder.chmod(mode)
                self.run_injected(victim("ends"), "kill", 10, directory=folder)
                self.assertEqual(self.one_capture().path.stat().st_mode & 0o777, capture)
                self.assertEqual([(folder / name).stat().st_mode & 0o777 for name in self.left_rings()], [ring])

    def test_a_ring_cannot_be_cut_off_by_its_own_user(self):
        self.folder.chmod(0o777)

        def nobody():
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
        folder = self.folder / "capture"
        folder.mkdir()
        folder.chmod(0o777)
        outcome = self.compare(victim("cut_ring"), 1000, directory=folder, preexec_fn=nobody)
        self.assertEqual((outcome.returncode, outcome.out), (6, b"well\n"))
        self.assertCalls(self.one_capture(), 2000)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, whom no permission stops")
    def test_a_ring_that_root_cuts_off_costs_neither_the_job_nor_a_record(self):
        for environment in ({}, {"RANKSCOPE_RINGS": "memory"}):
            with self.subTest(environment=environment):
                outcome = self.compare(victim("cut_ring"), 1000, environment=environment)
                self.assertEqual((outcome.returncode, outcome.out), (6, b"well\n"))
                capture = self.one_capture()
                self.assertCalls(capture, 2000)
                self.assertEqual((capture.of("loss", source=SOURCE_HOOKS), capture.of("readerLoss")), ([], []))

    def test_files_that_are_cut_off_at_any_moment_cost_the_job_nothing(self):
        for all_files in ([], ["all"]):
            with self.subTest(all_files=all_files):
                outcome = self.run_injected(victim("cut_at_random"), CUTS, 22, *all_files, is_read=not all_files)
                told = re.fullmatch(rb"(\d+) hurt, (\d+) calls, (\d+) files cut\n", outcome.out)
                self.assertIsNotNone(told, outcome)
                hurt, calls, cut = map(int, told.groups())
                self.assertEqual((hurt, outcome.returncode, outcome.err), (0, 0, b""))
                self.assertGreaterEqual(cut, CUTS)
                if not all_files:  # a ring moves with what is in it
                    self.assertEqual(sum(capture.calls() + capture.lost() for capture in self.captures), calls)

    def test_the_size_asked_for_is_kept(self):
        self.run_injected(victim("ends"), "return", 200000, environment={"RANKSCOPE_MAX_BYTES": "1000000"})
        capture = self.one_capture()
        self.assertLess(capture.path.stat().st_size, 1_100_000)
        self.assertGreater(capture.calls(), 1000)
        self.assertGreater(sum(record["count"] for record in capture.of("loss")), 0)


@unittest.skipUnless(os.geteuid() == 0, "needs the right to mount")
class FullDisk(VictimTest):
    def mounted(self, options):
        folder = self.folder / f"mount{self._runs}"
        folder.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True).returncode != 0:
            self.skipTest("mounting is not allowed here")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], capture_output=True)
        return folder

    def test_a_disk_that_fills_up_does_not_kill(self):
        for gpu in gpu_kinds():
            for size in ("4k", "16k", "64k", "700k", "1500k", "4m"):
                with self.subTest(size=size, gpu=gpu):
                    folder = self.mounted(f"size={size}")
                    self.compare(victim("ends"), "return", 100000, gpu=gpu, directory=folder, may_be_cut=True)
                    for capture in self.captures:
                        lost = sum(record["count"] for record in capture.of("loss"))
                        self.assertTrue(capture.calls() + capture.lost() == 100000 or lost > 0 or capture.of("readerLoss") or capture.calls() == 0, size)

    def test_a_disk_that_fills_up_does_not_kill_many_threads(self):
        for size in ("64k", "700k", "1500k", "4m"):
            with self.subTest(size=size):
                folder = self.mounted(f"size={size}")
                self.compare(victim("threads"), "crowd", directory=folder, may_be_cut=True)

    def test_a_read_only_disk_does_not_harm(self):
        folder = self.mounted("ro,size=1m")
        self.compare(victim("ends"), "return", 1000, directory=folder)
        self.assertEqual(self.captures, [])


if __name__ == "__main__":
    main()
