# SPDX-License-Identifier: Apache-2.0
"""What the victim tests share: a program run with and without the injector, what it showed compared, and what was captured read back."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

INJECTOR = os.environ.get("VICTIMS_INJECTOR", "")
FOLDER = pathlib.Path(os.environ.get("VICTIMS_FOLDER", "."))
CUDA_PATH = os.environ.get("VICTIMS_CUDA_PATH", "")
VGPU = pathlib.Path(os.environ.get("VICTIMS_VGPU", "/nonexistent"))
TIMEOUT_S = 120
SKIPPED = 77
FILE_HEADER_BYTES = 4096

# records.h: CudaApi, Source, LossKind, StatusRecord.
STREAM_SYNCHRONIZE = 30
SOURCE_HOOKS, SOURCE_CUPTI, SOURCE_NVTX = 1, 2, 3
LOSS_RING_FULL, LOSS_IO_ERROR = 1, 5
STATUS_REFUSED, STATUS_TAKEN, STATUS_SHUT_DOWN = 2, 3, 4

REAL, VIRTUAL = "real CUDA runtime", "virtual GPUs"


def has_virtual_gpus():
    return (VGPU / "libcudart.so.13").exists()


def gpu_kinds():
    """The CUDA runtimes to run against: the toolkit's, which refuses without a driver, and the virtual GPUs where they are built."""
    return [REAL] + ([VIRTUAL] if has_virtual_gpus() else [])


class Unreadable(AssertionError):
    """capture_dump says that a file is no capture."""


class Capture:
    """One capture file, read by capture_dump."""

    def __init__(self, path):
        self.path = path
        dump = subprocess.run([FOLDER / "capture_dump", path], capture_output=True, text=True, timeout=TIMEOUT_S)
        if dump.returncode != 0:
            raise Unreadable(f"{path} cannot be read: {dump.stderr}")
        self.records = [json.loads(line) for line in dump.stdout.splitlines()]
        self.header = self.records[0]
        self.strings = {0: ""}
        self.strings.update((record["id"], record["text"]) for record in self.of("string"))

    def of(self, kind, /, **fields):
        return [record for record in self.records if record["type"] == kind and all(record[name] == value for name, value in fields.items())]

    def calls(self):
        return len(self.of("apiCall", api=STREAM_SYNCHRONIZE))

    def lost(self):
        """Records that found their ring full: told by loss records, or, after a kill, found by the reader."""
        return (sum(record["count"] for record in self.of("loss", kind=LOSS_RING_FULL))
                + sum(record["count"] for record in self.of("readerLoss", kind="ring full")))

    def names(self, kind):
        return [self.strings.get(record["name"], "?") for record in self.of(kind)]


class Outcome:
    def __init__(self, returncode, out, err):
        self.returncode, self.out, self.err = returncode, out, err

    def __eq__(self, other):
        return (self.returncode, self.out, self.err) == (other.returncode, other.out, other.err)

    def __repr__(self):
        return f"status {self.returncode}\nstdout: {self.out.decode(errors='replace')}\nstderr: {self.err.decode(errors='replace')}"


class VictimTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rankscope-victims-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self._runs = 0
        self.captures = []
        self.capture_folder = None

    def environment(self, gpu):
        ours = ("RANKSCOPE_", "VICTIMS_", "OMPI_", "PMIX_", "PMI_", "SLURM_", "LD_", "NVTX_INJECTION", "CUDA_INJECTION", "NCCL_PROFILER")
        variables = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        variables["LD_LIBRARY_PATH"] = f"{VGPU}:{CUDA_PATH}" if gpu == VIRTUAL else CUDA_PATH
        if gpu == VIRTUAL:
            # Set on both sides: the job of the virtual GPUs has a name of its own in each run.
            variables["RANKSCOPE_VGPU_JOB"] = f"{self.folder.name}.{self._runs}"
        return variables

    def execute(self, command, environment, meanwhile=None, **options):
        """`meanwhile`: is given the process, which leads a group of its own."""
        process = subprocess.Popen([str(word) for word in command], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, cwd=options.pop("cwd", self.folder), start_new_session=True, **options)
        try:
            if meanwhile:
                meanwhile(process)
            out, err = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            self.fail(f"no end within {TIMEOUT_S} s: {command}")
        return Outcome(process.returncode, out, err)

    def run_plain(self, *command, gpu=REAL, preload="", environment=None, **options):
        self._runs += 1
        variables = dict(self.environment(gpu), **(environment or {}))
        if preload:
            variables["LD_PRELOAD"] = preload
        return self.execute(command, variables, **options)

    def run_injected(self, *command, gpu=REAL, preload="", environment=None, directory=None, injectors=INJECTOR, may_be_cut=False, is_read=True,
                     **options):
        """`preload`: the user's own, which keeps its place behind ours. `may_be_cut`: a file may end inside its header. `is_read`: false leaves self.captures empty. What was captured is in self.captures afterwards."""
        self._runs += 1
        self.capture_folder = directory if directory is not None else self.folder / f"capture{self._runs}"
        if directory is None:
            self.capture_folder.mkdir()
        variables = dict(self.environment(gpu), **(environment or {}))
        variables["LD_PRELOAD"] = ":".join(part for part in (injectors, preload) if part)
        variables["RANKSCOPE_DIR"] = str(self.capture_folder)
        if gpu == VIRTUAL:
            variables["RANKSCOPE_CLOCK"] = "cupti"
        outcome = self.execute(command, variables, **options)
        files = sorted(pathlib.Path(self.capture_folder).glob("*.cap")) if is_read and pathlib.Path(self.capture_folder).is_dir() else []
        self.captures = [Capture(path) for path in files if not (may_be_cut and path.stat().st_size < FILE_HEADER_BYTES)]
        return outcome

    def compare(self, *command, **options):
        """Runs the command both ways: same bytes on stdout and stderr, same status. Returns what it showed."""
        injected_only = {name: options.pop(name) for name in ("directory", "injectors", "may_be_cut") if name in options}
        plain = self.run_plain(*command, **options)
        injected = self.run_injected(*command, **options, **injected_only)
        self.assertEqual(injected, plain, f"with and without the injector: {command}")
        return injected

    def assertCalls(self, capture, expected):
        """Every call is there once, or counted as lost; few calls never overrun a ring."""
        self.assertEqual(capture.calls() + capture.lost(), expected)
        if expected <= 10000:
            self.assertEqual(capture.lost(), 0)

    def one_capture(self):
        self.assertEqual(len(self.captures), 1, [capture.path.name for capture in self.captures])
        return self.captures[0]

    def left_rings(self):
        return sorted(path.name for path in self.capture_folder.glob("*.ring"))

    def source_status(self, capture, source):
        return [(record["status"], record["code"]) for record in capture.of("status", source=source)]


def victim(name):
    return FOLDER / f"victim_{name}"


def library(name):
    return FOLDER / f"libvictim_{name}.so"


def main():
    """Runs the tests of the calling module. All skipped: ctest shows the test as skipped."""
    program = unittest.main(module="__main__", exit=False, verbosity=2)
    result = program.result
    if result.wasSuccessful() and result.testsRun > 0 and len(result.skipped) == result.testsRun:
        sys.exit(SKIPPED)
    sys.exit(0 if result.wasSuccessful() and result.testsRun > 0 else 1)
