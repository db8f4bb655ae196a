#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The JSON that programs read is what docs/schemas says: real outputs are valid, every member is described, and a program that was written from the schemas alone works on all of them."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/golden"))
from virtual_run import RANKSCOPE, SMALL, TIMEOUT_S, VirtualRunTest  # noqa: E402

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not here")
    sys.exit(77)

SAMPLE = os.environ.get("RANKSCOPE_SAMPLE_COMPARISON", "rankscope_sample_comparison")
SCHEMAS = {file.stem: json.loads(file.read_text()) for file in (ROOT / "docs/schemas").glob("*.json")}
JOBS = {"data": SMALL, "pipeline": dict(SMALL, name="pipeline", kind="pp", parallel={"dp": 1, "pp": 4, "micro_batches": 4, "schedule": "1f1b"}, cluster={"nodes": 1, "ranks_per_node": 4}, faults=[])}


def message(report, comparison):
    """What a program posts to a chat that has read docs/schemas only."""
    def ms(ns):
        return "unknown" if ns is None else f"{ns / 1e6:.1f} ms"
    step, gate = comparison["step_time"], comparison["gate"]
    lines = [f"{step['verdict']}: {comparison['title']}", f"step {ms(step['base_ns'])} -> {ms(step['new_ns'])}"]
    if step["ratio"] is not None:
        lines[-1] += f" ({100 * (step['ratio'] - 1):+.1f} %)"
    if step["between_runs"] is not None:
        lines.append(f"noise between runs {100 * step['between_runs']:.1f} %")
    lines += [f"because {cause['text']}" for cause in comparison["causes"][:1]]
    lines += [f"{odd['run']} is not like the others" for odd in comparison["odd_runs"]]
    lines.append(f"gate {gate['conclusion']}: " + "; ".join(gate["reasons"] or gate["notices"] or ["nothing to add"]))
    lines.append(f"the run's own step is {ms(report['step_time']['ns'])}, of {report['step_time']['steps']} steps")
    for finding in report["findings"][:1]:
        lines.append(f"{finding['id']} {finding['title']}: {finding['cause']}; repaired it saves {ms(finding['saving_ns_per_step'])}")
    return "\n".join(lines)


def members(schema, path=""):
    """(path, schema) of everything that an object may hold."""
    for name, member in schema.get("properties", {}).items():
        yield f"{path}.{name}", member
        yield from members(member, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from members(schema[inner], path + "[]")


class Schemas(VirtualRunTest):
    def json_of(self, *words):
        result = subprocess.run([RANKSCOPE, "-q", *words, "--format", "json"], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=TIMEOUT_S)
        return json.loads(result.stdout)

    def check(self, name, data):
        errors = [f"{list(error.absolute_path)}: {error.message[:200]}" for error in jsonschema.Draft202012Validator(SCHEMAS[name]).iter_errors(data)]
        self.assertEqual(errors[:5], [], name)

    def test_are_schemas_in_which_every_member_is_described(self):
        for name, schema in SCHEMAS.items():
            jsonschema.Draft202012Validator.check_schema(schema)
            self.assertEqual(schema["properties"]["schema"]["const"], "rankscope." + name.replace("-", "/"))
            for path, member in members(schema):
                self.assertGreater(len(member.get("description", "")), 2, (name, path))
                if "null" in member.get("type", []):
                    self.assertRegex(member["description"], "[Nn]ull", f"{name} {path} does not say what null means")

    def test_a_missing_member_or_one_that_nobody_described_is_found(self):
        sample = json.loads(subprocess.run([SAMPLE, "plain", "json"], check=True, capture_output=True, timeout=60).stdout)
        self.check("compare-1", sample)
        for broken in (dict(sample, more=1), {key: value for key, value in sample.items() if key != "gate"}, dict(sample, step_time=dict(sample["step_time"], ratio="1.1"))):
            self.assertTrue(list(jsonschema.Draft202012Validator(SCHEMAS["compare-1"]).iter_errors(broken)))

    def test_real_outputs_are_valid_and_a_program_reads_them(self):
        runs = {}
        for name, job in JOBS.items():
            for seed in (1, 2):
                runs[name, seed] = f"{name}{seed}"
                self.run_scenario(self.write_scenario(dict(job, name=f"{name}{seed}", seed=seed)), f"{name}{seed}")
        reports = {name: self.json_of("analyze", runs[name, 1]) for name in JOBS}
        for name in JOBS:
            self.check("report-1", reports[name])
            self.check("recommend-1", self.json_of("recommend", runs[name, 1]))
        comparisons = {"one against one": ["data1", "data2"], "other jobs": ["data1", "pipeline1"], "no baseline": ["--baseline", "nowhere", "data1"], "pipelines": ["pipeline1", "pipeline2"],
                       "two": ["--base", "data1", "data2", "--new", "data1", "data2", "--per", "sample=2", "--label", "c34"]}
        for what, words in comparisons.items():
            comparison = self.json_of("compare", *words)
            with self.subTest(comparison=what):
                self.check("compare-1", comparison)
                text = message(reports["data"], comparison)
                self.assertIn(comparison["title"], text)
                self.assertNotIn("None", text)
        for sample in ("plain", "hostile", "many", "empty"):
            comparison = json.loads(subprocess.run([SAMPLE, sample, "json"], check=True, capture_output=True, timeout=60).stdout)
            with self.subTest(sample=sample):
                self.check("compare-1", comparison)
                self.assertNotIn("None", message(reports["pipeline"], comparison))


if __name__ == "__main__":
    unittest.main()
