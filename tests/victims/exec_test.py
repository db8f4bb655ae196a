# SPDX-License-Identifier: Apache-2.0
"""exec keeps the process id: what the old image recorded stays, and the new one has a file of its own."""

from victim import VictimTest, gpu_kinds, main, victim


class Exec(VictimTest):
    def test_both_images_are_recorded(self):
        for gpu in gpu_kinds():
            with self.subTest(gpu=gpu):
                outcome = self.compare(victim("exec"), 400, 600, gpu=gpu)
                self.assertEqual(outcome.returncode, 9)
                self.assertEqual(sorted(capture.calls() for capture in self.captures), [400, 600])
                self.assertEqual(len({capture.header["pid"] for capture in self.captures}), 1)


if __name__ == "__main__":
    main()
