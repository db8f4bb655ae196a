# SPDX-License-Identifier: Apache-2.0
"""Tools of the user's own come first: they see what they see alone, and the capture says what that cost it."""

import subprocess

from victim import REAL, SOURCE_CUPTI, STATUS_REFUSED, STATUS_TAKEN, VIRTUAL, VictimTest, gpu_kinds, has_virtual_gpus, library, main, victim


class Tools(VictimTest):
    def setUp(self):
        super().setUp()
        if not victim("cupti_client").exists() and "cupti" in self.id():
            self.skipTest("no libcupti")

    def test_a_cupti_client_that_was_first_keeps_its_trace(self):
        for gpu in gpu_kinds():
            with self.subTest(gpu=gpu):
                outcome = self.compare(victim("cupti_client"), "first", gpu=gpu)
                if gpu == VIRTUAL:
                    self.assertIn(b"subscribe 0", outcome.out)
                    self.assertIn(b"records 25, calls 25", outcome.out)
                    self.assertIn(STATUS_TAKEN, [status for status, _ in self.source_status(self.one_capture(), SOURCE_CUPTI)])

    def test_a_cupti_client_that_comes_second_sees_what_it_sees_alone(self):
        for gpu in gpu_kinds():
            with self.subTest(gpu=gpu):
                self.compare(victim("cupti_client"), "second", gpu=gpu)

    def test_nvtx_ranges_arrive(self):
        self.compare(victim("nvtx_ranges"))
        capture = self.one_capture()
        self.assertEqual(capture.names("nvtxPush"), ["outer", "inner"] * 10 + ["registered"])
        self.assertEqual(len(capture.of("nvtxPop")), 21)
        self.assertEqual(capture.names("nvtxMark"), ["mark"] * 10)
        self.assertEqual(capture.names("nvtxStart"), ["started"])
        self.assertEqual([record["rangeId"] for record in capture.of("nvtxEnd")], [record["rangeId"] for record in capture.of("nvtxStart")])
        self.assertEqual(capture.strings[capture.of("nvtxPush")[-1]["domain"]], "victim domain")

    def test_an_nvtx_tool_of_the_users_is_kept(self):
        outcome = self.compare(victim("nvtx_ranges"), environment={"NVTX_INJECTION64_PATH": str(library("user_nvtx_tool"))})
        self.assertIn(b"user's NVTX tool: 20 pushes", outcome.out)

    def test_a_cuda_injection_of_the_users_is_kept_and_called(self):
        for gpu in gpu_kinds():
            with self.subTest(gpu=gpu):
                outcome = self.compare(victim("fork"), 5, 0, 3, gpu=gpu, environment={"CUDA_INJECTION64_PATH": str(library("user_cuda_tool"))})
                if gpu == VIRTUAL:
                    self.assertEqual(outcome.out.count(b"user's CUDA tool: called"), 1)
                self.assertCalls(self.one_capture(), 8)

    def test_sources_that_were_refused_say_why(self):
        self.run_injected(victim("fork"), 5, 0, 3, gpu=REAL)
        statuses = self.one_capture().of("status", source=SOURCE_CUPTI)
        has_driver = subprocess.run(["/bin/sh", "-c", "/sbin/ldconfig -p | grep -q libcuda.so.1"]).returncode == 0
        if has_driver:
            self.skipTest("a driver is here: CUPTI is not refused")
        self.assertEqual([record["status"] for record in statuses], [STATUS_REFUSED], statuses)
        self.assertNotEqual(self.captures[0].strings[statuses[0]["message"]], "")

    def test_sources_not_asked_for_stay_away(self):
        outcome = self.compare(victim("fork"), 5, 0, 3, environment={"RANKSCOPE_TRACE": "nvtx"})
        self.assertEqual(outcome.returncode, 0)
        self.assertEqual(sum(capture.calls() for capture in self.captures), 0)

    def test_virtual_device_work_is_recorded(self):
        if not has_virtual_gpus():
            self.skipTest("virtual GPUs are not built")
        self.compare(victim("launch_shared"), gpu=VIRTUAL)
        capture = self.one_capture()
        self.assertEqual([status for status, _ in self.source_status(capture, SOURCE_CUPTI)][0], 1)
        self.assertEqual(capture.header["virtualGpu"], 1)


if __name__ == "__main__":
    main()
