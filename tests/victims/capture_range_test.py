# SPDX-License-Identifier: Apache-2.0
"""cudaProfilerStart and cudaProfilerStop open and close the capture range; the job is the same."""

from victim import VictimTest, gpu_kinds, main, victim


class CaptureRange(VictimTest):
    def calls(self, capture_range, gpu):
        self.compare(victim("capture_range"), gpu=gpu, environment={"RANKSCOPE_CAPTURE_RANGE": capture_range} if capture_range else {})
        return self.one_capture()

    def test_calls_inside_are_recorded_and_calls_outside_are_not(self):
        for gpu in gpu_kinds():
            with self.subTest(gpu=gpu):
                self.assertCalls(self.calls("cudaProfilerApi", gpu), 4020)
                self.assertCalls(self.calls("", gpu), 54321)
                self.assertCalls(self.calls("nvtx:never", gpu), 0)


if __name__ == "__main__":
    main()
