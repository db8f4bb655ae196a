#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`mpirun rankscope collect` over four hosts that share no folder: network namespaces of this machine, with host names and disks of their own."""

import json
import os
import pathlib
import shlex
import shutil
import sqlite3
import subprocess
import sys
import unittest

from virtual_run import RANKSCOPE, SMALL, VirtualRunTest

HOSTS = 4
MPIRUN = "mpirun.openmpi"
LIBRARY = pathlib.Path(RANKSCOPE).resolve().parents[1] / "lib/rankscope/librankscope_mpi_openmpi.so"


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True)


class Network:
    """Hosts on one bridge; names hold the process, so that several tests may run beside each other."""

    def __init__(self):
        self.names = [f"rs{os.getpid()}n{n}" for n in range(HOSTS)]
        self.bridge = f"rs{os.getpid()}br"
        ip("link", "add", self.bridge, "type", "bridge")
        ip("link", "set", self.bridge, "up")
        for n, name in enumerate(self.names):
            ip("netns", "add", name)
            ip("link", "add", f"{name}v", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"{name}v", "master", self.bridge, "up")
            ip("-n", name, "addr", "add", f"{self.address(n)}/24", "dev", "eth0")
            for device in ("eth0", "lo"):
                ip("-n", name, "link", "set", device, "up")

    def address(self, n):
        return f"10.77.0.{n + 1}"

    def remove(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
        subprocess.run(["ip", "link", "delete", self.bridge], capture_output=True, check=False)


def obstacle():
    if not shutil.which(MPIRUN) or not LIBRARY.exists():
        return "Open MPI is not here (packages openmpi-bin and libopenmpi-dev)"
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("unshare"):
        return "network namespaces need root, ip and unshare"
    try:
        Network().remove()
    except subprocess.CalledProcessError as error:
        Network.remove(type("Started", (), {"names": [f"rs{os.getpid()}n{n}" for n in range(HOSTS)], "bridge": f"rs{os.getpid()}br"}))
        return "network namespaces are not allowed here: " + error.stderr.decode().strip()
    return None


class MpiHosts(VirtualRunTest):
    def start_hosts(self, run, scenario, status=0):
        """Runs the scenario as `run`, as one machine sees it, and gives each of four hosts its part of the captures."""
        of_hosts = dict(scenario, cluster={"nodes": HOSTS, "ranks_per_node": 2}, parallel={"dp": 2 * HOSTS})
        self.check_run(RANKSCOPE, "-q", "reference", "run", self.write_scenario(of_hosts), "-o", run, status=status)
        self.check_run(RANKSCOPE, "-q", "collect", run)
        work = self.folder / "work"  # where each host sees its own disk
        work.mkdir()
        for n in range(HOSTS):
            disk = self.disk(n) / run
            (disk / "capture").mkdir(parents=True)
            for file in (self.folder / run / "capture").glob(f"node{n}.*"):
                shutil.copy2(file, disk / "capture")
            shutil.copy2(self.folder / run / "run.json", disk)
        shutil.copytree(self.folder / run / "health", self.disk(0) / run / "health")

        self.network = Network()
        self.addCleanup(self.network.remove)
        # mpirun's way to another host: into its network, with its name, to its disk.
        self.enter = self.folder / "enter"
        self.enter.write_text(f'#!/bin/sh\nn=$((${{1##*.}} - 1)); shift\nexec ip netns exec rs{os.getpid()}n$n unshare -u -m sh -c '
                              f'"hostname node$n; mount --bind {self.folder}/disk$n {work}; cd {work}; exec sh -c \'$*\'"\n')
        self.enter.chmod(0o755)
        hosts = ",".join(self.network.address(n) for n in range(HOSTS))
        self.mpirun = [MPIRUN, "--allow-run-as-root", "--mca", "plm_rsh_agent", self.enter, "--mca", "plm_rsh_no_tree_spawn", 1, "--mca", "btl", "tcp,self",
                       "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0", "-host", hosts, "-n", HOSTS, "-wdir", work]

    def disk(self, n):
        return self.folder / f"disk{n}"

    def on_all(self, *words, status=0):
        return self.check_run(self.enter, self.network.address(0), shlex.join(map(str, [*self.mpirun, RANKSCOPE, "-q", *words])), status=status)

    def on_host(self, n, *words, status=0):
        return self.check_run(self.enter, self.network.address(n), shlex.join(map(str, [RANKSCOPE, "-q", *words])), status=status)

    def shards(self, n, run):
        return sorted(path.name for path in (self.disk(n) / run / "trace.d").iterdir())

    def test_hosts_without_a_common_folder_make_the_trace_of_one_machine(self):
        self.start_hosts("all", SMALL)
        self.on_all("collect", "all")
        self.assertEqual((self.disk(0) / "all/trace.db").read_bytes(), (self.folder / "all/trace.db").read_bytes())
        for n in range(1, HOSTS):
            self.assertFalse((self.disk(n) / "all/trace.db").exists())

    def test_shards_stay_on_their_hosts_and_tell_what_one_file_does(self):
        self.start_hosts("all", SMALL)
        alone = [self.check_run(RANKSCOPE, "-q", verb, "all", "--format", "json").stdout for verb in ("analyze", "recommend")]
        self.on_all("collect", "all", "--shards")
        small = (self.disk(0) / "all/trace.db").read_bytes()
        for n in range(HOSTS):
            self.assertEqual(self.shards(n, "all"), [f"node{n}.db"])
            self.assertEqual((self.disk(n) / "all/trace.db").read_bytes(), small)
        for _ in range(2):  # the results of the first time are kept in the first host's trace.db alone
            self.assertEqual(self.on_all("analyze", "all", "--format", "json").stdout, alone[0])
        self.assertEqual(self.on_all("recommend", "all", "--format", "json").stdout, alone[1])
        for n in range(HOSTS):
            self.assertEqual(self.shards(n, "all"), [f"node{n}.db"])
        # One host for itself sees a quarter of the ranks.
        refused = self.on_host(1, "analyze", "all", status=3)
        self.assertIn(b"all/trace.d/node0.db: no such file: it holds the events of ranks 0, 1\n", refused.stderr)
        self.assertIn(b"hint: copy it here from its host, analyse under mpirun with a process there", refused.stderr)
        # All in one folder they are as good as one file.
        for n in range(1, HOSTS):
            shutil.copy2(self.disk(n) / f"all/trace.d/node{n}.db", self.disk(0) / "all/trace.d")
        self.assertEqual(self.on_host(0, "analyze", "all", "--format", "json").stdout, alone[0])

    def test_collecting_again_replaces_what_lies_on_any_host(self):
        self.start_hosts("all", SMALL)
        self.on_all("collect", "all", "--shards")
        shutil.copy2(self.disk(3) / "all/trace.d/node3.db", self.disk(0) / "all/trace.d")  # as a user may
        for file in (self.disk(2) / "all/capture").glob("*.cap"):
            file.unlink()
        self.on_all("collect", "all", "--shards", "--links", "intra:gbps=111,alpha_us=7;inter:gbps=33,alpha_us=9")
        self.assertEqual([self.shards(n, "all") for n in (0, 1, 3)], [["node0.db"], ["node1.db"], ["node3.db"]])
        small = (self.disk(0) / "all/trace.db").read_bytes()
        self.assertEqual([(self.disk(n) / "all/trace.db").read_bytes() == small for n in (1, 3)], [True, True])
        told = json.loads(self.on_all("analyze", "all", "--format", "json").stdout)
        self.assertEqual(told["run"]["ranks"], [0, 1, 2, 3, 6, 7])
        self.assertIn("--links", json.dumps(told["link_peaks"]))

    def test_a_shard_with_lost_events_is_refused_by_its_host(self):
        self.start_hosts("all", SMALL)
        self.on_all("collect", "all", "--shards")
        for n in (0, 2):
            shard = self.disk(n) / f"all/trace.d/node{n}.db"
            kept = shard.read_bytes()
            with sqlite3.connect(shard) as database:
                database.execute("DELETE FROM kernel WHERE id = (SELECT max(last_id) FROM extent WHERE table_name = 'kernel')")
            database.close()
            refused = self.on_all("analyze", "all", status=3)
            self.assertIn(f"all/trace.d/node{n}.db: damaged: events that table extent promises are missing".encode(), refused.stderr)
            self.assertEqual(refused.stderr.count(b"(on node2)"), n // 2, refused.stderr)
            shard.write_bytes(kept)

    def test_the_shards_of_a_job_that_failed_are_copied_to_the_first_host(self):
        self.start_hosts("all", dict(SMALL, faults=[{"kind": "kill", "rank": 5, "step": 3}]), status=-9)
        alone = self.check_run(RANKSCOPE, "-q", "analyze", "all", "--format", "json", status=5).stdout
        self.on_all("collect", "all", "--shards")
        self.assertEqual(self.on_all("analyze", "all", "--format", "json", status=5).stdout, alone)
        self.assertEqual(self.shards(0, "all"), [f"node{n}.db" for n in range(HOSTS)])
        self.assertEqual(self.shards(1, "all"), ["node1.db"])

    def test_a_shard_that_no_host_has_ends_all_with_its_name(self):
        self.start_hosts("all", SMALL)
        self.on_all("collect", "all", "--shards")
        (self.disk(2) / "all/trace.d/node2.db").unlink()
        refused = self.on_all("analyze", "all", status=3)
        self.assertIn(b"all/trace.d/node2.db: no process sees this file, which holds the events of rank 4 (node2)", refused.stderr)
        self.assertEqual(refused.stdout.count(b"finding"), 0)


if __name__ == "__main__":
    why = obstacle()
    if why:
        print("skipped: " + why)
        sys.exit(77)
    unittest.main()
