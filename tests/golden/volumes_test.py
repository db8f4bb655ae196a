#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bytes that each kind of job puts on the bus in a step, as recorded, are those of theory.

Bus bytes are counted as nccl-tests does it (doc/PERFORMANCE.md): the bytes of the call times 2(n-1)/n for an all-reduce, (n-1)/n for an all-gather
or reduce-scatter; a message counts at its sender."""

import collections
import sqlite3
import unittest

from virtual_run import VirtualRunTest

LAYERS, HIDDEN, SEQ, BATCH, ELEMENT = 4, 256, 128, 2, 2
ACTIVATION = BATCH * SEQ * HIDDEN * ELEMENT  # "BSH"
FACTOR = {"all_reduce": lambda n: 2 * (n - 1) / n, "all_gather": lambda n: (n - 1) / n, "reduce_scatter": lambda n: (n - 1) / n,
          "send": lambda n: 1, "recv": lambda n: 0}


def gradient_bytes(tensor_ranks=1):
    """Of a rank's part of all layers: matrices and the biases of their cut dimension are cut, the rest is not."""
    return LAYERS * ELEMENT * (12 * HIDDEN**2 / tensor_ranks + 7 * HIDDEN / tensor_ranks + 6 * HIDDEN)


class Volumes(VirtualRunTest):
    def bus_bytes(self, kind, parallel, nodes=1, **model):
        """{step: {(op, ranks of the communicator): bytes of all ranks}}"""
        scenario = {"name": kind.replace("+", "-"), "kind": kind, "steps": 4, "parallel": parallel,
                    "model": dict({"layers": LAYERS, "hidden": HIDDEN, "seq": SEQ, "micro_batch": BATCH}, **model)}
        self.ranks = parallel["dp"] * parallel.get("tp", 1) * parallel.get("pp", 1)
        scenario["cluster"] = {"nodes": nodes, "ranks_per_node": self.ranks // nodes}
        self.runs = getattr(self, "runs", 0) + 1
        run = self.run_scenario(self.write_scenario(scenario), f"run{self.runs}")
        connection = sqlite3.connect(f"file:{run / 'trace.db'}?mode=ro", uri=True)
        rows = connection.execute("SELECT s.step, c.op, m.n_ranks, sum(c.bytes) FROM nccl_call c JOIN communicator m ON m.id = c.communicator_id "
                                  "JOIN step s ON s.rank = c.rank AND c.start_ns BETWEEN s.start_ns AND s.start_ns + s.dur_ns "
                                  "GROUP BY 1, 2, 3").fetchall()
        connection.close()
        steps = collections.defaultdict(dict)
        for step, op, ranks, size in rows:
            if FACTOR[op](ranks):
                steps[step][op, ranks] = size * FACTOR[op](ranks)
        self.assertEqual(len(steps), 4)
        return steps.values()

    def assert_per_rank(self, steps, expected):
        self.assert_in_total(steps, {key: size * self.ranks for key, size in expected.items()})

    def assert_in_total(self, steps, expected):
        for step in steps:
            self.assertEqual(set(step), set(expected))
            for key, size in expected.items():
                self.assertAlmostEqual(step[key] / size, 1, delta=0.001, msg=f"{key}: {step[key]} bytes, expected {size}")

    def test_ddp(self):
        self.assert_per_rank(self.bus_bytes("ddp", {"dp": 4}), {("all_reduce", 4): 2 * gradient_bytes() * 3 / 4})

    def test_zero1(self):
        self.assert_per_rank(self.bus_bytes("zero1", {"dp": 4}),
                             {("all_reduce", 4): 2 * gradient_bytes() * 3 / 4, ("all_gather", 4): gradient_bytes() * 3 / 4})

    def test_zero2(self):
        self.assert_per_rank(self.bus_bytes("zero2", {"dp": 4}),
                             {("reduce_scatter", 4): gradient_bytes() * 3 / 4, ("all_gather", 4): gradient_bytes() * 3 / 4})

    def test_fsdp(self):
        self.assert_per_rank(self.bus_bytes("fsdp", {"dp": 4}),
                             {("all_gather", 4): 2 * gradient_bytes() * 3 / 4, ("reduce_scatter", 4): gradient_bytes() * 3 / 4})

    def test_hsdp(self):
        # Two nodes of four: sharded over four, each shard summed over two.
        self.assert_per_rank(self.bus_bytes("hsdp", {"dp": 8}, nodes=2),
                             {("all_gather", 4): 2 * gradient_bytes() * 3 / 4, ("reduce_scatter", 4): gradient_bytes() * 3 / 4,
                              ("all_reduce", 2): 2 * gradient_bytes() / 4 * 1 / 2})

    def test_tp(self):
        self.assert_per_rank(self.bus_bytes("tp", {"dp": 2, "tp": 4}),
                             {("all_reduce", 4): LAYERS * 4 * 2 * 3 / 4 * ACTIVATION, ("all_reduce", 2): 2 * gradient_bytes(4) * 1 / 2})

    def test_tp_with_sequence_parallelism(self):
        self.assert_per_rank(self.bus_bytes("tp+sp", {"dp": 1, "tp": 4}),
                             {("all_gather", 4): LAYERS * 4 * 3 / 4 * ACTIVATION, ("reduce_scatter", 4): LAYERS * 4 * 3 / 4 * ACTIVATION})

    def test_pp(self):
        for schedule in ("gpipe", "1f1b"):
            with self.subTest(schedule):
                self.assert_in_total(self.bus_bytes("pp", {"dp": 1, "pp": 4, "schedule": schedule, "micro_batches": 6}),
                                     {("send", 4): 2 * ACTIVATION * 6 * 3})

    def test_interleaved_pp(self):
        self.assert_in_total(self.bus_bytes("pp", {"dp": 1, "pp": 2, "schedule": "interleaved", "virtual_stages": 2, "micro_batches": 6}),
                             {("send", 2): 2 * ACTIVATION * 6 * 3})

    def test_ep(self):
        # Experts are summed over the two groups, everything else over all eight ranks.
        experts = LAYERS * ELEMENT * 2 * (8 * HIDDEN**2 + 5 * HIDDEN)
        dense = LAYERS * ELEMENT * (4 * HIDDEN**2 + 8 * HIDDEN + HIDDEN * 8)
        self.assert_per_rank(self.bus_bytes("ep", {"dp": 8, "ep": 4}, experts=8),
                             {("send", 4): LAYERS * 4 * ACTIVATION * 3 / 4, ("all_reduce", 2): 2 * experts * 1 / 2, ("all_reduce", 8): 2 * dense * 7 / 8})

    def test_3d(self):
        micro_batches = 3
        total = {("all_reduce", 2): 16 * micro_batches * LAYERS / 2 * 4 * 2 * 1 / 2 * ACTIVATION,
                 ("all_reduce", 4): 16 * 2 * gradient_bytes(2) / 2 * 3 / 4,
                 ("send", 2): 8 * 2 * ACTIVATION * micro_batches}
        self.assert_in_total(self.bus_bytes("3d", {"dp": 4, "tp": 2, "pp": 2, "micro_batches": micro_batches}), total)


if __name__ == "__main__":
    unittest.main()
