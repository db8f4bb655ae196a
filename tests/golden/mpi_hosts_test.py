#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`mpirun rankscope collect` over four hosts that share no folder: network namespaces of this machine, with host names and disks of their own."""

import os
import pathlib
import shlex
import shutil
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
    def test_hosts_without_a_common_folder_make_the_trace_of_one_machine(self):
        scenario = dict(SMALL, cluster={"nodes": HOSTS, "ranks_per_node": 2}, parallel={"dp": 2 * HOSTS})
        self.run_scenario(self.write_scenario(scenario), "all")
        self.check_run(RANKSCOPE, "-q", "collect", "all")
        trace = (self.folder / "all/trace.db").read_bytes()
        work = self.folder / "work"  # where each host sees its own disk
        work.mkdir()
        for n in range(HOSTS):
            disk = self.folder / f"disk{n}/all"
            (disk / "capture").mkdir(parents=True)
            for file in (self.folder / "all/capture").glob(f"node{n}.*"):
                shutil.copy2(file, disk / "capture")
            shutil.copy2(self.folder / "all/run.json", disk)
        shutil.copytree(self.folder / "all/health", self.folder / "disk0/all/health")

        network = Network()
        self.addCleanup(network.remove)
        # mpirun's way to another host: into its network, with its name, to its disk.
        enter = self.folder / "enter"
        enter.write_text(f'#!/bin/sh\nn=$((${{1##*.}} - 1)); shift\nexec ip netns exec rs{os.getpid()}n$n unshare -u -m sh -c '
                         f'"hostname node$n; mount --bind {self.folder}/disk$n {work}; cd {work}; exec sh -c \'$*\'"\n')
        enter.chmod(0o755)
        hosts = ",".join(network.address(n) for n in range(HOSTS))
        job = [MPIRUN, "--allow-run-as-root", "--mca", "plm_rsh_agent", enter, "--mca", "plm_rsh_no_tree_spawn", 1, "--mca", "btl", "tcp,self",
               "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0", "-host", hosts, "-n", HOSTS, "-wdir", work,
               RANKSCOPE, "-q", "collect", "all"]
        self.check_run(enter, network.address(0), shlex.join(map(str, job)))
        self.assertEqual((self.folder / "disk0/all/trace.db").read_bytes(), trace)
        for n in range(1, HOSTS):
            self.assertFalse((self.folder / f"disk{n}/all/trace.db").exists())


if __name__ == "__main__":
    why = obstacle()
    if why:
        print("skipped: " + why)
        sys.exit(77)
    unittest.main()
