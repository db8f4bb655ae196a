#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every planted fault changes what it should: on two ranks and on every kind, a step takes as much longer as the fault's strength says, and the
trace shows the calls and records that a job with that fault shows."""

import sqlite3
import statistics
import unittest

from virtual_run import VirtualRunTest

# Two ranks each, a few milliseconds a step, no noise.
MODEL = {"layers": 4, "hidden": 1024, "seq": 1024, "micro_batch": 2}
JOBS = {
    "ddp": {"parallel": {"dp": 2}},
    "zero1": {"parallel": {"dp": 2}},
    "zero2": {"parallel": {"dp": 2}},
    "fsdp": {"parallel": {"dp": 2}},
    "tp": {"parallel": {"dp": 1, "tp": 2}},
    "tp+sp": {"parallel": {"dp": 1, "tp": 2}},
    "pp": {"parallel": {"dp": 1, "pp": 2, "micro_batches": 2}},
    "3d": {"parallel": {"dp": 1, "tp": 2, "pp": 1}},
    "ep": {"parallel": {"dp": 2, "ep": 2}, "model": dict(MODEL, experts=4)},
}
STEPS = 5


class Trace:
    def __init__(self, path):
        self.connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)

    def rows(self, query):
        return self.connection.execute(query).fetchall()

    def one(self, query):
        return self.rows(query)[0][0]

    def step_ms(self, step=None):
        """Of one step, else the median of those behind the first two; the slowest rank's."""
        steps = dict(self.rows("SELECT step, max(dur_ns) / 1e6 FROM step GROUP BY step"))
        return steps[step] if step is not None else statistics.median(steps[index] for index in range(2, STEPS))

    def calls_per_rank(self, name):
        return self.one(f"SELECT count(*) FROM api_call JOIN string ON string.id = name_id WHERE text = '{name}' AND rank = 0 AND source = "
                        "(SELECT min(source) FROM api_call)")

    def blocks(self, rank):
        """Of the largest grid of a layer."""
        return self.one(f"SELECT max(grid_blocks) FROM kernel JOIN string ON string.id = name_id WHERE rank = {rank} AND text LIKE '%GemmForward%'")

    def reduced_bytes(self):
        return self.one("SELECT sum(bytes) FROM nccl_call WHERE rank = 0")

    def kernels(self, condition):
        return self.one(f"SELECT count(*) FROM kernel WHERE nccl = 0 AND rank = 0 AND {condition}")


class Faults(VirtualRunTest):
    def trace(self, kind, name, faults, **more):
        scenario = {"name": f"{kind}-{name}", "kind": kind, "steps": STEPS, "noise": 0, "cluster": {"nodes": 1, "ranks_per_node": 2}, "model": MODEL,
                    **JOBS[kind], "faults": faults, **more}
        trace = Trace(self.run_scenario(self.write_scenario(scenario), f"{kind}-{name}") / "trace.db")
        self.addCleanup(trace.connection.close)
        return trace

    def healthy_and(self, kind, faults, **parallel):
        job = {"parallel": {**JOBS[kind]["parallel"], **parallel}}
        return self.trace(kind, "healthy", [], **job), self.trace(kind, "faulty", faults, **job)

    def compare(self, fault, longer_ms, check=None):
        """The fault costs about `longer_ms` a step on every kind: two thirds of it at least, where other waiting hides a part, and not twice as much."""
        for kind in JOBS:
            with self.subTest(kind=kind):
                healthy = self.trace(kind, "healthy-" + fault["kind"], [])
                faulty = self.trace(kind, fault["kind"], [fault])
                longer = faulty.step_ms() - healthy.step_ms()
                self.assertGreater(longer, longer_ms * 2 / 3)
                self.assertLess(longer, longer_ms * 2)
                if check:
                    check(healthy, faulty)

    def test_uneven_work_is_larger_grids_on_some_ranks(self):
        for kind in ("ddp", "fsdp"):
            with self.subTest(kind=kind):
                healthy, faulty = self.healthy_and(kind, [{"kind": "uneven_work", "factor": 1.5, "ranks": [1]}])
                self.assertEqual([faulty.blocks(0) / healthy.blocks(0), faulty.blocks(1) / healthy.blocks(1)], [0.5, 1.5])
                self.assertGreater(faulty.step_ms(), 1.25 * healthy.step_ms())

    def test_uneven_experts_get_unequal_numbers_of_tokens(self):
        healthy, faulty = self.healthy_and("ep", [{"kind": "uneven_work", "factor": 1.5, "ranks": [1]}])
        sent = "SELECT sum(bytes) FROM nccl_call WHERE op = (SELECT op FROM nccl_call WHERE peer IS NOT NULL ORDER BY id LIMIT 1) AND rank = "
        to_heavy = [trace.one(sent + "0") for trace in (healthy, faulty)]
        self.assertAlmostEqual(to_heavy[1] / to_heavy[0], 1, delta=0.01)  # half goes out more, half comes back less
        self.assertGreater(faulty.step_ms(), 1.1 * healthy.step_ms())

    def test_tensor_parallel_groups_span_nodes(self):
        job = {"cluster": {"nodes": 2, "ranks_per_node": 2, "inter": {"gbps": 10}}, "parallel": {"dp": 2, "tp": 2}}
        healthy, faulty = (self.trace("tp", name, faults, **job) for name, faults in (("healthy", []), ("faulty", [{"kind": "tp_across_nodes"}])))
        self.assertGreater(faulty.step_ms(), 1.2 * healthy.step_ms())

    def test_a_heavier_stage_has_larger_grids(self):
        healthy, faulty = self.healthy_and("pp", [{"kind": "stage_imbalance", "stage": 1, "factor": 2}])
        self.assertEqual([faulty.blocks(0) / healthy.blocks(0), faulty.blocks(1) / healthy.blocks(1)], [1, 2])
        self.assertGreater(faulty.step_ms(), 1.4 * healthy.step_ms())

    def test_fp32_gradients_are_twice_the_bytes(self):
        for kind, share in (("ddp", 2), ("fsdp", 4 / 3)):  # two of three messages of fsdp carry parameters
            with self.subTest(kind=kind):
                healthy, faulty = self.healthy_and(kind, [{"kind": "fp32_grads"}])
                self.assertAlmostEqual(faulty.reduced_bytes() / healthy.reduced_bytes(), share)

    def test_without_no_sync_every_micro_step_is_reduced(self):
        for kind, share in (("ddp", 3), ("fsdp", 9 / 7)):
            with self.subTest(kind=kind):
                healthy, faulty = self.healthy_and(kind, [{"kind": "no_no_sync"}], accumulate=3)
                self.assertAlmostEqual(faulty.reduced_bytes() / healthy.reduced_bytes(), share)

    def test_a_wrong_protocol_is_used_and_recorded(self):
        for kind in ("ddp", "fsdp"):
            with self.subTest(kind=kind):
                faulty = self.trace(kind, "faulty", [{"kind": "wrong_algo"}])
                self.assertEqual(faulty.rows("SELECT DISTINCT lower(protocol) FROM collective"), [("ll",)])
                self.assertEqual(faulty.rows("SELECT value FROM meta WHERE key = 'env.NCCL_PROTO'"), [("LL",)])

    def test_late_communication_is_called_after_its_data_are_ready(self):
        """By the lag, or the default's share of the step: the first call behind backward's kernels comes when they have run, not before."""
        for kind in ("ddp", "fsdp"):
            with self.subTest(kind=kind):
                healthy, faulty = self.healthy_and(kind, [{"kind": "late_launch", "ms": 3}])
                self.assertGreater(faulty.step_ms() - healthy.step_ms(), 2.5)
                late = "SELECT min(call.start_ns - step.start_ns) / 1e6 FROM step JOIN nccl_call call ON call.rank = step.rank AND call.start_ns BETWEEN " \
                       "step.start_ns AND step.start_ns + step.dur_ns WHERE step.rank = 0 AND step.step = 3"
                self.assertGreaterEqual(faulty.one(late) - healthy.one(late), 3)

    def test_jitter_stops_one_rank_in_some_steps(self):
        for kind in JOBS:
            with self.subTest(kind=kind):
                trace = self.trace(kind, "jitter", [{"kind": "jitter", "share": 0.4, "ms": 40}])
                slow = [step for step in range(STEPS) if trace.step_ms(step) > trace.step_ms(1) + 20]
                self.assertEqual(len(slow), 2)
                self.assertGreaterEqual(min(slow), 2)

    def test_launch_bound_jobs_launch_many_tiny_kernels(self):
        def check(healthy, faulty):
            self.assertGreater(faulty.kernels("dur_ns < 4000") - healthy.kernels("dur_ns < 4000"), 450 * STEPS)
            self.assertLessEqual(faulty.kernels("1") - healthy.kernels("1"), 500 * STEPS)

        self.compare({"kind": "launch_bound", "kernels": 500, "host_us": 20}, 500 * 0.023)

    def test_a_value_read_back_stops_the_device(self):
        def check(healthy, faulty):
            self.assertEqual(faulty.calls_per_rank("cudaStreamSynchronize") - healthy.calls_per_rank("cudaStreamSynchronize"), 4 * (STEPS - 1))

        self.compare({"kind": "sync_every_step", "per_step": 4, "host_ms": 3}, 12, check)

    def test_slow_input_is_a_long_range_of_the_data_loader(self):
        def check(healthy, faulty):
            query = "SELECT min(dur_ns) / 1e6 FROM nvtx JOIN string ON string.id = name_id WHERE text LIKE 'enumerate(DataLoader)#%'"
            self.assertLess(healthy.one(query), 1)
            self.assertGreaterEqual(faulty.one(query), 15)

        self.compare({"kind": "slow_input", "ms": 15}, 15, check)

    def test_alloc_churn_calls_the_driver_in_every_step(self):
        def check(healthy, faulty):
            for call in ("cudaMalloc", "cudaFree"):
                self.assertGreaterEqual(faulty.calls_per_rank(call) - healthy.calls_per_rank(call), 6 * (STEPS - 1))

        self.compare({"kind": "alloc_churn", "per_step": 6, "us": 1000}, 12, check)

    def test_pageable_copies_are_blocking_and_slow(self):
        def check(healthy, faulty):
            pageable = "SELECT count(*), coalesce(sum(bytes), 0), coalesce(sum(dur_ns), 0) FROM memcpy WHERE rank = 0 AND src_memory = 1 AND bytes > 1000000"
            self.assertEqual(healthy.rows(pageable)[0][0], 0)
            count, size, duration = faulty.rows(pageable)[0]
            self.assertEqual((count, size), (3 * (STEPS - 1), 120 * 1024 * 1024 * (STEPS - 1)))
            self.assertAlmostEqual(size / duration, 12, delta=0.5)  # GB/s

        self.compare({"kind": "pageable_copies", "per_step": 3, "mb": 120}, 10.5, check)


if __name__ == "__main__":
    unittest.main()
