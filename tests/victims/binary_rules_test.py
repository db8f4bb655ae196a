# SPDX-License-Identifier: Apache-2.0
"""What the injector and the tuner plugin are made of, read from their binaries: few symbols shown, few libraries needed, an old glibc enough."""

import pathlib
import re
import shutil
import subprocess
import unittest

from victim import INJECTOR, main

SHOWN = re.compile(r"(nccl[A-Z]\w+|cuda[A-Z]\w+|__cuda[A-Z]\w+|cupti[A-Z]\w+|ncclProfiler_v\d+|_exit|_Exit|quick_exit|f?execv\w*|execl[pe]?|dlclose|InitializeInjection(Nvtx2|NvtxExtension)?|rankscopeInjector|rankscopeTellTuner)")
NEEDED = {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
# What ends the process, prints, takes signals, or calls the job's getenv and setenv behind its back.
FORBIDDEN = {"exit", "abort", "__assert_fail", "__cxa_throw", "_ZSt9terminatev", "printf", "puts", "putchar", "fprintf", "vprintf", "fputs", "fwrite",
             "perror", "signal", "sigaction", "sigaltstack", "raise", "realloc", "_Znwm", "setenv", "putenv", "unsetenv"}
NEWEST_GLIBC = (2, 28)


@unittest.skipUnless(shutil.which("readelf"), "needs readelf")
class BinaryRules(unittest.TestCase):
    library = INJECTOR
    needed = NEEDED

    def readelf(self, *options):
        return subprocess.run(["readelf", "-W", *options, self.library], capture_output=True, text=True, check=True).stdout

    def symbols(self):
        """(name without version, is defined here) of every dynamic symbol."""
        for line in self.readelf("--dyn-syms").splitlines():
            fields = line.split()
            if len(fields) >= 8 and fields[0].rstrip(":").isdigit():
                yield fields[7].split("@")[0], fields[6] != "UND"

    def test_only_hooks_and_entry_points_are_shown(self):
        shown = {name for name, defined in self.symbols() if defined}
        self.assertIn("ncclAllReduce", shown)
        self.assertEqual({name for name in shown if not SHOWN.fullmatch(name)}, set())

    def test_the_hooks_todays_compilers_and_libraries_call_are_there(self):
        shown = {name for name, defined in self.symbols() if defined}
        expected = {"__cudaLaunchKernel", "__cudaLaunchKernel_ptsz", "cudaLaunchKernel", "cudaLaunchKernel_ptsz", "cudaLaunchKernelExC",
                    "cudaLaunchKernelExC_ptsz", "cudaLaunchCooperativeKernel", "cudaGraphLaunch", "cudaMalloc", "cudaFree", "cudaMallocAsync",
                    "cudaMemcpyAsync", "cudaMemcpyAsync_ptsz", "cudaMemsetAsync", "cudaStreamSynchronize", "cudaStreamSynchronize_ptsz",
                    "cudaEventSynchronize", "cudaDeviceSynchronize", "ncclAllGather", "ncclReduceScatter", "ncclBroadcast", "ncclSend", "ncclRecv",
                    "ncclGroupStart", "ncclGroupEnd", "ncclCommInitRank", "ncclCommInitRankConfig", "ncclCommInitAll", "ncclCommSplit", "ncclCommShrink", "ncclCommGrow",
                    "ncclCommDestroy", "ncclCommAbort", "ncclCommFinalize", "ncclProfiler_v3", "ncclProfiler_v4", "ncclProfiler_v5",
                    "ncclProfiler_v6", "ncclProfiler_v7", "ncclAllReduceConfig", "ncclAllGatherConfig", "ncclReduceScatterConfig",
                    "ncclAlltoAllConfig", "ncclBroadcastConfig", "ncclReduceConfig", "ncclGatherConfig", "ncclScatterConfig",
                    "InitializeInjection", "InitializeInjectionNvtx2", "InitializeInjectionNvtxExtension"}
        self.assertEqual(expected - shown, set())

    def test_only_the_c_library_is_needed(self):
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", self.readelf("-d")))
        self.assertIn("libc.so.6", needed)
        self.assertEqual(needed - self.needed, set())
        self.assertEqual(re.findall(r"\((?:RPATH|RUNPATH)\).*", self.readelf("-d")), [])

    def test_what_an_old_glibc_has_elsewhere_may_be_missing(self):
        """glibc before 2.34 has these in libdl and libpthread, which every process of the job would have to load."""
        for name in ("dlsym", "dlopen", "dladdr", "dlerror", "pthread_create", "pthread_key_create", "pthread_setspecific", "pthread_attr_setstacksize", "pthread_mutex_trylock"):
            for line in self.readelf("--dyn-syms").splitlines():
                if line.split()[-1:] and re.search(rf"\b{name}@", line):
                    self.assertIn(" WEAK ", line)
        elsewhere = {"pthread_detach", "pthread_getspecific", "pthread_once", "pthread_sigmask", "pthread_join", "pthread_kill", "sem_wait", "sem_post", "dlclose", "dlvsym", "dlinfo"}
        self.assertEqual({name for name, defined in self.symbols() if not defined} & elsewhere, set())

    def test_few_pages_are_put_right_at_the_start_of_a_process(self):
        """Each costs every short process of the job: tables have no addresses in them."""
        pages = {line.split()[0][:-3] for line in self.readelf("-r").splitlines() if " R_" in line}
        self.assertLessEqual(len(pages), 4)

    def test_an_old_glibc_is_enough(self):
        versions = [tuple(int(part) for part in version.split(".")) for version in re.findall(r"Name: GLIBC_([\d.]+)", self.readelf("-V"))]
        self.assertGreater(len(versions), 0)
        self.assertLessEqual(max(versions), NEWEST_GLIBC)

    def test_nothing_that_ends_prints_or_throws_is_called(self):
        undefined = {name for name, defined in self.symbols() if not defined}
        self.assertIn("dlsym", undefined)
        self.assertEqual(undefined & FORBIDDEN, set())
        self.assertEqual({name for name in undefined if name.startswith(("_ZN", "_ZS", "__cxa_", "__gxx"))} - {"__cxa_finalize", "__cxa_atexit", "__cxa_at_quick_exit"}, set())

    def test_the_stack_is_not_executable(self):
        stack = [line.split() for line in self.readelf("-l").splitlines() if "GNU_STACK" in line]
        self.assertEqual(len(stack), 1)
        self.assertNotIn("E", stack[0][6])


class TunerBinaryRules(BinaryRules):
    library = pathlib.Path(INJECTOR).with_name("librankscope_tuner.so")
    needed = NEEDED | {"libdl.so.2", "libpthread.so.0"}

    def test_only_hooks_and_entry_points_are_shown(self):
        shown = {name for name, defined in self.symbols() if defined}
        self.assertEqual(shown, {f"ncclTunerPlugin_v{version}" for version in range(2, 8)} | {"rankscopeTuner"})

    test_the_hooks_todays_compilers_and_libraries_call_are_there = None  # it has no hooks


if __name__ == "__main__":
    main()
