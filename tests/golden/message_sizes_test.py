#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rank that receives less than its peer sends: neither message ends, and the finding names the two sizes, not who was killed when the job ended."""

import unittest

from virtual_run import RANKSCOPE, VirtualRunTest

# Each rank is a process; rank 0 leaves NCCL's id in a file. The third message is the one that does not fit.
JOB = """
import ctypes, os, pathlib, subprocess, sys, time
if "RANK" not in os.environ:
    ranks = [subprocess.Popen([sys.executable, "-c", os.environ["JOB"]], env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2")) for rank in range(2)]
    sys.exit(max(rank.wait() for rank in ranks))
class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]
cuda, nccl = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libnccl.so.2")
rank, told, unique = int(os.environ["RANK"]), pathlib.Path("id"), Id()
assert cuda.cudaSetDevice(rank) == 0
if rank == 0:
    assert nccl.ncclGetUniqueId(ctypes.byref(unique)) == 0
    pathlib.Path("id.new").write_bytes(bytes(unique))
    os.rename("id.new", told)
while not told.exists():
    time.sleep(0.01)
ctypes.memmove(ctypes.byref(unique), told.read_bytes(), 128)
nccl.ncclCommInitRank.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, Id, ctypes.c_int]
communicator, memory = ctypes.c_void_p(), ctypes.c_void_p()
assert nccl.ncclCommInitRank(ctypes.byref(communicator), 2, unique, rank) == 0
assert cuda.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(1 << 20)) == 0
FLOAT = 7
for number in range(3):
    elements = 1000 if rank == 0 or number < 2 else 500
    move = nccl.ncclSend if rank == 0 else nccl.ncclRecv
    assert move(memory, ctypes.c_size_t(elements), FLOAT, 1 - rank, communicator, None) == 0
    cuda.cudaDeviceSynchronize()
"""


class MessageSizes(VirtualRunTest):
    def test_a_message_whose_ends_differ_in_size_is_a_mismatch_and_nobody_was_killed(self):
        self.run_any(RANKSCOPE, "run", "--virtual", "-o", "short", "--", "python3", "-c", JOB, environment={"JOB": JOB})
        report = self.report("short", status=5)  # the run failed
        self.assertEqual([(finding["id"], finding["ranks"]) for finding in report["findings"]], [("RS502", [0, 1])])
        cause = report["findings"][0]["cause"]
        for said in ("rank 0 called send 2 to rank 1", "3.91 KiB", "rank 1 called recv 2 from rank 0", "1.95 KiB", "they differ in size"):
            self.assertIn(said, cause)
        self.assertNotIn("killed", str(report["findings"]))


if __name__ == "__main__":
    unittest.main()
