#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How devices do while a job runs: read beside it, stored, and evidence of the findings that it explains. The virtual NVML tells what a scenario plants."""

import os
import sqlite3
import time
import unittest

from virtual_run import RANKSCOPE, SMALL, VirtualRunTest, WORKLOAD

CLUSTER = {"nodes": 2, "ranks_per_node": 2}
POWER_CAP, THERMAL = 0x4, 0x48


class Health(VirtualRunTest):
    def rows(self, name, query):
        with sqlite3.connect(f"file:{self.folder / name / 'trace.db'}?mode=ro", uri=True) as trace:
            return trace.execute(query).fetchall()

    def run_with(self, name, faults, **more):
        self.run_scenario(self.write_scenario(dict(dict(SMALL, name=name, cluster=CLUSTER, faults=faults), **more)), name)

    def facts_of(self, name, diagnosis):
        findings = [finding for finding in self.report(name)["findings"] if finding["id"] == diagnosis]
        self.assertEqual(len(findings), 1, diagnosis)
        return findings[0]["evidence"]

    def test_a_straggler_that_is_throttled_has_that_as_evidence(self):
        self.run_with("capped", [{"kind": "straggler", "rank": 1, "factor": 1.5, "throttle": "power"}])
        self.assertEqual(self.rows("capped", "SELECT rank, sm_mhz, sm_max_mhz, clocks_events, power_mw = power_limit_mw, readings, time_ns FROM device_health ORDER BY id"),
                         [(0, 1980, 1980, 0, 0, 1, None), (1, 1320, 1980, POWER_CAP, 1, 1, None), (2, 1980, 1980, 0, 0, 1, None), (3, 1980, 1980, 0, 0, 1, None)])
        evidence = self.facts_of("capped", "RS301")
        self.assertIn("rank 1 throttled to 1.32 of 1.98 GHz, by NVML: power cap, 700 of 700 W; the other ranks' ran at 1.98", evidence["facts"])
        self.assertEqual((evidence["numbers"]["sm_clock_mhz"], evidence["numbers"]["sm_clock_of_peers_mhz"]), (1320, 1980))

    def test_clocks_that_are_as_the_peers_are_no_evidence(self):
        self.run_with("other_cause", [{"kind": "straggler", "rank": 1, "factor": 1.5}])
        self.assertEqual(self.rows("other_cause", "SELECT DISTINCT sm_mhz FROM device_health"), [(1980,)])
        self.assertFalse([fact for fact in self.facts_of("other_cause", "RS301")["facts"] if "throttled" in fact])
        self.run_with("healthy", [])
        self.assertFalse([finding for finding in self.report("healthy")["findings"] if finding["id"].startswith("RS3")])
        self.assertEqual(self.rows("healthy", "SELECT count(*) FROM device_health"), [(4,)])

    def test_a_hot_node_is_told_in_one_sentence(self):
        self.run_with("hot", [{"kind": "slow_node", "node": 1, "factor": 1.4, "throttle": "thermal"}])
        self.assertEqual(self.rows("hot", "SELECT rank FROM device_health WHERE clocks_events = 72 ORDER BY id"), [(2,), (3,)])
        facts = [fact for fact in self.facts_of("hot", "RS302")["facts"] if "throttled" in fact]
        self.assertEqual(facts, ["ranks 2-3 throttled to 1.41 of 1.98 GHz, by NVML: too hot, 87 C; the other ranks' ran at 1.98"])

    def test_errors_of_a_slow_link_are_evidence_of_it(self):
        # Counted in real time, of which a job on virtual GPUs takes little.
        link = {"kind": "slow_link", "rank": 1, "factor": 0.2, "errors_per_s": 100000}
        self.run_with("link", [link], cluster={"nodes": 1, "ranks_per_node": 4}, model={"layers": 8, "hidden": 4096, "seq": 1024, "micro_batch": 1}, parallel={"dp": 4}, steps=400)
        counts = self.rows("link", "SELECT nvlink_errors FROM device_health WHERE rank = 1 ORDER BY id")
        self.assertEqual(len(counts), 2)
        self.assertGreater(counts[1], counts[0])
        facts = self.facts_of("link", "RS208")["facts"]
        self.assertTrue([fact for fact in facts if fact.startswith("the NVLinks of rank 1 had ")], facts)

    def test_two_runs_of_virtual_time_tell_the_same(self):
        fault = {"kind": "straggler", "rank": 1, "factor": 1.5, "throttle": "power"}
        for name in ("first", "second"):
            self.run_with(name, [fault])
        self.assertEqual(*(self.rows(name, "SELECT * FROM device_health") for name in ("first", "second")))

    def test_what_is_not_there_is_said_and_hurts_nothing(self):
        scenario = self.write_scenario(dict(SMALL, name="hidden", cluster=CLUSTER))
        self.run_scenario(scenario, "hidden", environment={"RANKSCOPE_VGPU_LINKS": "hidden"})
        self.assertEqual(self.rows("hidden", "SELECT count(*) FROM device_health"), [(0,)])
        self.check_run(RANKSCOPE, "-q", "run", "--virtual", "--no-health", "-o", "off", "--", "bash", "-c", f'RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 "{WORKLOAD}" "{self.alone()}"')
        self.assertFalse((self.folder / "off" / "health").exists())

    def test_damaged_files_are_losses(self):
        self.run_with("damaged", [])
        folder = self.folder / "damaged" / "health"
        (written,) = folder.iterdir()
        written.write_text(written.read_text() + "device x\ndevice 00000000:01:00.0 5 1 sm_mhz=-7\ndevice cut")
        (folder / "no.txt").write_bytes(b"\xff\x00no such file")
        self.check_run(RANKSCOPE, "-q", "collect", "damaged")
        self.assertEqual(self.rows("damaged", "SELECT count, file LIKE '%no.txt' FROM loss WHERE kind = 'health' ORDER BY 2"), [(2, 0), (1, 1)])
        self.assertEqual(self.rows("damaged", "SELECT count(*) FROM device_health"), [(4,)])

    def alone(self):
        return self.write_scenario(dict(SMALL, name="alone", cluster={"nodes": 1, "ranks_per_node": 1}, parallel={"dp": 1}, faults=[]))

    def test_the_helper_is_gone_with_its_wrapper_and_gets_no_signal_of_the_job(self):
        done = self.run_any(RANKSCOPE, "-q", "run", "--virtual", "-o", "killed", "--", "bash", "-c", 'sleep 0.3; pgrep -P $PPID >children; kill -9 $PPID; sleep 5 & wait')
        self.assertEqual(done.returncode, -9)
        helpers = [pid for pid in (self.folder / "children").read_text().split() if self.is_ours(pid)]
        for _ in range(100):
            if not any(self.is_ours(pid) for pid in helpers):
                return
            time.sleep(0.05)
        self.fail("the helper outlives its wrapper")

    def is_ours(self, pid):
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8") as name:
                return name.read().startswith("rankscope-heal")
        except OSError:
            return False


if __name__ == "__main__":
    unittest.main()
