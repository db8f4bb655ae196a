#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs of training frameworks: their list, what is said where the frameworks are not installed, and, where they are, one of each kind end to end."""

import contextlib
import json
import os
import pathlib
import sqlite3
import unittest

from virtual_run import RANKSCOPE, VirtualRunTest

BUILD = pathlib.Path(RANKSCOPE).resolve().parents[1]
ENVIRONMENT = pathlib.Path(os.environ.get("RANKSCOPE_FRAMEWORKS", BUILD / "frameworks"))
# As somebody writes it who has never heard of a profiler.
TRAIN = """
import os, torch, torch.nn as nn, torch.distributed as dist
dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(12)]).cuda()
model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(6):
    optimizer.zero_grad()
    model(torch.randn(1024, 2048, device="cuda")).square().mean().backward()
    optimizer.step()
dist.destroy_process_group()
"""
JOBS = BUILD / "share/rankscope/frameworks/jobs"


class FrameworkJobs(VirtualRunTest):
    def test_every_job_and_its_repair_can_be_read(self):
        listed = json.loads(self.check_run(RANKSCOPE, "-q", "reference", "list", "--suite", "frameworks", "--format", "json").stdout)
        self.assertGreaterEqual(len(listed), 40)
        self.assertGreaterEqual(sum(job["faults"] != ["none"] for job in listed), 25)
        for job in listed:
            self.assertEqual(job["kind"], "framework")
            self.assertTrue(job["description"], job["name"])
            document = json.loads((JOBS / (job["name"] + ".json")).read_text())
            # A healthy control, or one whose clocks alone are wrong, expects nothing; a fault has a repair.
            self.assertEqual(job["faults"] in (["none"], ["clock_offset"]), not document["expect"], job["name"])
            if document["expect"]:
                self.assertIn("fixed", document, job["name"])

    def test_what_installs_the_frameworks_is_said_where_they_are_missing(self):
        for verb in (("score", "--suite", "frameworks"), ("run", "torch-ddp-none", "-o", "run")):
            result = self.run_any(RANKSCOPE, "-q", "reference", *verb, environment={"RANKSCOPE_FRAMEWORKS": str(self.folder / "nowhere")})
            self.assertEqual(result.returncode, 3, verb)
            self.assertIn(b"./bootstrap.sh frameworks", result.stderr)
        self.assertFalse((self.folder / "run").exists())


@unittest.skipUnless((ENVIRONMENT / "bin/torchrun").exists(), "the frameworks are not installed: ./bootstrap.sh frameworks")
class RealFrameworks(VirtualRunTest):
    def test_a_straggler_in_a_job_of_two_ranks_is_found_and_the_job_is_equal_each_time(self):
        job = json.loads((JOBS / "torch-fsdp-straggler.json").read_text())
        job["cluster"]["ranks_per_node"] = 2
        job["framework"]["arguments"].update({"--steps": 5, "--layers": 2})
        job["faults"][0]["rank"], job["expect"][0]["ranks"] = 1, [1]
        path = self.write_scenario(job)
        steps = []
        for name in ("one", "two"):
            self.run_scenario(path, name, environment={"RANKSCOPE_FRAMEWORKS": str(ENVIRONMENT)})
            report = self.report(name)
            self.assertEqual([(finding["id"], finding["ranks"]) for finding in report["findings"]], [("RS301", [1])])
            steps.append([step["dur_ns"] for step in report["steps"]])
        self.assertEqual(steps[0], steps[1])

    def profiled(self, name):
        """The reports of a job with a straggler: of our own recording, and of what torch.profiler exports in another run."""
        job = json.loads((JOBS / (name + ".json")).read_text())
        del job["fixed"]
        job["cluster"]["ranks_per_node"] = 2
        job["framework"]["arguments"].update({"--steps": 6, "--layers": 2, "--no-ranges": True})
        job["faults"][0]["rank"], job["expect"][0]["ranks"] = 1, [1]
        where = {"RANKSCOPE_FRAMEWORKS": str(ENVIRONMENT)}
        ours, profiled, exported, theirs = (f"{name}-{part}" for part in ("ours", "profiled", "exported", "theirs"))
        self.run_scenario(self.write_scenario(dict(job, name=ours)), ours, environment=where)
        job["framework"]["arguments"]["--profile"] = str(self.folder / exported)
        self.run_scenario(self.write_scenario(dict(job, name=profiled)), profiled, environment=where)
        self.check_run(RANKSCOPE, "-q", "import", exported, "-o", theirs)
        return self.report(ours), self.report(theirs)

    def test_the_trace_of_torch_profiler_gives_the_report_of_our_own_recording(self):
        for name in ("torch-ddp-straggler", "torch-fsdp-straggler"):
            with self.subTest(job=name):
                ours, theirs = self.profiled(name)
                self.assertEqual([(finding["id"], finding["ranks"]) for finding in ours["findings"]], [("RS301", [1])])
                self.assertEqual([(finding["id"], finding["ranks"]) for finding in theirs["findings"]], [("RS301", [1])])
                self.assertEqual(len(ours["steps"]), len(theirs["steps"]))
                step = ours["steps"][-1]["dur_ns"]
                self.assertLess(abs(ours["findings"][0]["saving_ns_per_step"] - theirs["findings"][0]["saving_ns_per_step"]), 0.01 * step)
                self.assertLess(theirs["replay"]["error"], 0.02)
                for mine, other in zip(ours["breakdown"], theirs["breakdown"], strict=True):
                    for part in ("compute_ns", "exposed_comm_ns", "memory_ns", "idle_ns"):
                        self.assertLess(abs(mine[part] / mine["step_ns"] - other[part] / other["step_ns"]), 0.01, (mine["rank"], part))

    def test_compiled_modules_run_to_the_end_and_their_steps_are_equal_each_time(self):
        """Triton's kernels are compiled for a device that is not there, never executed, and told of once."""
        script = self.folder / "train.py"
        script.write_text(TRAIN.replace("DistributedDataParallel(model)", "DistributedDataParallel(torch.compile(model))")
                               .replace("*[nn.Linear(2048, 2048) for _ in range(12)]", "nn.Linear(2048, 2048), nn.GELU(), nn.LayerNorm(2048)"))
        steps = []
        for name in ("one", "two"):
            caches = {"TORCHINDUCTOR_CACHE_DIR": str(self.folder / "inductor"), "TRITON_CACHE_DIR": str(self.folder / "triton")}
            result = self.check_run(RANKSCOPE, "-q", "run", "--virtual", "-o", name, "--", ENVIRONMENT / "bin/torchrun", "--standalone", "--nproc-per-node", "2", script, environment=caches)
            self.assertEqual(result.stderr.count(b"compiled at run time (the first: triton_"), 1, result.stderr)
            with contextlib.closing(sqlite3.connect(self.folder / name / "trace.db")) as trace:
                self.assertGreater(trace.execute("SELECT count(*) FROM kernel k JOIN string t ON t.id = k.name_id WHERE t.text LIKE 'triton_%'").fetchone()[0], 0)
                steps.append(trace.execute("SELECT rank, step, dur_ns FROM step WHERE step >= 3 ORDER BY 1, 2").fetchall())
        self.assertTrue(steps[0])
        self.assertEqual(steps[0], steps[1])

    def test_steps_that_nobody_named_end_with_the_optimizers_update(self):
        """Twelve equal layers, reduced one by one: no bucket is a step."""
        script = self.folder / "train.py"
        script.write_text(TRAIN)
        self.check_run(RANKSCOPE, "-q", "run", "--virtual", "-o", "mine", "--", ENVIRONMENT / "bin/torchrun", "--standalone", "--nproc-per-node", "2", script)
        report = self.report("mine")
        self.assertEqual(report["run"]["step_source"], "updates")
        with contextlib.closing(sqlite3.connect(self.folder / "mine/trace.db")) as trace:
            self.assertEqual(trace.execute("SELECT rank, count(*) FROM step GROUP BY 1").fetchall(), [(0, 6), (1, 6)])
            kernels = trace.execute("""SELECT s.step, sum(t.text LIKE '%gemm%'), sum(t.text LIKE '%multi_tensor_apply%') FROM step s
                JOIN kernel k ON k.rank = s.rank AND k.start_ns >= s.start_ns AND k.start_ns < s.start_ns + s.dur_ns
                JOIN string t ON t.id = k.name_id WHERE s.rank = 0 GROUP BY 1""").fetchall()
        gemms = 12 + 12 + 11  # forward, weights, inputs but the first layer's
        self.assertEqual([count for _, count, _ in kernels], [gemms] * 6)
        self.assertEqual(len({updates for _, _, updates in kernels}), 1)


if __name__ == "__main__":
    unittest.main()
