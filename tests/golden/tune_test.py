#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rankscope tune`: jobs on virtual GPUs with and without candidate settings, and jobs and candidates that go wrong."""

import json
import os
import pathlib
import signal
import statistics
import subprocess
import time
import unittest

from virtual_run import RANKSCOPE, SMALL, TIMEOUT_S, WORKLOAD, VirtualRunTest

# Many small messages: what a hop costs decides.
SCENARIO = dict(SMALL, noise=0, faults=[], parallel={"dp": 4, "bucket_mb": 0.5})
# The ranks as a launcher would start them, and what a candidate may do to them.
LAUNCH = """
[ "$CRASH" ] && exit 7
if [ "$HANG" ]; then
  echo started > hanging
  setsid sleep "$HANG" &
  wait
fi
for rank in 0 1 2 3; do
  RANK=$rank WORLD_SIZE=4 LOCAL_RANK=$((rank % 2)) LOCAL_WORLD_SIZE=2 RANKSCOPE_HOST=node$((rank / 2)) MASTER_ADDR=localhost MASTER_PORT=29500 "$@" &
done
wait
"""


USERS_TUNER = os.environ.get("RANKSCOPE_TEST_TUNER")  # sends every all-reduce over a ring with Simple
FOREVER = str(1_000_000 + os.getpid())  # seconds that tell this test's processes from others


def hanging_processes():
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes() == f"sleep\0{FOREVER}\0".encode():
                found.append(entry.name)
        except OSError:
            pass  # it has just ended
    return found


class Tune(VirtualRunTest):
    def setUp(self):
        super().setUp()
        (self.folder / "launch.sh").write_text(LAUNCH)
        self.use(SCENARIO)

    def use(self, scenario):
        self.scenario = self.write_scenario(scenario)
        self.environment["RANKSCOPE_SCENARIO"] = str(self.scenario)

    def command(self, *options, name="tuned", job=None):
        job = job or ("sh", "launch.sh", WORKLOAD, self.scenario)
        return [str(word) for word in (RANKSCOPE, "-q", "tune", "--virtual", "-o", name, "--rounds", "2", *options, "--", *job)]

    def tune(self, *options, **settings):
        return subprocess.run(self.command(*options, **settings), cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=TIMEOUT_S)

    def tuned(self, *options, **settings):
        result = self.tune("--format", "json", *options, **settings)
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(json.loads((self.folder / report["name"] / "tune.json").read_text()), report)
        return report, {candidate["name"]: candidate for candidate in report["candidates"]}

    def test_what_helps_is_kept_and_gives_its_gain_again(self):
        report, candidates = self.tuned("--env", "NCCL_ALGO=ring", "--env", "NCCL_PROTO=simple", "--candidate", "NCCL_ALGO=tree", "--candidate", "NCCL_PROTO=LL128",
                                        "--candidate", "NCCL_PROTO=SIMPLE")
        best = candidates["NCCL_PROTO=LL128"]
        self.assertEqual(report["winner"], best["name"])
        self.assertGreater(best["gain_ns"], candidates["NCCL_ALGO=tree"]["gain_ns"])
        self.assertEqual(candidates["NCCL_ALGO=tree"]["verdict"], "helps")
        same = candidates["NCCL_PROTO=SIMPLE"]
        self.assertEqual((same["verdict"], same["gain_ns"], same["nccl_chose_as_by_default"]), ("no_difference", 0, True))
        # What was kept, sourced before the same job by a shell, gives what was measured.
        script = f". tuned/winner.env; exec {RANKSCOPE} -q run --virtual -o again -- sh launch.sh {WORKLOAD} {self.scenario}"
        self.check_run("sh", "-c", script, environment={"NCCL_ALGO": "ring", "NCCL_PROTO": "simple"})
        durations = sorted(step["dur_ns"] for step in self.report("again")["steps"])
        median = (durations[(len(durations) - 1) // 2] + durations[len(durations) // 2]) / 2
        self.assertAlmostEqual(report["default"]["step_ns"] - median, best["gain_ns"], delta=1)

    def test_a_tuner_file_is_a_candidate_and_is_kept_as_one(self):
        (self.folder / "rows.csv").write_text("allreduce,0,-1,tree,ll,-1,2,4\n")
        report, candidates = self.tuned("--env", "NCCL_ALGO=^pat", "--tuner", "rows.csv", "--min-gain", "0.001", "--candidate", "NCCL_PROTO=simple")
        rows = candidates["tuner file rows.csv"]
        self.assertEqual(rows["tuner_csv"], ["allreduce,0,-1,tree,ll,-1,2,4"])
        forced = self.report("tuned/round1-candidate2")["collectives"]
        self.assertEqual({(row["algo"], row["proto"]) for row in forced if row["op"] == "all_reduce"}, {("tree", "ll")})
        self.assertEqual(candidates["NCCL_PROTO=simple"]["verdict"], "slower")
        if report["winner"]:
            self.assertIn("allreduce,0,-1,tree,ll,-1,2,4", (self.folder / "tuned" / "winner.csv").read_text())

    @unittest.skipUnless(USERS_TUNER, "the tests' own tuner plugins are not built")
    def test_two_communicators_that_need_different_algorithms_get_them_from_rows_only(self):
        # Tensor parallel inside the node, 64 MiB that want Simple; data parallel between the nodes, 2 MiB that want LL, since the network starts late. A tuner plugin of
        # the user's sends every all-reduce over a ring with Simple.
        job = dict(SMALL, name="two-kinds", kind="tp", noise=0, faults=[], parallel={"dp": 2, "tp": 4, "bucket_mb": 1},
                   cluster={"nodes": 2, "ranks_per_node": 4, "inter": {"alpha_us": 150, "gbps": 40}}, model={"layers": 4, "hidden": 1024, "seq": 8192, "micro_batch": 4})
        scenario = self.write_scenario(job)
        (self.folder / "rows.csv").write_text("allreduce,0,-1,ring,simple,-1,1,4\nallreduce,0,-1,ring,ll,-1,2,2\n")
        environments = ["NCCL_ALGO=^ring", "NCCL_PROTO=^simple", "NCCL_ALGO=^ring,NCCL_PROTO=^simple"]
        self.environment["NCCL_TUNER_PLUGIN"] = USERS_TUNER
        result = subprocess.run([RANKSCOPE, "-q", "tune", "-o", "tuned", "--rounds", "2", "--format", "json", "--reference", str(scenario), "--tuner", "rows.csv",
                                 *(word for settings in environments for word in ("--candidate", settings))],
                                cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        gains = {candidate["name"]: candidate["gain_ns"] for candidate in report["candidates"]}
        self.assertEqual(report["winner"], "tuner file rows.csv")
        self.assertTrue(all(gains["tuner file rows.csv"] > gains[settings] for settings in environments), gains)
        # The rows are what NCCL chooses where nobody misleads it, so the gain is known to the nanosecond.
        self.run_scenario(scenario, "unmisled", environment={"NCCL_TUNER_PLUGIN": "none"})
        durations = {step["dur_ns"] for step in self.report("unmisled")["steps"]}
        self.assertEqual({report["default"]["step_ns"] - gains["tuner file rows.csv"]}, durations)
        # And kept: NCCL itself reads the rows, without `rankscope run` handing them over.
        kept = (self.folder / "tuned" / "winner.env").read_text()
        self.assertIn("librankscope_tuner.so", kept)
        self.check_run("sh", "-c", f". tuned/winner.env; exec {RANKSCOPE} -q reference run {scenario} -o kept")
        self.assertEqual({step["dur_ns"] for step in self.report("kept")["steps"]}, durations)

    @unittest.skipUnless(USERS_TUNER, "the tests' own tuner plugins are not built")
    def test_a_sweep_of_a_jobs_collectives_finds_the_rows_that_it_needs(self):
        job = dict(SMALL, name="swept", kind="tp", noise=0, faults=[], cluster={"nodes": 2, "ranks_per_node": 4}, parallel={"dp": 2, "tp": 4},
                   model={"layers": 4, "hidden": 1024, "seq": 512, "micro_batch": 1})
        self.use(job)
        (self.folder / "launch.sh").write_text(LAUNCH.replace("0 1 2 3", "0 1 2 3 4 5 6 7").replace("WORLD_SIZE=4", "WORLD_SIZE=8").replace("_SIZE=2", "_SIZE=4").replace("% 2", "% 4").replace("/ 2", "/ 4"))
        command = ("sh", "launch.sh", WORKLOAD, self.scenario)
        self.check_run(RANKSCOPE, "-q", "run", "--virtual", "-o", "unmisled", "--", *command)
        self.environment["NCCL_TUNER_PLUGIN"] = USERS_TUNER  # sends every all-reduce over a ring with Simple
        self.check_run(RANKSCOPE, "-q", "run", "--virtual", "-o", "misled", "--", *command)
        swept = json.loads(self.check_run(RANKSCOPE, "-q", "tune", "--virtual", "-o", "swept", "--format", "json", "--sweep", "misled", "--", "sh", "launch.sh").stdout)
        self.assertTrue(any(entry["better"] for entry in swept["collectives"]), swept)
        self.assertEqual({entry["default"]["algorithm"] for entry in swept["collectives"]}, {"ring"})
        report, candidates = self.tuned("--tuner", "swept/sweep.csv", name="tuned")
        self.assertEqual(report["winner"], "tuner file swept/sweep.csv", swept)
        # The fastest of the sweep is what NCCL chooses where nobody misleads it.
        self.assertEqual({step["dur_ns"] for step in self.report("unmisled")["steps"]}, {report["default"]["step_ns"] - candidates["tuner file swept/sweep.csv"]["gain_ns"]})

    def test_rows_of_a_sweep_are_near_the_best_in_drawn_worlds(self):
        regrets = []
        for world in range(1, 4):
            with self.subTest(world=world):
                name = f"world{world}"
                job = dict(SMALL, name=name, world=world, noise=0, faults=[], parallel={"dp": 4, "bucket_mb": (0.5, 2, 8)[world % 3]}, model={"layers": 4, "hidden": 1024, "seq": 256, "micro_batch": 1})
                self.use(job)
                step = lambda run: statistics.median(step["dur_ns"] for step in self.report(run)["steps"][1:])
                default = step(self.run_scenario(self.scenario, f"{name}-default"))
                self.check_run(RANKSCOPE, "-q", "tune", "--virtual", "-o", f"{name}-swept", "--sweep", f"{name}-default", "--", "sh", "launch.sh")
                rows = self.folder / f"{name}-swept" / "sweep.csv"
                tuned = default
                if rows.exists() and any(line and not line.startswith("#") for line in rows.read_text().splitlines()):
                    self.check_run(RANKSCOPE, "-q", "reference", "run", self.scenario, "--tuner", rows, "-o", f"{name}-tuned")
                    tuned = step(f"{name}-tuned")
                best = min([default] + [step(self.run_scenario(self.scenario, f"{name}-{algo}-{proto}", {"NCCL_ALGO": algo, "NCCL_PROTO": proto}))
                                        for algo in ("ring", "tree") for proto in ("LL", "LL128", "Simple")])
                regrets.append(tuned / best - 1)
                print(f"{name}: {default / 1e6:.3f} ms, with the rows of a sweep {tuned / 1e6:.3f}, the best of all settings {best / 1e6:.3f}")
                self.assertLessEqual(tuned, 1.005 * default)
        self.assertLessEqual(statistics.mean(regrets), 0.03)
        self.assertLessEqual(max(regrets), 0.10)

    def test_sweeps_that_cannot_be_are_refused(self):
        for status, options in ((3, ("--sweep", "no-such-run", "--", "sh", "launch.sh")), (2, ("--sweep", "x")), (2, ("--sweep", "x", "--candidate", "A=1", "--", "sh")),
                                (2, ("--sweep", "x", "--", "mpirun", "-H", "a,b"))):
            result = subprocess.run([RANKSCOPE, "tune", "--virtual", "-o", "swept", *options], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                                    text=True, timeout=TIMEOUT_S)
            self.assertEqual(result.returncode, status, result.stderr)

    def test_the_default_is_kept_where_nothing_beats_it(self):
        result = self.tune("--candidate", "NCCL_ALGO=ring,NCCL_PROTO=simple", "--candidate", "UNRELATED=1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("Keep the default", result.stdout)
        self.assertFalse((self.folder / "tuned" / "winner.env").exists())

    def test_advice_to_keep_the_default_is_nothing_to_try(self):
        self.use(dict(SMALL, name="healthy", faults=[]))
        self.run_scenario(self.scenario, "base")
        words = [RANKSCOPE, "-q", "tune", "-o", "tuned", "--reference", str(self.scenario)]
        text = self.check_run(*words, "--from-recommend", "base").stdout.decode()
        self.assertIn("recommends no change: there is nothing to try", text)
        self.assertTrue(text.endswith("Keep the default.\n"), text)
        report = json.loads(self.check_run(*words, "--from-recommend", "base", "--format", "json").stdout)
        self.assertEqual((report["schema"], report["winner"], report["keep_default"], report["candidates"]), ("rankscope.tune/1", None, True, []))
        self.assertFalse((self.folder / "tuned").exists())
        # The table of such advice says the same.
        self.check_run(RANKSCOPE, "-q", "recommend", "base", "--format", "tuner-csv", "-o", "none.csv")
        result = subprocess.run([*words, "--tuner", "none.csv"], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(result.returncode, 3)
        self.assertIn("holds no rows", result.stderr)

    def test_recommendations_are_tried_against_their_prediction(self):
        advice = {"recommendations": [{"title": "Let NCCL choose", "env": {"NCCL_ALGO": None, "NCCL_PROTO": None}, "tuner_csv": [], "predicted_saving_ns": 1000},
                                      {"title": "Other buckets", "env": {}, "tuner_csv": []}]}
        (self.folder / "advice.json").write_text(json.dumps(advice))
        report, candidates = self.tuned("--env", "NCCL_ALGO=ring", "--env", "NCCL_PROTO=simple", "--candidates", "advice.json")
        tried = candidates["Let NCCL choose"]
        self.assertEqual((tried["verdict"], tried["predicted_saving_ns"]), ("helps", 1000))
        self.assertAlmostEqual(tried["prediction_error_share"], (tried["gain_ns"] - 1000) / report["default"]["step_ns"], places=6)
        self.assertTrue(any("Other buckets" in note for note in report["notes"]), report["notes"])
        self.assertEqual((self.folder / "tuned" / "winner.env").read_text().splitlines()[1:], ["unset NCCL_ALGO", "unset NCCL_PROTO"])

    def test_advice_of_a_run_is_tried_with_its_prediction(self):
        self.environment.update(NCCL_ALGO="ring", NCCL_PROTO="simple")
        self.run_scenario(self.scenario, "base")
        advice = json.loads(self.check_run(RANKSCOPE, "-q", "recommend", "base", "--format", "json").stdout)
        # Each is tried by itself.
        able = {entry["title"]: entry["alone"]["predicted_saving_ns"] for entry in advice["recommendations"] + advice["alternatives"] if entry["env"] or entry["tuner_csv"]}
        self.assertTrue(able, advice)
        result = subprocess.run([RANKSCOPE, "-q", "tune", "-o", "tuned", "--rounds", "2", "--format", "json", "--reference", str(self.scenario), "--from-recommend", "base"],
                                cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(result.returncode, 0, result.stderr)
        tried = json.loads(result.stdout)["candidates"]
        self.assertEqual({candidate["name"]: candidate["predicted_saving_ns"] for candidate in tried}, able)
        self.assertIn("helps", {candidate["verdict"] for candidate in tried})

    def test_a_candidate_that_crashes_or_hangs_is_dropped_and_leaves_nothing_behind(self):
        report, candidates = self.tuned("--limit", "20", "--candidate", "CRASH=1", "--candidate", f"HANG={FOREVER}", "--candidate", "NCCL_ALGO=nothing")
        self.assertEqual({candidate["verdict"] for candidate in candidates.values()}, {"failed"})
        self.assertIn("exit status 7", candidates["CRASH=1"]["failure"])
        self.assertIn("no end within 20 s", candidates[f"HANG={FOREVER}"]["failure"])
        self.assertIsNone(report["winner"])
        self.assertTrue((self.folder / "hanging").exists())
        self.assertEqual(hanging_processes(), [])

    def test_a_signal_ends_the_job_too(self):
        self.environment["HANG"] = FOREVER
        process = subprocess.Popen(self.command("--candidate", "A=1"), cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + TIMEOUT_S
        while not (self.folder / "hanging").exists() or not hanging_processes():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, -signal.SIGTERM)
        self.assertEqual(hanging_processes(), [])

    def test_jobs_that_cannot_be_measured_are_refused(self):
        result = self.tune("--candidate", "A=1", job=("sh", "-c", "echo no luck >&2; exit 9"))
        self.assertEqual(result.returncode, 3)
        self.assertIn("exit status 9", result.stderr)
        self.assertIn("| no luck", result.stderr)
        result = self.tune("--candidate", "A=1", "--force", job=("true",))
        self.assertEqual(result.returncode, 3)
        self.assertIn("nothing was recorded", result.stderr)
        self.use(dict(SCENARIO, name="one-step", steps=1))
        result = self.tune("--candidate", "A=1", "--force")
        self.assertEqual(result.returncode, 3)
        self.assertRegex(result.stderr, "the trace holds (no steps|one step)")

    def test_wrong_command_lines_are_refused_before_anything_runs(self):
        (self.folder / "bad.csv").write_text("allgather,0,1,tree,ll,-1,-1,-1\n")
        (self.folder / "bad.json").write_text('[{"env": {"A": 1}}]')
        for status, options in ((2, ()), (2, ("--candidate", "ring")), (3, ("--candidates", "missing")), (3, ("--candidates", "bad.json")), (3, ("--tuner", "bad.csv")),
                                (2, ("--candidate", "A=1", "--rounds", "1")), (2, ("--candidate", "A=1", "--budget", "0")), (2, ("--candidate", "A=1", "--env", "x"))):
            result = self.tune(*options, job=("touch", "started"))
            self.assertEqual(result.returncode, status, (options, result.stderr))
            self.assertTrue(result.stderr)
        self.assertFalse((self.folder / "started").exists() or (self.folder / "tuned").exists())
        self.assertEqual(self.tune("--candidate", "A=1", job=("mpirun", "-H", "a,b", "true")).returncode, 2)
        self.assertEqual(self.tune("--candidate", "A=1", job=("no-such-command",)).returncode, 127)
        self.environment.update(RANK="0", WORLD_SIZE="2", LOCAL_RANK="0", MASTER_ADDR="localhost", MASTER_PORT="29500")
        self.assertEqual(self.tune("--candidate", "A=1", job=("true",)).returncode, 2)

    def test_a_folder_of_somebody_else_is_left_alone(self):
        (self.folder / "tuned").mkdir()
        (self.folder / "tuned" / "thesis.tex").write_text("mine")
        result = self.tune("--candidate", "A=1", "--force")
        self.assertEqual(result.returncode, 3)
        self.assertEqual([entry.name for entry in (self.folder / "tuned").iterdir()], ["thesis.tex"])

    def test_an_earlier_tuning_is_replaced_only_by_force(self):
        self.tuned("--candidate", "A=1")
        self.assertEqual(self.tune("--candidate", "A=1").returncode, 3)
        (self.folder / "tuned" / "notes.txt").write_text("mine")
        self.tuned("--candidate", "A=1", "--force")
        self.assertTrue((self.folder / "tuned" / "notes.txt").exists())

    def test_the_budget_ends_the_rounds(self):
        report, candidates = self.tuned("--candidate", "A=1", "--budget", "0.001")
        self.assertEqual(candidates["A=1"]["verdict"], "too_few_rounds")
        self.assertTrue(any("budget" in note for note in report["notes"]))
        self.assertTrue(report["keep_default"])

    def test_jobs_of_the_reference_harness_need_no_launcher(self):
        result = subprocess.run([RANKSCOPE, "-q", "tune", "-o", "tuned", "--rounds", "2", "--reference", str(self.scenario), "--candidate", "NCCL_ALGO=ring,NCCL_PROTO=simple"],
                                cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("slower than the default", result.stdout)


if __name__ == "__main__":
    unittest.main()
