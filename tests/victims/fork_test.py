# SPDX-License-Identifier: Apache-2.0
"""A forked child records for itself alone, or not at all; the parent's recording goes on."""

from victim import REAL, VictimTest, gpu_kinds, main, victim


class Fork(VictimTest):
    def by_parent(self):
        """The parent's capture, then the children's."""
        pids = {capture.header["pid"] for capture in self.captures}
        return sorted(self.captures, key=lambda capture: capture.header["parentPid"] in pids)

    def test_a_child_that_leaves_the_gpu_alone_leaves_no_file(self):
        for gpu in gpu_kinds():
            with self.subTest(gpu=gpu):
                self.compare(victim("fork"), 5, 0, 3, gpu=gpu)
                self.assertCalls(self.one_capture(), 8)

    def test_a_child_that_uses_the_gpu_has_a_file_of_its_own(self):
        for gpu in gpu_kinds():
            with self.subTest(gpu=gpu):
                self.compare(victim("fork"), 0, 7, 3, gpu=gpu)
                parents = [capture for capture in self.captures if capture.calls() == 3]
                children = [capture for capture in self.captures if capture.calls() == 7]
                self.assertEqual((len(parents), len(children), len(self.captures)), (1, 1, 2))
                self.assertEqual(children[0].of("processEnd")[0]["code"], 7)

    def test_a_child_of_a_recorded_parent_begins_anew(self):
        self.compare(victim("fork"), 5, 7, 3, gpu=REAL)
        self.assertEqual(len(self.captures), 2)
        parent, child = self.by_parent()
        self.assertCalls(parent, 8)
        self.assertCalls(child, 7)
        self.assertEqual(child.header["parentPid"], parent.header["pid"])

    def test_forks_among_busy_threads_never_hang(self):
        # The busy threads make millions of calls, and the first ones are enough.
        outcome = self.compare(victim("fork_busy"), 40, environment={"RANKSCOPE_MAX_BYTES": "1000000"})
        self.assertEqual(outcome.out, b"40 children ended well\n")
        parent, *children = self.by_parent()
        self.assertEqual([child.calls() for child in children], [3] * 40)
        self.assertGreater(parent.calls(), 0)

    def test_forks_during_the_first_call_never_hang(self):
        # Forks 25 us apart reach from before the first call to behind it.
        outcome = self.compare(victim("fork_start"), 80, 25)
        self.assertEqual(outcome.out, b"80 children ended well\n")
        calls = sorted(capture.calls() for capture in self.captures)
        self.assertEqual(calls.count(3), 80)
        self.assertEqual(set(calls), {2, 3})

    def test_vfork_children_do_not_touch_the_parents_recording(self):
        for gpu in gpu_kinds():
            with self.subTest(gpu=gpu):
                self.compare(victim("vfork"), gpu=gpu)
                self.assertCalls(self.one_capture(), 30)


if __name__ == "__main__":
    main()
