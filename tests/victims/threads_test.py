# SPDX-License-Identifier: Apache-2.0
"""Every thread's calls are there, also of threads that live a moment, end in odd ways or call from their destructors."""

from victim import VictimTest, gpu_kinds, main, victim

CALLS = {"many": 4000, "crowd": 600, "storm": 600, "pthread_exit": 100, "thread_local": 60, "small_stack": 5}


class Threads(VictimTest):
    def test_no_call_of_any_thread_is_missing(self):
        for gpu in gpu_kinds():
            for shape, calls in CALLS.items():
                with self.subTest(shape=shape, gpu=gpu):
                    self.compare(victim("threads"), shape, gpu=gpu)
                    self.assertCalls(self.one_capture(), calls)

    def test_calls_of_a_thread_keep_their_order(self):
        self.compare(victim("threads"), "many")
        capture = self.one_capture()
        threads = {}
        for record in capture.of("apiCall"):
            threads.setdefault(record["thread"], []).append(record)
        self.assertEqual([len(records) for records in threads.values()], [500] * 8)
        for records in threads.values():
            self.assertEqual([record["seq"] for record in records], list(range(records[0]["seq"], records[0]["seq"] + 500)))
            starts = [record["startNs"] for record in records]
            self.assertEqual(starts, sorted(starts))


if __name__ == "__main__":
    main()
