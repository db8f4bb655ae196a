#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`mpirun -n K rankscope collect|analyze|recommend`: the same trace.db, report and advice as from one process, byte for byte; whatever fails in one process ends them all."""

import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import unittest

from virtual_run import RANKSCOPE, SMALL, VirtualRunTest

LIBRARIES = pathlib.Path(RANKSCOPE).resolve().parents[1] / "lib/rankscope"
OPENMPI = ["--allow-run-as-root", "--oversubscribe"]
MPIS = {"openmpi": (["mpirun.openmpi", *OPENMPI], "OMPI_COMM_WORLD_RANK"), "mpich": (["mpiexec.mpich"], "PMI_RANK")}


# A process that joins the team, says its version, takes so many messages of the first process, says yes to the third (that it sees the same trace, and
# no shards) and is killed: LIBRARY VERSION MESSAGES.
DIES = """
import ctypes, os, signal, struct, sys

class Interface(ctypes.Structure):
    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint64)
    _fields_ = [("version", ctypes.c_int32), ("name", ctypes.c_char_p),
                ("start", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))),
                ("send", call), ("receive", call), ("is_waiting", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)),
                ("broadcast", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_uint64))]

DATA, SHARED, DISMISSAL = 1, 2, 4
library = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
library.rankscope_mpi_interface.restype = ctypes.POINTER(Interface)
mpi = library.rankscope_mpi_interface().contents
mpi.start(ctypes.c_int(), ctypes.c_int())

def send(message):
    for part in (struct.pack("<IIQ", DATA, 0, len(message)), message):
        mpi.send(0, part, len(part))

send(struct.pack("<8s64s64s", b"rsteam", sys.argv[2].encode(), b"node1"))
for number in range(int(sys.argv[3])):
    header = ctypes.create_string_buffer(16)
    mpi.receive(0, header, 16)
    kind, _, length = struct.unpack("<IIQ", header.raw)
    if kind == DISMISSAL:
        sys.exit("dismissed before message " + str(number))
    text = ctypes.create_string_buffer(length)
    if kind == SHARED:
        mpi.broadcast(text, length)
    elif length:
        mpi.receive(0, text, length)
    if number == 2:
        send(bytes([1]) + bytes(8))
os.kill(os.getpid(), signal.SIGKILL)
"""


def usable():
    """What was built and can be started: name, mpirun and its first options, the variable that numbers processes."""
    return [(name, mpirun, variable) for name, (mpirun, variable) in MPIS.items()
            if shutil.which(mpirun[0]) and (LIBRARIES / f"librankscope_mpi_{name}.so").exists()]


class Mpi(VirtualRunTest):
    def setUp(self):
        super().setUp()
        # Many processes that exit at once hang Open MPI 4.1.4 now and then; with one launching thread they do not.
        self.environment["OMPI_MCA_odls_base_num_threads"] = "0"
        self.run_scenario(self.write_scenario(SMALL), "job")
        (self.folder / "job/capture/torn.cap").write_bytes((next((self.folder / "job/capture").glob("*.cap"))).read_bytes()[:5000])
        (self.folder / "job/capture/none.cap").write_bytes(b"no capture")
        self.check_run(RANKSCOPE, "-q", "collect", "job")
        self.trace = self.db("job").read_bytes()

    def db(self, run):
        return self.folder / run / "trace.db"

    def losses(self, run):
        with sqlite3.connect(f"file:{self.db(run)}?mode=ro", uri=True) as trace:
            return trace.execute("SELECT kind, rank FROM loss ORDER BY kind, rank").fetchall()

    def node(self, name, files):
        """A folder that only processes started in it see: files of the run, copied, as the run `job` of a host."""
        capture = self.folder / name / "job/capture"
        capture.mkdir(parents=True)
        for file in files:
            shutil.copy2(file, capture)
        shutil.copy2(self.folder / "job/run.json", self.folder / name / "job")
        return self.folder / name

    def collect_without_unreadable(self):
        """What a file that is no capture leaves in the trace tells its whole path, which is not the same in another folder."""
        (self.folder / "job/capture/none.cap").unlink()
        self.check_run(RANKSCOPE, "-q", "collect", "job")
        self.trace = self.db("job").read_bytes()
        return sorted((self.folder / "job/capture").glob("*.cap"))

    def each(self):
        return [(mpirun, variable) for _, mpirun, variable in usable()]

    def start(self, mpirun, *processes):
        """Of each process its folder and its words."""
        command = list(mpirun)
        for index, (folder, words) in enumerate(processes):
            command += ([":"] if index else []) + ["-n", "1", "-wdir", str(folder), *map(str, words)]
        return command

    def test_trace_and_reports_are_those_of_one_process(self):
        # The report first: it leaves its findings in the trace.
        forms = [["--format", form] for form in ("text", "json", "html")]
        alone = [self.check_run(RANKSCOPE, "-q", "analyze", "job", *form).stdout for form in forms]
        for mpirun, _ in self.each():
            for processes in (1, 2, 4, 7):
                self.db("job").unlink()
                collected = self.check_run(*mpirun, "-n", processes, RANKSCOPE, "collect", "job")
                self.assertEqual(self.db("job").read_bytes(), self.trace)
                self.assertEqual(collected.stderr.count(b"4 ranks"), 1, collected.stderr)
                for form, expected in zip(forms, alone):
                    found = self.check_run(*mpirun, "-n", processes, RANKSCOPE, "-q", "analyze", "job", *form)
                    self.assertEqual(found.stdout, expected)
                    self.assertEqual(found.stderr, b"")

    def test_what_is_played_of_a_pipeline_is_that_of_one_process(self):
        pipeline = {"name": "pipeline", "kind": "3d", "steps": 6, "seed": 176, "cluster": {"nodes": 1, "ranks_per_node": 8},
                    "model": {"layers": 4, "hidden": 8192, "seq": 2048, "micro_batch": 1}, "parallel": {"dp": 2, "tp": 2, "pp": 2, "micro_batches": 3},
                    "faults": [{"kind": "few_micro_batches"}, {"kind": "straggler", "rank": 1, "factor": 1.08}]}
        self.run_scenario(self.write_scenario(pipeline), "pipeline")
        alone = self.check_run(RANKSCOPE, "-q", "analyze", "pipeline", "--format", "json").stdout
        changes = {change.split(":")[0] for finding in json.loads(alone)["findings"] for change in finding["changes"]}
        self.assertEqual(changes, {"micro-batches", "balance"})
        advice = self.check_run(RANKSCOPE, "-q", "recommend", "pipeline", "--format", "json").stdout
        self.assertIn(b"micro_batches", advice)
        for mpirun, _ in self.each():
            for processes in (2, 5):
                found = self.check_run(*mpirun, "-n", processes, RANKSCOPE, "-q", "analyze", "pipeline", "--format", "json")
                self.assertEqual(found.stdout, alone)
                found = self.check_run(*mpirun, "-n", processes, RANKSCOPE, "-q", "recommend", "pipeline", "--format", "json")
                self.assertEqual(found.stdout, advice)
                self.assertEqual(found.stderr, b"")

    def test_advice_is_that_of_one_process(self):
        alone = self.check_run(RANKSCOPE, "-q", "recommend", "job").stdout
        for mpirun, _ in self.each():
            for processes in (1, 2, 4, 7):
                self.db("job").unlink()
                found = self.check_run(*mpirun, "-n", processes, RANKSCOPE, "-q", "recommend", "job")
                self.assertEqual(found.stdout, alone)
                self.assertEqual(found.stderr, b"")

    def test_analyze_collects_together_first(self):
        alone = self.check_run(RANKSCOPE, "-q", "analyze", "job").stdout
        for mpirun, _ in self.each():
            self.db("job").unlink()
            found = self.check_run(*mpirun, "-n", 3, RANKSCOPE, "-q", "analyze", "job")
            self.assertEqual(found.stdout, alone)

    def test_each_host_reads_its_own_captures(self):
        files = self.collect_without_unreadable()
        for mpirun, variable in self.each():
            nodes = [self.node(variable + str(n), files[n::2]) for n in (0, 1)]
            collect = self.start(mpirun, *[(nodes[n], [RANKSCOPE, "-q", "collect", "job"]) for n in (0, 1, 1)])
            shutil.copytree(self.folder / "job/health", nodes[0] / "job/health")
            self.check_run(*collect)
            self.assertEqual((nodes[0] / "job/trace.db").read_bytes(), self.trace)
            (nodes[1] / "job/stacks").mkdir()
            (nodes[1] / "job/stacks/node1.txt").write_text("where a rank stood\n")
            self.check_run(*collect)
            self.assertIn(("stacks", None), self.losses(f"{variable}0/job"))
            shutil.rmtree(nodes[1] / "job/stacks")
            self.check_run(*collect)
            self.assertFalse((nodes[1] / "job/trace.db").exists())
            # The others have no trace.db: that is said, and the first does all.
            found = self.check_run(*self.start(mpirun, *[(nodes[n], [RANKSCOPE, "analyze", "job"]) for n in (0, 1, 1)]))
            self.assertIn(b"2 of 3 processes do not see this", found.stderr)

    def test_a_host_without_the_run_is_told_by_its_ranks(self):
        files = sorted((self.folder / "job/capture").glob("node0*"))
        for mpirun, variable in self.each():
            node = self.node(variable, files)
            (self.folder / (variable + "empty")).mkdir()
            self.check_run(*self.start(mpirun, (node, [RANKSCOPE, "-q", "collect", "job"]),
                                       (self.folder / (variable + "empty"), [RANKSCOPE, "-q", "collect", "job"])))
            self.assertEqual([rank for kind, rank in self.losses(f"{variable}/job") if kind == "missing_rank"], [2, 3])

    def test_a_rank_on_two_hosts_is_one_if_it_is_a_copy_and_a_loss_if_not(self):
        self.run_scenario(self.write_scenario(dict(SMALL, seed=4)), "other")
        files = self.collect_without_unreadable()
        for mpirun, variable in self.each():
            nodes = [self.node(variable + str(n), files) for n in (0, 1)]
            shutil.copytree(self.folder / "job/health", nodes[0] / "job/health", dirs_exist_ok=True)
            command = self.start(mpirun, *[(node, [RANKSCOPE, "-q", "collect", "job"]) for node in nodes])
            self.check_run(*command)
            self.assertEqual((nodes[0] / "job/trace.db").read_bytes(), self.trace)
            for file in (self.folder / "other/capture").glob("node0*"):
                shutil.copy2(file, nodes[1] / "job/capture" / ("again" + file.name))
            self.check_run(*command)
            self.assertEqual([rank for kind, rank in self.losses(f"{variable}0/job") if kind == "duplicate_rank"], [0, 1])

    def test_what_fails_in_one_process_ends_all_with_its_name(self):
        broken = self.folder / "broken/rankscope"
        broken.mkdir(parents=True)
        (broken / "config.toml").write_text("color = 7\n")
        for mpirun, _ in self.each():
            for verb in ("collect", "analyze", "recommend"):
                refused = self.run_any(*self.start(mpirun, (self.folder, [RANKSCOPE, verb, "job"]), (self.folder, [RANKSCOPE, verb, "job"]),
                                                   (self.folder, ["env", f"XDG_CONFIG_HOME={broken.parent}", RANKSCOPE, verb, "job"])))
                self.assertEqual(refused.returncode, 3, refused.stderr)
                self.assertEqual(refused.stderr.count(b"rankscope: error: "), 1, refused.stderr)
                self.assertIn(b"(process 2 of 3 (on ", refused.stderr)
                self.assertEqual(refused.stdout.count(b"findings"), 0)
                self.assertEqual(self.db("job").read_bytes(), self.trace)
            missing = self.run_any(*mpirun, "-n", 3, RANKSCOPE, "analyze", "nowhere")
            self.assertEqual(missing.returncode, 3)
            self.assertEqual(missing.stderr.count(b"there is no run nowhere"), 1, missing.stderr)

    def test_words_that_are_wrong_are_told_once(self):
        for mpirun, _ in self.each():
            wrong = [RANKSCOPE, "analyze", "job", "--format", "tex"]
            late = ["sh", "-c", 'sleep 1; exec "$@"', "late", *wrong]  # the first one, which has the words, on a busy machine
            for first in (wrong, late):
                refused = self.run_any(*self.start(mpirun, (self.folder, first), (self.folder, wrong), (self.folder, wrong)))
                self.assertEqual(refused.returncode, 2, refused.stderr)
                self.assertEqual(refused.stderr.count(b"rankscope: error: "), 1, refused.stderr)

    def test_versions_that_differ_are_refused_by_name(self):
        older = self.folder / "older"
        (older / "bin").mkdir(parents=True)
        (older / "lib").symlink_to(LIBRARIES.parent)
        version = subprocess.run([RANKSCOPE, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
        other = "9" + version[1:]
        (older / "bin/rankscope").write_bytes(pathlib.Path(RANKSCOPE).read_bytes().replace(version.encode(), other.encode()))
        (older / "bin/rankscope").chmod(0o755)
        for mpirun, _ in self.each():
            refused = self.run_any(*self.start(mpirun, (self.folder, [RANKSCOPE, "analyze", "job"]),
                                               (self.folder, [older / "bin/rankscope", "analyze", "job"])))
            self.assertEqual(refused.returncode, 3, refused.stderr)
            self.assertIn(f"is rankscope {other}, ".encode(), refused.stderr)
            self.assertIn(f"is rankscope {version}".encode(), refused.stderr)
            self.assertEqual(refused.stdout, b"")

    def test_a_process_that_dies_ends_all_and_leaves_the_trace_as_it_was(self):
        files = self.collect_without_unreadable()
        (self.folder / "dies").write_text(DIES)
        version = subprocess.run([RANKSCOPE, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
        for name, mpirun, variable in usable():
            dies = [LIBRARIES / f"librankscope_mpi_{name}.so", version, 0]
            nodes = [self.node(variable + str(n), files[n::2]) for n in (0, 1)]
            shutil.copy2(self.db("job"), nodes[0] / "job")
            job = self.run_any(*self.start(mpirun, (nodes[0], [RANKSCOPE, "collect", "job"]), (nodes[1], [sys.executable, self.folder / "dies", *dies])))
            told = job.stdout + job.stderr
            self.assertNotEqual(job.returncode, 0)
            self.assertIn(b"signal 9", told)  # mpirun tells it
            self.assertEqual((nodes[0] / "job/trace.db").read_bytes(), self.trace)
            self.check_run(*self.start(mpirun, *[(node, [RANKSCOPE, "-q", "collect", "job"]) for node in nodes]))
            self.assertEqual([path.name for path in (nodes[0] / "job").glob(".trace*")], [])

    def test_a_process_that_dies_in_the_middle_of_an_analysis_ends_all_and_leaves_the_trace_as_it_was(self):
        (self.folder / "dies").write_text(DIES)
        version = subprocess.run([RANKSCOPE, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
        for name, mpirun, _ in usable():
            # How many of the team are on its host; nothing to collect; which trace it is; who takes part. Then the first process waits for its part of the
            # instances of collectives.
            dies = [sys.executable, self.folder / "dies", LIBRARIES / f"librankscope_mpi_{name}.so", version, 4]
            job = self.run_any(*self.start(mpirun, (self.folder, [RANKSCOPE, "analyze", "job"]), (self.folder, dies)))
            self.assertNotEqual(job.returncode, 0)
            self.assertIn(b"signal 9", job.stdout + job.stderr)  # mpirun tells it
            self.assertNotIn(b"dismissed", job.stderr)
            self.assertNotIn(b"findings", job.stdout)
            self.assertEqual(self.db("job").read_bytes(), self.trace)
            self.assertEqual([path.name for path in (self.folder / "job").glob("*trace.db?*")], [])

    def test_a_program_that_mpirun_has_not_started_needs_no_mpi(self):
        needed = subprocess.run(["ldd", RANKSCOPE], capture_output=True, text=True, check=True).stdout
        self.assertNotIn("libmpi", needed)
        alone = self.run_any(RANKSCOPE, "analyze", "job", environment={"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"})
        self.assertEqual(alone.returncode, 0)
        for mpirun, _ in self.each():
            off = self.run_any(*mpirun, "-n", 2, RANKSCOPE, "-q", "analyze", "job", environment={"RANKSCOPE_MPI": "off"})
            self.assertEqual(off.stdout.count(b"job: 4 ranks"), 2, off.stderr)


if __name__ == "__main__":
    if not usable():
        print("skipped: neither Open MPI nor MPICH is here (packages openmpi-bin and libopenmpi-dev, mpich and libmpich-dev)")
        sys.exit(77)
    for name in MPIS:
        if name not in [entry[0] for entry in usable()]:
            print(f"not tried: {name} is not here")
    unittest.main()
