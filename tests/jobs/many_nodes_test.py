#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs over two nodes, each a host name of its own (UTS namespaces) on one machine: torchrun on each node, and srun over both, on virtual GPUs."""

import getpass
import json
import os
import pathlib
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
import unittest

from wrapped import RANKSCOPE, JobTest

PYTHON = "/usr/bin/python3"  # the interpreter of Debian's torch
WORKLOAD = pathlib.Path(RANKSCOPE).resolve().parents[1] / "libexec/rankscope/rankscope-workload"
SCENARIO = {"name": "two-nodes", "kind": "ddp", "steps": 6, "seed": 3, "cluster": {"nodes": 2, "ranks_per_node": 2},
            "model": {"layers": 4, "hidden": 1024, "seq": 512, "micro_batch": 2}, "parallel": {"dp": 4},
            "faults": [{"kind": "straggler", "rank": 1, "factor": 1.5}]}
NODES = {0: "node0", 1: "node0", 2: "node1", 3: "node1"}
SLURM = ("slurmctld", "slurmd", "srun", "sinfo")
PATIENCE_S = 60


def namespace():
    """The words in front of a command that is to see a host name of its own; None where nobody may have one."""
    for words in (["unshare", "--uts"], ["unshare", "--map-root-user", "--uts"]):
        if shutil.which("unshare") and subprocess.run([*words, "hostname", "other"], capture_output=True).returncode == 0:
            return words
    return None


def has_torch():
    return shutil.which(PYTHON) and subprocess.run([PYTHON, "-c", "import torch.distributed.run"], capture_output=True).returncode == 0


def free_ports(count):
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


class ManyNodes(JobTest):
    def setUp(self):
        super().setUp()
        self.words = namespace()
        if self.words is None:
            self.skipTest("nobody may give a process another host name here (unshare --uts)")
        self.environment["OMP_NUM_THREADS"] = "1"
        self.scenario = self.folder / "two-nodes.json"
        self.scenario.write_text(json.dumps(SCENARIO))

    def on_host(self, host, *command):
        return self.start(*self.words, "sh", "-c", 'hostname "$0" && exec "$@"', host, *command)

    def end_of(self, process):
        out, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, f"{out.decode()}\n{errors.decode()}")
        return errors.decode()

    def wait_for(self, path):
        deadline = time.monotonic() + PATIENCE_S
        while not path.exists():
            self.assertLess(time.monotonic(), deadline, f"{path} is not there after {PATIENCE_S} s")

    def wrappers_of(self, run):
        """The hosts whose wrappers recorded into a run."""
        return {line.split()[1] for line in (self.folder / run / ".members").read_text().splitlines()}

    def hosts_of_ranks(self, run):
        """As the virtual GPUs name them: node0 and node1, wherever the ranks are."""
        with sqlite3.connect(self.folder / run / "trace.db") as database:
            return dict(database.execute("SELECT rank, name FROM rank JOIN host ON host.id = host_id WHERE process_id IS NOT NULL"))

    def first_found(self, run):
        report = json.loads(self.rankscope("-q", "analyze", run, "--format", "json").stdout)
        return report["findings"][0]["id"], report["findings"][0]["ranks"]


@unittest.skipUnless(has_torch(), f"{PYTHON} has no torch (package python3-torch)")
class Torchrun(ManyNodes):
    """A launcher on each node, inside a wrapper. Torch 1.13, which Debian has, takes its own output apart only with -r and -t."""

    def nodes(self, *names, first=0):
        """Starts one node for each name of a run, the node `first` first."""
        [port] = free_ports(1)
        nodes = {}
        for index in (first, 1 - first):
            if nodes:
                self.wait_for(self.folder / names[first] / "run.json")
            nodes[index] = self.on_host(f"host{index}", RANKSCOPE, "run", "--virtual", "-o", names[index], "--", PYTHON, "-m", "torch.distributed.run",
                                        "--nnodes", "2", "--nproc_per_node", "2", "--node_rank", str(index), "--master_addr", "127.0.0.1",
                                        "--master_port", str(port), "-r", "1", "-t", "1", "--no_python", WORKLOAD, self.scenario)
        return [nodes[index] for index in range(2)]

    def test_nodes_that_share_a_folder_are_one_run_whoever_came_first(self):
        for first in (0, 1):
            name = f"job{first}"
            errors = "".join(self.end_of(node) for node in self.nodes(name, name, first=first))
            self.assertEqual(self.hosts_of_ranks(name), NODES, errors)
            self.assertEqual(self.wrappers_of(name), {"host0", "host1"})
            self.assertEqual(self.first_found(name), ("RS301", [1]))
            self.assertNotIn("rankscope collect", errors)

    def test_nodes_with_a_folder_each_are_told_how_to_become_one_run(self):
        for node in self.nodes("job-host0", "job-host1"):
            errors = self.end_of(node)
            self.assertIn("2 ranks of the job's 4 are not in job-host", errors)
            self.assertIn("next: rankscope collect job-host", errors)
        self.assertEqual(self.rankscope("-q", "collect", "job-host0", "job-host1").returncode, 0)
        self.assertEqual(self.hosts_of_ranks("job-host0"), NODES)
        self.assertEqual(self.first_found("job-host0"), ("RS301", [1]))

    def test_a_node_that_never_comes_ends_the_job_as_without_a_wrapper(self):
        [port] = free_ports(1)
        result = self.rankscope("run", "--virtual", "-o", "job", "--", PYTHON, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc_per_node", "1",
                                "--rdzv_backend", "c10d", "--rdzv_endpoint", f"127.0.0.1:{port}", "--rdzv_id", "alone", "--rdzv_conf", "join_timeout=2",
                                "-r", "1", "-t", "1", "--no_python", "true")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(b"RendezvousTimeoutError", result.stderr)
        self.assertIn(b"rankscope: warning: nothing was recorded", result.stderr)


@unittest.skipUnless(all(shutil.which(name) for name in SLURM), "Slurm is not installed (packages slurmd, slurmctld, slurm-client)")
@unittest.skipUnless(os.geteuid() == 0, "a Slurm of one's own needs root")
class Srun(ManyNodes):
    """One launcher for both nodes, a wrapper around each rank: Slurm's controller and a node's daemon on each of two host names."""

    def setUp(self):
        super().setUp()
        controller, *ports = free_ports(3)
        configuration = self.folder / "slurm.conf"
        user = getpass.getuser()
        nodes = "\n".join(f"NodeName=n{i} NodeAddr=127.0.0.1 Port={port} CPUs=2" for i, port in enumerate(ports))
        configuration.write_text(f"""ClusterName=test
SlurmctldHost={socket.gethostname()}(127.0.0.1)
SlurmctldPort={controller}
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/linear
StateSaveLocation={self.folder}/state
SlurmctldPidFile={self.folder}/controller.pid
SlurmctldLogFile={self.folder}/controller.log
SlurmdSpoolDir={self.folder}/spool-%n
SlurmdPidFile={self.folder}/%n.pid
SlurmdLogFile={self.folder}/%n.log
SlurmdParameters=config_overrides
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP
""")
        (self.folder / "state").mkdir()
        self.environment["SLURM_CONF"] = str(configuration)
        for process in (self.start("slurmctld", "-D"), *(self.on_host(f"n{i}", "slurmd", "-D", "-N", f"n{i}") for i in range(2))):
            self.addCleanup(self.stop, process)
        deadline = time.monotonic() + PATIENCE_S
        while b"2" not in self.run_plain("sinfo", "--noheader", "--states=idle", "--format=%D").stdout:
            if time.monotonic() > deadline:
                logs = "\n".join(log.read_text()[-2000:] for log in self.folder.glob("*.log"))
                self.fail(f"Slurm's nodes are not there after {PATIENCE_S} s:\n{logs}")

    def stop(self, process):
        process.terminate()
        try:
            process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()

    def test_srun_over_two_nodes_is_one_run(self):
        self.end_of(self.start("srun", "-N", "2", "-n", "4", "-m", "block", RANKSCOPE, "run", "--virtual", "-o", "job-%q{SLURM_JOB_ID}", "--", WORKLOAD, self.scenario))
        [run] = [path.name for path in self.folder.glob("job-*")]
        self.assertEqual(self.description(run)["launcher"], "slurm")
        self.assertEqual(self.hosts_of_ranks(run), NODES)
        self.assertEqual(self.wrappers_of(run), {"n0", "n1"})
        self.assertEqual(self.first_found(run), ("RS301", [1]))

    def test_srun_with_a_folder_for_each_node_tells_how_to_join_them(self):
        result = self.start("srun", "-N", "2", "-n", "4", "-m", "block", RANKSCOPE, "run", "--virtual", "-o", "job-%h", "--", WORKLOAD, self.scenario)
        errors = self.end_of(result)
        self.assertIn("2 ranks of the job's 4 are not in job-n0", errors)
        self.assertEqual(self.rankscope("-q", "collect", "job-n0", "job-n1").returncode, 0)
        self.assertEqual(self.first_found("job-n0"), ("RS301", [1]))


if __name__ == "__main__":
    if not WORKLOAD.exists():
        print("skipped: the reference workloads are not built")
        sys.exit(77)
    result = unittest.main(exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 77 if len(result.skipped) == result.testsRun else 0)
