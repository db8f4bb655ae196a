# SPDX-License-Identifier: Apache-2.0
"""The real libnccl without a GPU: it refuses every call, but says in NVTX what it was asked for."""

import sys

from victim import VIRTUAL, VictimTest, has_virtual_gpus, library, main, victim

ALL_REDUCE, ALL_GATHER = 1, 2
INVALID_ARGUMENT = 4

# As pynccl calls it: the hook is not in the way, NVTX is.
BY_HANDLE = """
import ctypes
nccl = ctypes.CDLL("libnccl.so.2")
for _ in range(10):
    print(nccl.ncclAllReduce(None, None, ctypes.c_size_t(1024), 7, 0, None, None))
"""


class RealNccl(VictimTest):
    def setUp(self):
        super().setUp()
        if not victim("nccl_null").exists():
            self.skipTest("libnccl.so.2 is not beside the CUDA libraries")

    def payload_bytes(self, capture):
        return [record["bytes"] for record in capture.of("ncclPayload") if record["bytes"] > 0]

    def test_payloads_and_calls_arrive(self):
        self.compare(victim("nccl_null"))
        capture = self.one_capture()
        self.assertEqual(self.payload_bytes(capture), [1024 * 4] * 20 + [512 * 8])
        self.assertEqual(capture.names("nvtxPush"), ["ncclAllReduce"] * 20 + ["ncclAllGather"])
        self.assertEqual([capture.strings[record["domain"]] for record in capture.of("nvtxPush")], ["NCCL"] * 21)
        calls = capture.of("ncclCall")
        self.assertEqual([call["op"] for call in calls], [ALL_REDUCE] * 20 + [ALL_GATHER])
        self.assertEqual([call["count"] for call in calls], [1024] * 20 + [512])
        self.assertEqual({call["result"] for call in calls}, {INVALID_ARGUMENT})

    def test_a_library_opened_by_ctypes_tells_its_payloads(self):
        self.compare(sys.executable, "-c", BY_HANDLE)
        capture = self.one_capture()
        self.assertEqual(self.payload_bytes(capture), [4096] * 10)
        self.assertEqual(len(capture.of("ncclCall")), 0)

    def test_the_users_switch_for_nccls_nvtx_is_respected(self):
        self.compare(victim("nccl_null"), environment={"NCCL_NVTX_DISABLE": "1"})
        self.assertEqual(self.payload_bytes(self.one_capture()), [])


class VirtualNccl(VictimTest):
    def setUp(self):
        super().setUp()
        if not has_virtual_gpus() or not victim("nccl_pair").exists():
            self.skipTest("virtual GPUs are not built")

    def rank_of(self, capture):
        """What the communicator says; the environment may have come too late for the header."""
        return next((record["rank"] for record in reversed(capture.of("rankIdentity"))), capture.header["rank"])

    def test_both_ranks_are_recorded_with_one_communicator(self):
        outcome = self.compare(victim("nccl_pair"), gpu=VIRTUAL)
        self.assertIn(b"rank 1: value 1536", outcome.out)
        users = [capture for capture in self.captures if capture.of("ncclCall")]
        self.assertEqual(sorted(self.rank_of(capture) for capture in users), [0, 1])
        for capture in users:
            self.assertEqual([call["op"] for call in capture.of("ncclCall")], [ALL_REDUCE] * 10)
            self.assertEqual(len(capture.of("pluginColl")), 10)
        self.assertEqual(len({capture.of("communicator")[-1]["hash"] for capture in users}), 1)

    def test_calls_with_settings_of_their_own_are_recorded_and_their_tags_reach_a_plugin(self):
        outcome = self.compare(victim("nccl_pair"), "settings", gpu=VIRTUAL,
                               environment={"NCCL_PROFILER_PLUGIN": str(library("user_nccl_plugin_v7"))})
        self.assertIn(b"rank 1: value 1536", outcome.out)
        for rank in (0, 1):
            self.assertIn(f"user's plugin, rank {rank}: 10 started, 10 stopped, 2560 elements, tag 77".encode(), outcome.out)
        users = [capture for capture in self.captures if capture.of("ncclCall")]
        self.assertEqual(len(users), 2)
        for capture in users:
            self.assertEqual([call["op"] for call in capture.of("ncclCall")], [ALL_REDUCE] * 10)
            self.assertEqual([call["count"] for call in capture.of("ncclCall")], [256] * 10)
            self.assertEqual(len(capture.of("pluginColl")), 10)

    def test_a_profiler_plugin_of_the_users_is_kept_and_called(self):
        outcome = self.compare(victim("nccl_pair"), gpu=VIRTUAL, environment={"NCCL_PROFILER_PLUGIN": str(library("user_nccl_plugin"))})
        for rank in (0, 1):
            self.assertIn(f"user's plugin, rank {rank}: 10 started, 10 stopped, 2560 elements".encode(), outcome.out)
        for capture in self.captures:
            self.assertEqual(len(capture.of("pluginColl")), len(capture.of("ncclCall")))


if __name__ == "__main__":
    main()
