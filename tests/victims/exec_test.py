# SPDX-License-Identifier: Apache-2.0
"""exec keeps the process id: what the old image recorded stays and says how it ended, and the new one has a file of its own."""

from victim import VIRTUAL, VictimTest, gpu_kinds, main, victim

WAYS = ("execl", "execle", "execlp", "execv", "execve", "execvp", "execvpe", "fexecve")
EXEC, EXEC_FAILED = 4, 5


def causes(capture):
    return [record["cause"] for record in capture.of("processEnd")]


class Exec(VictimTest):
    def test_both_images_are_recorded_and_the_first_says_that_it_became_another(self):
        for gpu in gpu_kinds():
            for how in WAYS:
                with self.subTest(gpu=gpu, how=how):
                    outcome = self.compare(victim("exec"), how, 400, 600, gpu=gpu)
                    self.assertEqual(outcome.returncode, 9)
                    self.assertIn(b"exec: second image with 600 calls", outcome.out)
                    first, second = sorted(self.captures, key=lambda capture: capture.calls())
                    self.assertEqual((first.calls(), second.calls()), (401, 600))
                    self.assertEqual(first.header["pid"], second.header["pid"])
                    self.assertEqual(causes(first)[-1], EXEC)
                    self.assertEqual([record["code"] for record in second.of("processEnd")], [9])

    def test_an_exec_that_fails_takes_its_last_word_back(self):
        for how in WAYS:
            with self.subTest(how=how):
                outcome = self.compare(victim("exec"), how, 30, 0, gpu=VIRTUAL)
                self.assertEqual(outcome.returncode, -9)
                capture = self.one_capture()
                self.assertCalls(capture, 31)
                self.assertIn(causes(capture), ([], [EXEC, EXEC_FAILED]))


if __name__ == "__main__":
    main()
