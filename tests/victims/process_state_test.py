# SPDX-License-Identifier: Apache-2.0
"""What belongs to the program stays the program's: errno, signals, file descriptors, environment."""

import re

from victim import VictimTest, gpu_kinds, main, victim

OURS = ("LD_PRELOAD=", "LD_LIBRARY_PATH=", "RANKSCOPE_", "NVTX_INJECTION64_PATH=", "CUDA_INJECTION64_PATH=", "NCCL_PROFILER_PLUGIN=")


class ProcessState(VictimTest):
    def test_errno_is_what_it_would_be(self):
        for gpu in gpu_kinds():
            with self.subTest(gpu=gpu):
                outcome = self.compare(victim("errno"), gpu=gpu)
                self.assertIn(b"changed 0 times", outcome.out)

    def test_handlers_mask_and_pending_signals_are_the_programs(self):
        for gpu in gpu_kinds():
            with self.subTest(gpu=gpu):
                outcome = self.compare(victim("signals"), gpu=gpu)
                self.assertIn(b"blocked signal waits: 1", outcome.out)

    def test_a_handler_that_records_breaks_nothing_of_the_thread_that_it_interrupts(self):
        outcome = self.run_injected(victim("signal_storm"), 600)
        told = re.fullmatch(rb"(\d+) ranges, (\d+) marks\n", outcome.out)
        self.assertIsNotNone(told, outcome)
        ranges, marks = map(int, told.groups())
        capture = self.one_capture()
        pushed, popped, marked = (len(capture.of(kind)) for kind in ("nvtxPush", "nvtxPop", "nvtxMark"))
        self.assertEqual(pushed + popped + marked + capture.lost(), 2 * ranges + marks)
        self.assertGreater(marked, marks / 2)  # what is refused in the middle of a push is little
        self.assertEqual(capture.of("readerLoss"), [])
        self.assertEqual(set(capture.names("nvtxPush") + capture.names("nvtxMark")), {"begins", "range", "of the handler"})

    def test_closing_every_descriptor_does_not_lead_records_into_the_programs_file(self):
        for gpu in gpu_kinds():
            with self.subTest(gpu=gpu):
                outcome = self.compare(victim("descriptors"), "close", self.folder / "own", gpu=gpu)
                self.assertIn(b"5 bytes: mine", outcome.out)

    def test_taking_every_descriptor_does_not_lead_records_into_the_programs_file(self):
        for gpu in gpu_kinds():
            with self.subTest(gpu=gpu):
                outcome = self.compare(victim("descriptors"), "take", self.folder / "own", gpu=gpu)
                self.assertIn(b"5 bytes: mine", outcome.out)

    def test_the_environment_is_the_programs_but_for_our_names(self):
        own = {"VICTIM_OLD": "old", "VICTIM_GONE": "gone", "VICTIM_KEPT": "kept"}
        plain = self.run_plain(victim("environment"), environment=own)
        injected = self.run_injected(victim("environment"), environment=own)
        self.assertEqual(injected.returncode, plain.returncode)
        self.assertEqual(self.without_ours(injected.out), self.without_ours(plain.out))
        self.assertCalls(self.one_capture(), 10)

    def without_ours(self, out):
        lines = out.decode().splitlines()
        return [line for line in lines if not line.split(" ", 1)[-1].startswith(OURS)]


if __name__ == "__main__":
    main()
