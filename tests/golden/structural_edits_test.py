# SPDX-License-Identifier: Apache-2.0
"""Changes that move work, foretold from one run and measured in another: buckets, overlap, prefetch, micro-batches, virtual stages, schedules."""

import json
import unittest

import virtual_run

WITHIN = 0.05  # of the measured step

DDP = {"kind": "ddp", "cluster": {"nodes": 2, "ranks_per_node": 2, "tflops": 150, "intra": {"alpha_us": 6, "gbps": 100}, "inter": {"alpha_us": 10, "gbps": 25}},
       "model": {"layers": 12, "hidden": 1024, "seq": 1024, "micro_batch": 1}, "parallel": {"dp": 4, "bucket_mb": 25}}
FSDP = {"kind": "fsdp", "cluster": {"nodes": 2, "ranks_per_node": 2, "inter": {"alpha_us": 40, "gbps": 25}},
        "model": {"layers": 8, "hidden": 2048, "seq": 1024, "micro_batch": 1}, "parallel": {"dp": 4, "prefetch": False}}
PIPELINE = {"kind": "pp", "cluster": {"nodes": 2, "ranks_per_node": 2, "intra": {"alpha_us": 6, "gbps": 200}, "inter": {"alpha_us": 10, "gbps": 25}},
            "model": {"layers": 8, "hidden": 2048, "seq": 2048, "micro_batch": 1}, "parallel": {"pp": 4, "dp": 1, "micro_batches": 4}}


def merged(base, change):
    result = dict(base)
    for key, value in change.items():
        result[key] = merged(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value
    return result


class StructuralEditsTest(virtual_run.VirtualRunTest):
    def run_job(self, scenario, name):
        return self.run_scenario(self.write_scenario(dict({"steps": 5, "seed": 5, "noise": 0.02, "faults": []}, **scenario, name=name)), name)

    def foretell(self, scenario, changes):
        """changes: [(what the job becomes, the change as whatif takes it)]"""
        self.run_job(scenario, "base")
        base_ns = self.report("base")["replay"]["measured_step_ns"]
        for number, (override, change) in enumerate(changes):
            with self.subTest(change=change):
                text = self.check_run(virtual_run.RANKSCOPE, "-q", "whatif", "base", "--change", change, "--format", "json").stdout
                foretold = json.loads(text)
                name = f"changed-{number}"
                self.run_job(merged(scenario, override), name)
                measured_ns = self.report(name)["replay"]["measured_step_ns"] / foretold["tokens_factor"]
                self.assertLess(abs(foretold["changed_step_ns"] - measured_ns), WITHIN * measured_ns, f"{base_ns} becomes {measured_ns}")
                # The case must be one that shows: nothing foretold would not do.
                self.assertGreater(abs(base_ns - measured_ns), WITHIN * measured_ns)

    def test_buckets(self):
        self.foretell(DDP, [({"parallel": {"bucket_mb": 400}}, "buckets:mb=400")])

    def test_overlap_of_gradients(self):
        self.foretell(merged(DDP, {"parallel": {"overlap": False}}), [({"parallel": {"overlap": True}}, "overlap")])

    def test_prefetch(self):
        self.foretell(FSDP, [({"parallel": {"prefetch": True}}, "prefetch")])

    def test_pipelines(self):
        self.foretell(PIPELINE, [({"parallel": {"micro_batches": 16}}, "micro-batches:count=16"),
                                 ({"parallel": {"schedule": "interleaved", "virtual_stages": 2}}, "schedule:name=interleaved,virtual=2")])


if __name__ == "__main__":
    unittest.main()
