# SPDX-License-Identifier: Apache-2.0
"""The machine's links are recorded beside the job, which neither waits for NVML nor shows that it was asked."""

import json
import time
import unittest

from victim import CUDA_PATH, FOLDER, REAL, VIRTUAL, VictimTest, has_virtual_gpus, main, victim

NVLINK, PCIE, INFINIBAND = 1, 2, 3
NVML, SYSFS = 1, 2
LOOKED_AROUND_MS = 600  # the injector looks after 200 ms
GPU = {"LD_LIBRARY_PATH": f"{FOLDER / 'nvml'}:{CUDA_PATH}"}
DRIVER = str(FOLDER / "libcuda.so.victim")


def links_of(capture, source):
    return [(capture.strings[record["name"]], record["kind"], record["device"], record["count"], record["generation"], record["bytesPerS"])
            for record in capture.of("machineLink", source=source)]


class MachineLinks(VictimTest):
    two_links = [("NVLink", NVLINK, 1, 2, 3, 50_000_000_000), ("PCIe", PCIE, 1, 16, 4, 31_507_692_304)]

    def compare_with(self, how, children=0, milliseconds=LOOKED_AROUND_MS, preload=DRIVER):
        return self.compare(victim("sleeps"), milliseconds, children, gpu=REAL, preload=preload, environment=dict(GPU, VICTIM_NVML=how))

    def test_those_of_the_device_in_use_are_recorded(self):
        self.compare_with("at once")
        self.assertEqual(links_of(self.one_capture(), NVML), self.two_links)

    def test_a_process_without_a_device_in_use_asks_for_nothing(self):
        self.compare_with("slow", preload="")
        self.assertEqual(self.one_capture().of("machineLink"), [])

    def test_an_nvml_that_fails_or_is_not_there_leaves_nothing_of_it(self):
        self.compare_with("fails")
        self.assertEqual(links_of(self.one_capture(), NVML), [])
        self.compare(victim("sleeps"), LOOKED_AROUND_MS, 0, gpu=REAL, preload=DRIVER)
        self.assertEqual(links_of(self.one_capture(), NVML), [])

    def test_an_nvml_that_runs_a_program_holds_nobody_up(self):
        self.compare_with("forks", children=2)
        parent = [capture for capture in self.captures if capture.calls() == 7]
        self.assertEqual(len(parent), 1)
        self.assertEqual(links_of(parent[0], NVML), self.two_links)

    def test_an_nvml_that_never_comes_back_costs_one_fork_two_seconds_and_the_end_nothing(self):
        started = time.monotonic()
        self.compare_with("slow", children=5)
        self.assertLess(time.monotonic() - started, 2 * LOOKED_AROUND_MS / 1000 + 2 + 3)
        self.assertEqual(sorted(capture.calls() for capture in self.captures), [2, 2, 2, 2, 2, 7])

    def test_a_child_records_its_own(self):
        self.compare_with("at once", children=1)
        self.assertEqual(len(self.captures), 2)   # the child lives too short a time to look
        self.assertEqual(sorted(len(links_of(capture, NVML)) for capture in self.captures), [0, 2])

    @unittest.skipUnless(has_virtual_gpus(), "needs the virtual GPUs")
    def test_virtual_machines_present_the_scenarios_links_at_once(self):
        scenario = self.folder / "scenario.json"
        scenario.write_text(json.dumps({"cluster": {"nodes": 2, "ranks_per_node": 2, "intra": {"gbps": 200}, "inter": {"gbps": 12.5}, "pcie_gbps": 20},
                                        "faults": [{"kind": "slow_nic", "node": 0, "factor": 0.1}, {"kind": "slow_link", "rank": 0, "factor": 0.1}]}))
        root = self.folder / "sysfs"
        self.compare(victim("sleeps"), 0, 0, gpu=VIRTUAL, environment={"RANKSCOPE_SCENARIO": str(scenario), "RANKSCOPE_SYSFS_ROOT": str(root)})
        capture = self.one_capture()
        nvlink = [("NVLink", NVLINK, device, 10, 4, 200_000_000_000) for device in range(2)]
        pcie = [("PCIe", PCIE, device, 16, 4, 31_507_692_304) for device in range(2)]
        self.assertEqual(sorted(links_of(capture, NVML)), sorted(nvlink + pcie))
        self.assertEqual(sorted(links_of(capture, SYSFS)), [(f"virtual_{nic}/1", INFINIBAND, -1, 1, 0, 12_500_000_000) for nic in range(2)])

    @unittest.skipUnless(has_virtual_gpus(), "needs the virtual GPUs")
    def test_devices_joined_by_pcie_have_no_nvlink_and_without_a_root_there_is_no_port(self):
        scenario = self.folder / "scenario.json"
        scenario.write_text(json.dumps({"cluster": {"nodes": 1, "ranks_per_node": 1, "intra": {"gbps": 25}}}))
        self.compare(victim("sleeps"), 0, 0, gpu=VIRTUAL, environment={"RANKSCOPE_SCENARIO": str(scenario)})
        self.assertEqual(links_of(self.one_capture(), NVML), [("PCIe", PCIE, 0, 16, 4, 31_507_692_304)])
        self.assertEqual(links_of(self.one_capture(), SYSFS), [])


if __name__ == "__main__":
    main()
