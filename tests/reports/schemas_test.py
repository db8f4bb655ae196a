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
from tune_test import LAUNCH  # noqa: E402
from virtual_run import RANKSCOPE, SMALL, TIMEOUT_S, VirtualRunTest  # noqa: E402

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not here")
    sys.exit(77)

# Its slow rank's device says that it is throttled.
THROTTLED = dict(SMALL, name="throttled", faults=[{"kind": "straggler", "rank": 1, "factor": 1.5, "throttle": "power"}])
# Many small messages in a world of no noise: settings of NCCL decide, and runs repeat each other.
SMALL_MESSAGES = dict(SMALL, name="messages", noise=0, faults=[], parallel={"dp": 4, "bucket_mb": 0.5})
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


def summaries(saved):
    """A baseline's files of a month, of saved runs: four entries of three runs each, then another level with another finding, in which a run is odd. `saved`: of a run with a fault and of one without."""
    for entry in range(8):
        for run in range(3):
            slower = 1.2 if entry >= 4 else 1
            ratio = slower * (1 + 0.002 * run) * (1.5 if (entry, run) == (5, 2) else 1)
            of = saved[0 if entry < 4 else 1]
            yield dict(of, name=f"c{entry}-{run}", label="" if entry == 7 else f"c{entry}", start_unix_ns=0 if entry == 2 else 1_700_000_000_000_000_000 + entry * 1_000_000_000 + run,
                       saved_order=entry + 1, steps_ns=[ratio * ns for ns in saved[0]["steps_ns"]])


class Schemas(VirtualRunTest):
    def json_of(self, *words):
        options = words.index("--") if "--" in words else len(words)
        result = subprocess.run([RANKSCOPE, "-q", *words[:options], "--format", "json", *words[options:]], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=TIMEOUT_S)
        return json.loads(result.stdout)

    def check(self, name, data):
        errors = [f"{list(error.absolute_path)}: {error.message[:200]}" for error in jsonschema.Draft202012Validator(SCHEMAS[name]).iter_errors(data)]
        self.assertEqual(errors[:5], [], name)

    def test_are_schemas_in_which_every_member_is_described(self):
        for name, schema in SCHEMAS.items():
            jsonschema.Draft202012Validator.check_schema(schema)
            self.assertEqual(schema["properties"]["schema"]["const"], "rankscope." + "/".join(name.rsplit("-", 1)))
            self.assertEqual(schema["$id"], f"https://rankscope.dev/schemas/{name}.json")
            for path, member in [("", schema), *members(schema)]:
                self.assertEqual("additionalProperties" in member, "object" in member.get("type", []), (name, path))
                if "properties" in member:
                    self.assertIs(member["additionalProperties"], False, (name, path))
                    self.assertLessEqual(set(member.get("required", [])), set(member["properties"]), (name, path))
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

    def saved(self, *words):
        """The files of a baseline that `baseline save` fills."""
        before = set((self.folder / "baseline").glob("*.json"))
        self.check_run(RANKSCOPE, "-q", "baseline", "save", "--dir", "baseline", *words)
        return [json.loads(file.read_text()) for file in sorted(set((self.folder / "baseline").glob("*.json")) - before)]

    def test_files_of_a_baseline_and_its_trend_are_valid(self):
        (self.folder / "baseline").mkdir()
        self.run_scenario(self.write_scenario(THROTTLED), "slow")
        self.run_scenario(self.write_scenario(dict(SMALL, name="well", faults=[])), "well")
        self.run_scenario(self.write_scenario(dict(SMALL, name="long", steps=520, faults=[])), "long")
        slow, = self.saved("slow", "--label", "c1")
        well, = self.saved("well")
        long, = self.saved("long")
        self.assertIn("RS301", [finding["id"] for finding in slow["findings"]])
        self.assertEqual((well["label"], long["steps_per_sample"]), ("", 2))
        self.assertIn("step_p95_ns", long)
        self.check_run(RANKSCOPE, "-q", "baseline", "accept", "--dir", "baseline", "--label", "c1")
        files = [json.loads(file.read_text()) for file in (self.folder / "baseline").glob("*.json")]
        self.assertEqual([file["label"] for file in files if "begins_level" in file], ["c1"])
        # Of an older version, too: what is committed stays readable.
        files += [json.loads(file.read_text()) for file in (ROOT / "tests/golden/demo-baseline").glob("*.json")]
        for file in [slow, well, long, *files]:
            self.check("run-summary-1", file)
        (self.folder / "month").mkdir()
        for at, summary in enumerate(summaries((slow, well))):
            self.check("run-summary-1", summary)
            (self.folder / "month" / f"{at}.json").write_text(json.dumps(summary))
        trend = self.json_of("trend", "month")
        kind, = trend["kinds"]
        self.assertEqual((len(kind["levels"]), [run["name"] for run in kind["left_out"]]), (2, ["c5-2"]))
        self.assertIn("RS301", [finding["id"] for finding in kind["entries"][4]["went"]])
        self.check("trend-1", trend)
        self.check("trend-1", self.json_of("trend", "--baseline", "baseline"))

    def test_what_verbs_say_of_a_run_is_valid(self):
        (self.folder / "few.json").write_text(json.dumps({"distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": [
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 10 * at, "dur": 5, "args": {"device": 0, "stream": 7, "correlation": at}} for at in range(1, 9)]}))
        self.check_run(RANKSCOPE, "-q", "import", "few.json", "-o", "few")
        self.run_scenario(self.write_scenario(THROTTLED), "throttled")
        self.run_scenario(self.write_scenario(JOBS["pipeline"]), "pipeline")
        self.check_run(RANKSCOPE, "-q", "run", "--virtual", "-o", "nothing", "--", "true")
        (self.folder / "damaged").mkdir()
        (self.folder / "damaged" / "run.json").write_text("{")
        self.check_run(RANKSCOPE, "-q", "analyze", "throttled", "-o", "throttled.txt")
        for run, changes in (("throttled", ["balance", "no-contention"]), ("throttled", ["dp-ranks:count=8"]), ("pipeline", ["micro-batches:count=8"])):
            played = self.json_of("whatif", run, *(word for change in changes for word in ("--change", change)))
            self.assertEqual(played["changes"], changes)
            self.check("whatif-1", played)
        for run in ("throttled", "pipeline", "few"):
            for options in ([], ["--per-rank", "--top", "2"], ["--tables", "hta"]):
                with self.subTest(run=run, stats=options):
                    self.check("stats-1", self.json_of("stats", run, *options))
        self.assertIsNone(self.json_of("stats", "few", "--tables", "hta")["tables"]["communication_overlap"][0]["comp_comm_overlap_pctg"])
        for run in ("throttled", "pipeline", "nothing"):
            with self.subTest(top=run):
                self.check("top-1", self.json_of("top", run, "--once"))
        self.assertIn("power cap", [device["throttled_by"] for device in self.json_of("top", "throttled", "--once")["devices"]])
        listed = self.json_of("list")
        self.assertEqual({run["name"]: run["problem"] for run in listed["runs"] if run["problem"]}, {"damaged": "run.json is damaged"})
        self.check("list-1", listed)
        self.check("doctor-1", self.json_of("doctor"))

    def test_measured_settings_and_a_sweep_are_valid(self):
        (self.folder / "rows.csv").write_text("allreduce,0,-1,tree,ll,-1,2,4\n")
        (self.folder / "promised.json").write_text(json.dumps({"candidates": [{"title": "promised", "env": {"NCCL_PROTO": "LL128", "NCCL_ALGO": None}, "predicted_saving_ns": 1000, "interval_ns": [500, 1500]}]}))
        scenario = self.write_scenario(SMALL_MESSAGES)
        self.environment["NCCL_PROTO"] = "simple"
        tuned = self.json_of("tune", "--rounds", "2", "-o", "tuned", "--reference", str(scenario), "--candidates", "promised.json", "--tuner", "rows.csv", "--candidate", "NCCL_ALGO=nonsense")
        self.assertEqual((tuned["winner"], [candidate["verdict"] for candidate in tuned["candidates"]].count("failed")), ("promised", 1))
        self.check("tune-1", tuned)
        self.assertEqual(json.loads((self.folder / "tuned" / "tune.json").read_text()), tuned)
        del self.environment["NCCL_PROTO"]
        self.run_scenario(scenario, "messages")
        (self.folder / "launch.sh").write_text(LAUNCH)
        swept = self.json_of("tune", "--virtual", "-o", "swept", "--sweep", "messages", "--", "sh", "launch.sh")
        self.assertTrue(swept["collectives"])
        self.check("sweep-1", swept)

    def test_scores_are_valid(self):
        (self.folder / "suite").mkdir()
        straggler = dict(SMALL, model={"layers": 8, "hidden": 2048, "seq": 2048, "micro_batch": 4})
        cluster = {"nodes": 2, "ranks_per_node": 2, "tflops": 300, "intra": {"alpha_us": 5, "gbps": 150}, "inter": {"alpha_us": 30, "gbps": 25}}
        for scenario in (dict(straggler, name="found", expect=[{"id": "RS301", "ranks": [1]}], fixed={"faults": []}), dict(straggler, name="misplaced", expect=[{"id": "RS301", "ranks": [2]}]),
                         dict(SMALL, name="advised", steps=6, cluster=cluster, model={"layers": 8, "hidden": 1024, "seq": 1024, "micro_batch": 2}, parallel={"dp": 4, "bucket_mb": 1}, faults=[],
                              expect=[], follow={"ddp.bucket_cap_mb": {"parallel": {"bucket_mb": "$"}}}),
                         dict(SMALL, name="broken", kind="no such kind")):
            (self.folder / "suite" / f"{scenario['name']}.json").write_text(json.dumps(scenario))
        score = self.json_of("reference", "score", "--scenarios", "suite", "--follow-advice")
        rows = {row["name"]: row for row in score["scenarios"]}
        self.assertEqual((rows["advised"]["advice"]["followed"], len(rows["misplaced"]["wrong_rank"]), rows["broken"]["step_ns"]), (["buckets"], 1, None))
        self.assertTrue(rows["broken"]["error"])
        self.check("score-1", score)
        modes = self.json_of("reference", "score", "--scenarios", "suite", "--only", "found", "--no-fixed", "--links", "all")
        self.assertEqual([mode["links"] for mode in modes["modes"]], ["told", "machine", "unknown"])
        self.check("score_modes-1", modes)
        for mode in modes["modes"]:
            self.check("score-1", mode)

    def test_the_score_of_comparisons_is_valid(self):
        parts = (word for part in ("bimodal", "slower-5", "ddp-straggler") for word in ("--only", part))
        score = self.json_of("reference", "score", "--suite", "compare", *parts, "--pool", "6", "--pairs", "3", "--cause-runs", "3", "--cause-pairs", "2")
        self.assertEqual((score["bimodal"]["pairs"], len(score["slowdowns"]), [cause["scenario"] for cause in score["causes"]]), (3, 1, ["ddp-straggler"]))
        self.check("score_compare-1", score)

    def test_what_a_run_keeps_of_itself_is_valid(self):
        (self.folder / "rows.csv").write_text("allreduce,0,-1,tree,ll,-1,2,4\n")
        runs = {"plain": [], "light": ["--light"], "kernels": ["--light=kernels"], "part": ["--delay", "0.1", "--duration", "5", "--links", "intra:gbps=9", "--tuner", "rows.csv", "--env", "NCCL_PROTO=simple"],
                "silent": ["--no-environment"]}
        for name, options in runs.items():
            self.check_run(RANKSCOPE, "-q", "run", "--virtual", "-o", name, *options, "--", "true")
        subprocess.run([RANKSCOPE, "-q", "run", "--virtual", "-o", "killed", "--", "sh", "-c", "kill -9 $$"], cwd=self.folder, env=self.environment, capture_output=True, timeout=TIMEOUT_S)
        self.run_scenario(self.write_scenario(THROTTLED), "scenario")
        kept = {name: json.loads((self.folder / name / "run.json").read_text()) for name in [*runs, "killed", "scenario"]}
        self.assertEqual((kept["killed"]["signal"], kept["light"]["options"]["light"], kept["part"]["options"]["env"]), (9, True, {"NCCL_PROTO": "simple"}))
        self.assertNotIn("environment", kept["silent"])
        for name, run in kept.items():
            with self.subTest(run=name):
                self.check("run-1", run)


if __name__ == "__main__":
    unittest.main()
