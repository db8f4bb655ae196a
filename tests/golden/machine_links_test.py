#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What virtual machines say of their links arrives in trace.db, and doctor shows it, both read by the code that reads real machines."""

import os
import sqlite3
import unittest

from virtual_run import RANKSCOPE, SMALL, VirtualRunTest

CLUSTER = {"nodes": 2, "ranks_per_node": 2, "intra": {"gbps": 150}, "inter": {"gbps": 25}}


class MachineLinks(VirtualRunTest):
    def rows(self, name, kind):
        with sqlite3.connect(f"file:{self.folder / name / 'trace.db'}?mode=ro", uri=True) as trace:
            return trace.execute("SELECT host_id, rank, name, bytes_per_s, source FROM machine_link WHERE kind = ? ORDER BY id", (kind,)).fetchall()

    def run_on(self, name, faults, cluster=CLUSTER):
        self.run_scenario(self.write_scenario(dict(SMALL, name=name, cluster=cluster, faults=faults)), name)

    def test_a_run_tells_the_links_of_its_cluster_and_a_fault_that_no_machine_notices_changes_nothing(self):
        self.run_on("healthy", [])
        self.assertEqual(self.rows("healthy", "nvlink"), [(rank // 2, rank, "NVLink", 150_000_000_000, "nvml") for rank in range(4)])
        self.assertEqual(self.rows("healthy", "infiniband"), [(host, None, f"virtual_{nic}/1", 25_000_000_000, "sysfs") for host in range(2) for nic in range(2)])
        self.assertEqual(self.rows("healthy", "ethernet"), [])
        for fault in ({"kind": "under_used_link", "factor": 0.1}, {"kind": "slow_nic", "node": 1, "factor": 0.1}, {"kind": "slow_link", "pair": [0, 1], "factor": 0.1}):
            self.run_on(fault["kind"], [fault])
            for kind in ("nvlink", "pcie", "infiniband"):
                self.assertEqual(self.rows(fault["kind"], kind), self.rows("healthy", kind), fault)

    def test_devices_joined_by_pcie_alone_have_no_nvlink(self):
        self.run_on("pcie", [], dict(CLUSTER, intra={"gbps": 12}))
        self.assertEqual(self.rows("pcie", "nvlink"), [])
        self.assertEqual([round(row[3] / 1e9, 1) for row in self.rows("pcie", "pcie")], [15.8] * 4)

    def test_a_machine_that_hides_its_links_leaves_no_row(self):
        scenario = self.write_scenario(dict(SMALL, cluster=CLUSTER))
        self.run_scenario(scenario, "hidden", environment={"RANKSCOPE_VGPU_LINKS": "hidden"})
        for kind in ("nvlink", "pcie", "infiniband", "ethernet"):
            self.assertEqual(self.rows("hidden", kind), [])

    def test_doctor_shows_them_inside_a_virtual_run(self):
        scenario = self.write_scenario(dict(SMALL, cluster=CLUSTER))
        shown = self.check_run(RANKSCOPE, "-q", "run", "--virtual", "-o", "doctors", "--", RANKSCOPE, "doctor",
                               environment={"RANKSCOPE_SCENARIO": str(scenario)}).stdout.decode()
        self.assertRegex(shown, r"ok +GPU links +0-1: 6 NVLinks of version 4, 150.0 GB/s together; PCIe 5\.0 x16, 63.0 GB/s")
        self.assertRegex(shown, r"ok +network links +virtual_0/1, virtual_1/1: InfiniBand, 25.0 GB/s each")

    def test_doctor_says_unknown_where_nothing_tells(self):
        # A library by that name which is none.
        (self.folder / "libnvidia-ml.so.1").write_text("")
        shown = self.check_run(RANKSCOPE, "doctor", environment={"LD_LIBRARY_PATH": f"{self.folder}:{os.environ.get('LD_LIBRARY_PATH', '')}",
                                                                 "RANKSCOPE_CLOCK": "cupti"}).stdout.decode()
        self.assertRegex(shown, r"no +GPU links +unknown: ")
        self.assertRegex(shown, r"no +network links +unknown: ")


if __name__ == "__main__":
    unittest.main()
