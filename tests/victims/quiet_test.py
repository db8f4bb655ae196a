# SPDX-License-Identifier: Apache-2.0
"""A process that does not use the GPU is left alone: no file, no thread, no variable its shell would trip over."""

import sys

from victim import INJECTOR, VictimTest, main

BYSTANDERS = [
    ["/bin/true"],
    ["/bin/false"],
    ["/bin/sh", "-c", "echo a | cat; exit 3"],
    ["/bin/bash", "-c", "x=$(echo inner); echo $x; (exit 4)"],
    [sys.executable, "-c", "print('python')"],
    [sys.executable, "-c", "import os, sys; os._exit(5)"],
    [sys.executable, "-c", "import multiprocessing as m; p = m.Process(target=print, args=('child',)); p.start(); p.join()"],
    [sys.executable, "-c", "import subprocess; print(subprocess.run(['/bin/sh', '-c', 'exit 9']).returncode)"],
]
STATUS = "print([line for line in open('/proc/self/status') if line.startswith(('Threads', 'SigBlk', 'SigIgn', 'SigCgt'))])"
DESCRIPTORS = "import os; print(sorted(os.listdir('/proc/self/fd')))"


class Quiet(VictimTest):
    def test_bystanders_leave_no_file(self):
        for command in BYSTANDERS:
            with self.subTest(command=command):
                self.compare(*command)
                self.assertEqual(list(self.capture_folder.iterdir()), [])

    def test_no_thread_no_signal_and_no_descriptor_in_a_bystander(self):
        for program in (STATUS, DESCRIPTORS):
            with self.subTest(program=program):
                self.compare(sys.executable, "-c", program)

    def test_without_a_folder_to_record_into_nothing_is_touched(self):
        plain = self.run_plain("/usr/bin/env")
        armed = self.run_injected("/usr/bin/env", environment={})
        lines = lambda outcome: {line for line in outcome.out.decode().splitlines() if not line.startswith(("LD_PRELOAD=", "RANKSCOPE_"))}
        added = {line.split("=")[0] for line in lines(armed) - lines(plain)}
        self.assertEqual(added, {"NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH", "NCCL_PROFILER_PLUGIN"})
        self.assertEqual(lines(plain) - lines(armed), set())
        preloaded_only = self.run_plain("/usr/bin/env", preload=INJECTOR)
        self.assertEqual(lines(preloaded_only), lines(plain))


if __name__ == "__main__":
    main()
