#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Light mode: recorded without device activity, a straggler, a slow link and jitter are found by calls alone, a healthy job has no finding, and the report says what is not judged."""

import json
import os
import sqlite3
import unittest

from virtual_run import RANKSCOPE, SMALL, WORKLOAD, VirtualRunTest

# Jobs with several layers, so that a step has enough collectives.
JOB = {"kind": "ddp", "steps": 10, "seed": 3, "noise": 0.02, "cluster": {"nodes": 2, "ranks_per_node": 4},
       "model": {"layers": 8, "hidden": 2048, "seq": 1024, "micro_batch": 4}, "parallel": {"dp": 8}}


class Light(VirtualRunTest):
    def light(self, name, *faults):
        scenario = self.write_scenario(dict(JOB, name=name, faults=list(faults)))
        self.check_run(RANKSCOPE, "-q", "reference", "run", scenario, "--light", "-o", name)
        return self.report(name)

    def summed(self, name, *faults, **more):
        scenario = self.write_scenario(dict(JOB, name=name, faults=list(faults), **more))
        self.check_run(RANKSCOPE, "-q", "reference", "run", scenario, "--light=kernels", "-o", name)
        return self.report(name)

    def rows(self, name, query):
        with sqlite3.connect(self.folder / name / "trace.db") as database:
            return database.execute(query).fetchall()

    def found(self, report):
        return [(finding["id"], finding["ranks"]) for finding in report["findings"]]

    def test_faults_are_found_and_health_is_not(self):
        self.assertEqual(self.found(self.light("healthy")), [])
        self.assertEqual(self.found(self.light("slow", {"kind": "straggler", "rank": 5, "factor": 1.5})), [("RS301", [5])])
        self.assertEqual(self.found(self.light("node", {"kind": "slow_node", "node": 1, "factor": 1.5})), [("RS302", [4, 5, 6, 7])])
        self.assertEqual([id for id, _ in self.found(self.light("jitter", {"kind": "jitter"}))], ["RS303"])
        self.assertEqual(self.found(self.light("hidden", {"kind": "straggler", "rank": 6, "factor": 1.02})), [])
        work = self.light("work", {"kind": "uneven_work", "factor": 1.4, "ranks": [3]})
        self.assertEqual([(finding["id"], finding["or"], finding["ranks"]) for finding in work["findings"]], [("RS301", ["RS304"], [3])])

    def test_arrivals_are_those_of_a_whole_recording(self):
        scenario = self.write_scenario(dict(JOB, name="both", faults=[{"kind": "straggler", "rank": 5, "factor": 1.5}]))
        self.run_scenario(scenario, "whole")
        self.check_run(RANKSCOPE, "-q", "reference", "run", scenario, "--light", "-o", "light")
        whole, light = (self.report(name) for name in ("whole", "light"))
        self.assertEqual([step["dur_ns"] for step in whole["steps"]], [step["dur_ns"] for step in light["steps"]])
        for one, other in zip(whole["collectives"], light["collectives"]):
            self.assertEqual((one["op"], one["bytes"], one["count"]), (other["op"], other["bytes"], other["count"]))
            for key in ("wait_ns", "transfer_ns"):
                self.assertAlmostEqual(one[key], other[key], delta=1e3 + 0.01 * one[key])
        size = {name: sum(file.stat().st_size for file in (self.folder / name / "capture").glob("*.cap")) for name in ("whole", "light")}
        self.assertLess(size["light"], size["whole"])

    def test_calls_that_are_older_than_the_ring_are_judged_alike_and_cost_little(self):
        scenario = self.write_scenario(dict(JOB, name="long", steps=40, faults=[{"kind": "straggler", "rank": 5, "factor": 1.5}]))
        for name, ring in (("whole", "off"), ("folded", "0.1s")):
            self.check_run(RANKSCOPE, "-q", "reference", "run", scenario, "--light", "--ring", ring, "-o", name)
        whole, folded = (self.report(name) for name in ("whole", "folded"))
        self.assertEqual(self.found(folded), [("RS301", [5])])
        self.assertEqual([loss for loss in folded["loss"] if loss["severity"] != "info"], [])
        self.assertEqual(len(whole["steps"]), len(folded["steps"]))
        for one, other in zip(whole["steps"], folded["steps"]):
            self.assertAlmostEqual(one["dur_ns"], other["dur_ns"], delta=2 * 1024)
        for one, other in zip(whole["collectives"], folded["collectives"]):
            self.assertEqual((one["op"], one["bytes"], one["count"]), (other["op"], other["bytes"], other["count"]))
            for key in ("wait_ns", "transfer_ns"):
                self.assertAlmostEqual(one[key], other[key], delta=1e3 * one["count"] + 0.01 * one[key])
        calls, = self.rows("folded", "SELECT count(*) FROM nccl_call WHERE kernel_id IS NOT NULL")[0]
        self.assertEqual(calls, self.rows("whole", "SELECT count(*) FROM nccl_call WHERE kernel_id IS NOT NULL")[0][0])
        for file in (self.folder / "folded" / "capture").glob("*.cap"):
            self.assertLess(file.stat().st_size, 40 * 1000 + 16384, file)  # a kilobyte a step, and the file's head
            self.assertEqual(len(list(file.parent.glob(file.stem + ".*.detail"))), 2)

    def test_steps_of_hundreds_of_calls_keep_to_a_kilobyte_by_samples_and_are_judged_still(self):
        faults = [{"kind": "small_buckets", "kb": 2048}, {"kind": "straggler", "rank": 1, "factor": 1.5}]
        scenario = self.write_scenario(dict(JOB, name="many", steps=50, cluster={"nodes": 1, "ranks_per_node": 2}, parallel={"dp": 2}, faults=faults))
        self.check_run(RANKSCOPE, "-q", "reference", "run", scenario, "--light", "--ring", "0.3s", "-o", "many")
        report = self.report("many")
        self.assertIn(("RS301", [1]), self.found(report))
        self.assertEqual([loss["severity"] for loss in report["loss"] if loss["kind"] == "calls_left_out"], ["info"])
        self.assertEqual([loss for loss in report["loss"] if loss["severity"] != "info"], [])
        self.assertEqual(len(report["steps"]), 50)
        kept = [step for step in report["steps"] if not step["warm_up"]]
        self.assertGreater(len(kept), 8)
        self.assertLess(len(kept), 40)
        calls = self.rows("many", "SELECT max(n) FROM (SELECT count(*) AS n FROM nccl_call c JOIN step s ON s.rank = c.rank AND c.start_ns >= s.start_ns AND c.start_ns < s.start_ns + s.dur_ns GROUP BY c.rank, s.step)")
        self.assertGreater(calls[0][0], 300)
        self.assertEqual(self.rows("many", "SELECT count(*) FROM collective WHERE complete = 0"), [(0,)])
        for file in (self.folder / "many" / "capture").glob("*.cap"):
            self.assertLess(file.stat().st_size, 50 * 1000 + 16384, file)

    def test_a_killed_job_leaves_what_was_folded_and_what_the_ring_holds(self):
        faults = [{"kind": "kill", "rank": 2, "step": 30}]
        scenario = self.write_scenario(dict(JOB, name="killed", steps=40, faults=faults))
        found = {}
        for ring in ("off", "0.1s"):
            self.run_any(RANKSCOPE, "-q", "reference", "run", scenario, "--light", "--ring", ring, "-o", ring)
            done = self.run_any(RANKSCOPE, "-q", "analyze", ring, "--format", "json")
            self.assertEqual(done.returncode, 5)
            found[ring] = (self.found(json.loads(done.stdout)), self.rows(ring, "SELECT rank, count(*) FROM nccl_call GROUP BY rank"))
        self.assertEqual(found["off"], found["0.1s"])

    def test_sums_of_kernels_are_those_of_a_whole_recording(self):
        scenario = self.write_scenario(dict(JOB, name="both"))
        self.run_scenario(scenario, "whole")
        self.check_run(RANKSCOPE, "-q", "reference", "run", scenario, "--light=kernels", "-o", "sums")
        by = "rank, (SELECT text FROM string WHERE id = name_id), grid_blocks, block_threads, nccl > 0"
        whole = self.rows("whole", f"SELECT {by}, count(*), sum(dur_ns), max(dur_ns) FROM kernel GROUP BY {by} ORDER BY 1, 2, 3, 4")
        sums = self.rows("sums", f"SELECT {by}, sum(count), sum(total_ns), max(longest_ns) FROM kernel_summary GROUP BY {by} ORDER BY 1, 2, 3, 4")
        self.assertEqual(whole, sums)
        self.assertEqual(self.rows("sums", "SELECT sum(other_count), sum(late_count) FROM kernel_span"), [(0, 0)])
        self.assertGreater(self.rows("sums", "SELECT count(*) FROM kernel_span")[0][0], 8 * 9)
        own = self.rows("whole", "SELECT rank, sum(dur_ns) FROM kernel WHERE nccl = 0 GROUP BY rank")
        for (rank, summed), (_, covered) in zip(own, self.rows("sums", "SELECT rank, sum(compute_ns) FROM kernel_span GROUP BY rank")):
            self.assertLessEqual(covered, summed, rank)
            self.assertGreater(covered, 0.9 * summed, rank)
        for file in (self.folder / "sums" / "capture").glob("*.cap"):
            self.assertLess(file.stat().st_size, (2000 + 1000) * 10 + 65536 + 16384, file)
        report = self.report("sums")
        self.assertEqual(self.found(report), [])
        self.assertEqual([loss["kind"] for loss in report["loss"] if loss["severity"] != "info"], [])

    def test_sums_of_kernels_tell_a_slow_device_from_more_work_and_find_what_hides(self):
        slow = {"kind": "straggler", "rank": 5, "factor": 1.5}
        self.assertEqual(self.found(self.summed("slow", slow)), [("RS301", [5])])
        self.assertEqual(self.found(self.summed("node", {"kind": "slow_node", "node": 1, "factor": 1.5})), [("RS302", [4, 5, 6, 7])])
        self.assertEqual(self.found(self.summed("work", {"kind": "uneven_work", "factor": 1.4, "ranks": [3]})), [("RS304", [3])])
        pipeline = dict(kind="pp", steps=6, cluster={"nodes": 1, "ranks_per_node": 4}, parallel={"dp": 1, "pp": 4, "micro_batches": 4, "schedule": "1f1b"})
        self.assertEqual([id for id, _ in self.found(self.summed("bubble", **pipeline))], ["RS101"])
        pipeline["parallel"] = dict(pipeline["parallel"], micro_batches=32)
        self.assertEqual(self.found(self.summed("even", **pipeline)), [])
        self.assertEqual(self.found(self.summed("late_stage", slow | {"rank": 2}, **pipeline)), [("RS301", [2])])
        report = self.summed("hidden", {"kind": "straggler", "rank": 6, "factor": 1.02})
        self.assertEqual(self.found(report), [])
        since = self.summed("since", slow | {"from_step": 6}, steps=12)
        self.assertEqual(self.found(since), [("RS301", [5])])
        self.assertIn("before step 6", since["findings"][0]["cause"])
        kernel = self.summed("kernel", {"kind": "slow_kernel", "factor": 2, "from_step": 6}, steps=12)
        self.assertEqual(self.found(kernel), [("RS305", list(range(8)))])
        silent = {row["id"]: row["needs"] for row in report["not_judged"]}
        self.assertEqual(silent["RS201"], "kernels were recorded as summaries of steps: light mode")
        self.assertNotIn("RS304", silent)

    def test_a_rank_of_whose_kernels_nothing_was_summed_up_is_told_and_its_calls_are_judged(self):
        self.light("calls", {"kind": "straggler", "rank": 5, "factor": 1.5})
        # As CUPTI leaves it where it serves another profiler.
        description = self.folder / "calls" / "run.json"
        told = json.loads(description.read_text())
        told["options"]["kernels"] = "summaries"
        description.write_text(json.dumps(told))
        self.check_run(RANKSCOPE, "-q", "collect", "calls")
        report = self.report("calls")
        self.assertEqual(self.found(report), [("RS301", [5])])
        lacking = [loss for loss in report["loss"] if loss["kind"] == "no_kernel_summaries"]
        self.assertEqual(sorted(loss["rank"] for loss in lacking), list(range(8)))
        self.assertIn("nothing of rank 0's kernels was summarised", lacking[0]["what_it_means"])
        self.assertEqual({row["id"]: row["needs"] for row in report["not_judged"]}["RS304"], "no kernels were recorded: light mode")

    def test_one_rank_without_nccl_tells_its_time_and_a_killed_job_what_was_told_until_then(self):
        alone = dict(JOB, name="alone", cluster={"nodes": 1, "ranks_per_node": 1}, parallel={"dp": 1}, faults=[])
        self.check_run(RANKSCOPE, "-q", "reference", "run", self.write_scenario(alone), "--light=kernels", "-o", "alone")
        report = self.report("alone")
        self.assertEqual(len(report["steps"]), 10)
        self.assertGreater(report["breakdown"][0]["compute_ns"], 0.8 * report["breakdown"][0]["step_ns"])
        killed = dict(JOB, name="killed", steps=40, faults=[{"kind": "kill", "rank": 2, "step": 30}])
        self.run_any(RANKSCOPE, "-q", "reference", "run", self.write_scenario(killed), "--light=kernels", "-o", "killed")
        done = self.run_any(RANKSCOPE, "-q", "analyze", "killed", "--format", "json")
        self.assertEqual((done.returncode, self.found(json.loads(done.stdout))), (5, [("RS501", [2])]))
        self.assertEqual(self.rows("killed", "SELECT sum(late_count) FROM kernel_span"), [(0,)])
        self.assertEqual(self.rows("killed", "SELECT count(*) FROM loss WHERE kind = 'cupti_undelivered' AND rank = 2"), [(1,)])

    def test_the_report_says_what_is_not_judged(self):
        report = self.light("said", {"kind": "straggler", "rank": 5, "factor": 1.5})
        silent = {row["id"]: row["needs"] for row in report["not_judged"]}
        self.assertEqual(silent["RS201"], "no kernels were recorded: light mode")
        self.assertNotIn("RS301", silent)
        self.assertEqual([loss["severity"] for loss in report["loss"] if loss["kind"] == "light"], ["info"])
        text = self.check_run(RANKSCOPE, "analyze", "said").stdout.decode()
        self.assertIn("no kernels were recorded but NCCL's", text)
        self.assertNotIn("Unexplained", text)

    def test_run_takes_it_and_no_list_of_sources_beside(self):
        scenario = self.write_scenario(dict(SMALL, name="one", cluster={"nodes": 1, "ranks_per_node": 1}, parallel={"dp": 1}, faults=[]))
        environment = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
        done = self.check_run(RANKSCOPE, "run", "--virtual", "--light", "-o", "one", "--", WORKLOAD, scenario, environment=environment)
        self.assertNotIn(b"leaves the devices out", done.stderr)
        with sqlite3.connect(self.folder / "one" / "trace.db") as database:
            self.assertEqual(database.execute("SELECT value FROM meta WHERE key = 'light'").fetchall(), [("1",)])
            self.assertEqual(database.execute("SELECT count(*) FROM memcpy").fetchall(), [(0,)])
        self.assertTrue(json.loads((self.folder / "one" / "run.json").read_text())["options"]["light"])
        self.assertEqual(json.loads((self.folder / "one" / "run.json").read_text())["options"]["ring_s"], 60)
        for words in (("--ring", "60s"), ("--light", "--ring", "60 s"), ("--light", "--ring", "0")):
            self.assertEqual(self.run_any(RANKSCOPE, "run", *words, "-o", "no", "--", "true").returncode, 2, words)
        for words in (("--light", "--trace", "cuda"), ("--light=kernels", "--ring", "off"), ("--light=all",), ("--light", "--ring", "0.0001s")):
            done = self.run_any(RANKSCOPE, "run", *words, "-o", "no", "--", "true")
            self.assertEqual(done.returncode, 2, words)
        self.assertIn(b"too short", done.stderr)
        self.assertFalse(os.path.exists(self.folder / "no"))


if __name__ == "__main__":
    unittest.main()
