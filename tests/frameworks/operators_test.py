#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operators on virtual GPUs: what they take, what the host takes, and the values that a job reads back. Skipped where PyTorch is not installed."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
RANKSCOPE = os.environ.get("RANKSCOPE_BINARY", "rankscope")
SKIPPED = 77
TIMEOUT_S = 280  # of one job

TFLOPS, HBM_GBPS, OPERATOR_US = 300, 2000, 5
SCENARIO = {"noise": 0, "cluster": {"nodes": 1, "ranks_per_node": 4, "tflops": TFLOPS, "hbm_gbps": HBM_GBPS, "operator_us": OPERATOR_US}}
LAUNCH_US = 2.2  # of the calling thread, for a kernel


def python_with_torch():
    """The interpreter of the frameworks' environment, or None."""
    folder = pathlib.Path(os.environ.get("RANKSCOPE_FRAMEWORKS") or pathlib.Path(RANKSCOPE).resolve().parents[1] / "frameworks")
    python = folder / "bin/python"
    return python if python.exists() and has("torch", python) else None


def has(package, python=None):
    """Whether the frameworks' environment has it."""
    found = subprocess.run([python or PYTHON, "-c", f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{package}') is None)"], timeout=TIMEOUT_S)
    return found.returncode == 0


def bytes_us(count):
    return count / HBM_GBPS / 1e3


def flop_us(count, share=1.0):
    return count / (TFLOPS * share) / 1e6


class Operators(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name)
        (self.folder / "scenario.json").write_text(json.dumps(SCENARIO))

    def run_job(self, *job, **environment):
        environment = dict(os.environ, RANKSCOPE_SCENARIO=str(self.folder / "scenario.json"), OMP_NUM_THREADS="1", **environment)
        done = subprocess.run([RANKSCOPE, "-q", "run", "--virtual", "--force", "-o", self.folder / "run", "--", PYTHON, *job], cwd=self.folder, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-4000:])
        return done

    def run_ranks(self, script, ranks=2):
        return self.run_job("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", HERE / script)

    def test_times_follow_from_bytes_and_arithmetic(self):
        times = json.loads(self.run_job(HERE / "operators_prices.py").stdout)
        half = 64 << 21  # bytes of 64 Mi bf16
        expected = {
            "add": bytes_us(3 * half), "in_place": bytes_us(2 * half), "fill": bytes_us(half), "convert": bytes_us(3 * half), "sum": bytes_us(half),
            "softmax": bytes_us(2 * half), "mm": flop_us(2 * 4096**3), "attention": flop_us(4 * 4 * 16 * 2048**2 * 64 / 2),
            "attention_backward": flop_us(2.5 * 4 * 4 * 16 * 2048**2 * 64 / 2), "convolution": flop_us(2 * 64 * 112**2 * 64 * 64 * 9), "adamw": bytes_us(7 * 4 * 64 << 20),
        }
        for name, wanted in expected.items():
            with self.subTest(name):
                self.assertLess(abs(times[name] / wanted - 1), 0.2, f"{name}: {times[name]:.1f} us, expected {wanted:.1f}")
        # What a stride of 0 repeats is read once: 4 MiB instead of 128.
        self.assertLess(times["broadcast"], bytes_us(8 << 20) + 20)
        # Without TF32, arithmetic in fp32 is many times slower.
        self.assertGreater(times["mm_fp32"], 5 * flop_us(2 * 1024**3))

    def test_tiny_operators_are_bound_by_their_host(self):
        each = json.loads(self.run_job(HERE / "operators_prices.py").stdout)["tiny"]
        self.assertLess(abs(each / (OPERATOR_US + LAUNCH_US) - 1), 0.1, f"{each:.2f} us each")

    def test_a_measured_table_takes_the_place_of_formulas(self):
        (self.folder / "prices.csv").write_text("operator,aten::mul_,bf16,0,268435456,500\n")
        times = json.loads(self.run_job(HERE / "operators_prices.py", RANKSCOPE_VGPU_PRICES=str(self.folder / "prices.csv")).stdout)
        self.assertLess(abs(times["in_place"] / 500 - 1), 0.05)
        self.assertLess(abs(times["add"] / bytes_us(3 * (64 << 21)) - 1), 0.2)

    def test_small_values_are_right_and_large_ones_finite(self):
        self.assertIn("as they should be", self.run_job(HERE / "operators_values.py").stdout)

    def test_objects_travel_and_replicas_agree(self):
        for ranks in (2, 4):
            with self.subTest(ranks=ranks):
                self.run_ranks("operators_ranks.py", ranks)

    def test_a_loss_over_parts_of_a_vocabulary_is_finite_and_equal(self):
        if not has("megatron"):
            self.skipTest("Megatron-core is not installed")
        self.run_ranks("operators_vocabulary.py")

    def test_ranks_may_end_without_a_word_while_others_go_on(self):
        self.assertNotIn("async error", self.run_ranks("operators_ends.py").stderr)

    def test_without_the_library_the_job_runs_and_says_so_once(self):
        small = "import torch; x = torch.ones(8, device='cuda') * 2; torch.cuda.synchronize(); print('ran')"
        done = self.run_job("-c", small, RANKSCOPE_TORCH_LIBRARY=str(self.folder / "none.so"))
        self.assertIn("ran", done.stdout)
        self.assertEqual(done.stderr.count("operators stay unknown"), 1, done.stderr)


if __name__ == "__main__":
    PYTHON = python_with_torch()
    if PYTHON is None:
        print("skipped: PyTorch is not installed; ./bootstrap.sh frameworks does, or RANKSCOPE_FRAMEWORKS names an environment that has it")
        sys.exit(SKIPPED)
    unittest.main()
