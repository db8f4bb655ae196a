#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job with two kinds of communicators on virtual GPUs, each told its own algorithm by a tuner file through NCCL's plugin interface."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import unittest

import world_tables
from virtual_run import RANKSCOPE, SMALL, TIMEOUT_S, WORKLOAD, VirtualRunTest

RANKS, RANKS_PER_NODE = 8, 4
USERS_TUNER = os.environ.get("RANKSCOPE_TEST_TUNER")  # sends every all-reduce over a ring with Simple
# Sharded inside the node, replicated between the two nodes.
HSDP = {"name": "two-kinds", "kind": "hsdp", "steps": 2, "seed": 3, "cluster": {"nodes": 2, "ranks_per_node": RANKS_PER_NODE},
        "model": {"layers": 2, "hidden": 1024, "seq": 256, "micro_batch": 1}, "parallel": {"dp": RANKS}, "faults": []}
# The ranks as a launcher would start them.
LAUNCH = """
for rank in 0 1 2 3 4 5 6 7; do
  RANK=$rank WORLD_SIZE=8 LOCAL_RANK=$((rank % 4)) LOCAL_WORLD_SIZE=4 RANKSCOPE_HOST=node$((rank / 4)) MASTER_ADDR=localhost MASTER_PORT=29500 "$@" &
done
wait
"""
ROWS = """# inside a node, between nodes
allgather,0,-1,ring,ll,-1,1,4
allreduce,0,-1,tree,simple,2,2,2
"""
# Tensor parallel inside the nodes, where a ring takes many hops. Between them a slow start-up: most of what the first bucket (1 MiB) costs, and the larger ones queue behind it.
# Other sizes of buckets gain nothing, so the table is for the sizes the job has.
TWO_KINDS = {"name": "two-needs", "kind": "tp", "steps": 6, "seed": 5, "noise": 0.01,
             "cluster": {"nodes": 2, "ranks_per_node": 8, "intra": {"alpha_us": 6, "gbps": 150}, "inter": {"alpha_us": 150, "gbps": 25}},
             "parallel": {"dp": 2, "tp": 8, "bucket_mb": 6}, "model": {"layers": 4, "hidden": 1024, "seq": 512, "micro_batch": 1}}
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(RANKS)]
STEADY = {"OMPI_MCA_odls_base_num_threads": "0"}  # many ranks that exit at once hang Open MPI 4.1.4 now and then


class Tuner(VirtualRunTest):
    def setUp(self):
        super().setUp()
        self.scenario = self.write_scenario(HSDP)
        self.environment["RANKSCOPE_SCENARIO"] = str(self.scenario)
        (self.folder / "rows.csv").write_text(ROWS)
        (self.folder / "launch.sh").write_text(LAUNCH)

    def run_inside(self, name, *options, environment=None):
        self.check_run(RANKSCOPE, "-q", "run", "--virtual", *options, "-o", name, "--", "sh", "launch.sh", WORKLOAD, self.scenario, environment=environment)
        return name

    def query(self, name, sql):
        with contextlib.closing(sqlite3.connect(self.folder / name / "trace.db")) as trace:
            return trace.execute(sql).fetchall()

    def used(self, name):
        """(op, ranks, nodes) -> the set of (algorithm, protocol) used for it."""
        rows = self.query(name, "SELECT op, n_ranks, node_count, algorithm, protocol FROM collective JOIN communicator ON communicator.id = communicator_id")
        found = {}
        for op, ranks, nodes, algorithm, protocol in rows:
            found.setdefault((op, ranks, nodes), set()).add((algorithm, protocol))
        return found

    def test_each_communicator_uses_what_its_row_says_and_the_rest_is_as_before(self):
        plain = self.used(self.run_inside("plain"))
        tuned = self.used(self.run_inside("tuned", "--tuner", "rows.csv"))
        inside, between = ("all_gather", 4, 1), ("all_reduce", 2, 2)
        self.assertEqual(set(plain), {inside, between, ("reduce_scatter", 4, 1)})
        self.assertEqual(tuned[inside], {("ring", "ll")})
        self.assertEqual(tuned[between], {("tree", "simple")})
        for kind in (inside, between):
            self.assertNotEqual(plain[kind], tuned[kind])
        self.assertEqual({kind: used for kind, used in tuned.items() if kind not in (inside, between)},
                         {kind: used for kind, used in plain.items() if kind not in (inside, between)})
        self.assertEqual(self.query("tuned", "SELECT DISTINCT state, message FROM source_status WHERE source = 'nccl_tuner'"), [("live", "tuner plugin v7, 2 rows")])
        self.assertEqual(self.query("plain", "SELECT * FROM source_status WHERE source = 'nccl_tuner'"), [])
        description = json.loads((self.folder / "tuned" / "run.json").read_text())
        self.assertEqual(description["options"]["tuner_rows"], "allgather,0,-1,ring,ll,-1,1,4;allreduce,0,-1,tree,simple,2,2,2")

    def test_a_table_without_rows_forces_nothing(self):
        scenario = self.write_scenario(dict(SMALL, name="healthy", faults=[]))
        self.run_scenario(scenario, "healthy")
        self.check_run(RANKSCOPE, "-q", "recommend", "healthy", "--format", "tuner-csv", "-o", "none.csv")
        self.assertEqual([line for line in (self.folder / "none.csv").read_text().splitlines() if not line.startswith("#")], [])
        result = self.check_run(RANKSCOPE, "reference", "run", scenario, "-o", "again", "--tuner", "none.csv")
        self.assertIn("none.csv holds no rows: nothing is forced", result.stderr.decode())
        steps = [[step["dur_ns"] for step in self.report(name)["steps"]] for name in ("healthy", "again")]
        self.assertEqual(steps[0], steps[1])

    def test_what_the_environment_forbids_a_row_does_not_bring_back(self):
        name = self.run_inside("forbidden", "--tuner", "rows.csv", "--env", "NCCL_PROTO=^ll")
        self.assertNotIn(("ring", "ll"), self.used(name)["all_gather", 4, 1])
        messages = {message for (message,) in self.query(name, "SELECT message FROM source_status WHERE source = 'nccl_tuner'")}
        self.assertTrue(any("ring ll, which NCCL does not have here" in message for message in messages), messages)

    @unittest.skipUnless(USERS_TUNER, "the tests' own tuner plugins are not built")
    def test_a_tuner_plugin_of_the_users_is_asked_where_no_row_matches(self):
        (self.folder / "rows.csv").write_text("allgather,0,-1,ring,ll,-1,1,4\n")
        alone = self.used(self.run_inside("theirs", environment={"NCCL_TUNER_PLUGIN": USERS_TUNER}))
        both = self.used(self.run_inside("both", "--tuner", "rows.csv", environment={"NCCL_TUNER_PLUGIN": USERS_TUNER}))
        self.assertEqual(alone["all_reduce", 2, 2], {("ring", "simple")})
        self.assertEqual(both["all_reduce", 2, 2], {("ring", "simple")})
        self.assertEqual(both["all_gather", 4, 1], {("ring", "ll")})
        self.assertNotEqual(alone["all_gather", 4, 1], {("ring", "ll")})

    @unittest.skipUnless(USERS_TUNER, "the tests' own tuner plugins are not built")
    def test_an_advised_table_has_a_row_for_each_communicator_and_gains_what_it_says(self):
        scenario = self.write_scenario(TWO_KINDS)
        links = ";".join(f"{name}:gbps={link['gbps']},alpha_us={link['alpha_us']}" for name, link in TWO_KINDS["cluster"].items() if isinstance(link, dict))
        environment = {"RANKSCOPE_SCENARIO": str(scenario), "NCCL_TUNER_PLUGIN": USERS_TUNER}
        launch = LAUNCH.replace("0 1 2 3 4 5 6 7", " ".join(map(str, range(16)))).replace("=8", "=16").replace("_SIZE=4", "_SIZE=8").replace("% 4", "% 8").replace("/ 4", "/ 8")
        (self.folder / "launch.sh").write_text(launch)
        command = ("--", "sh", "launch.sh", WORKLOAD, scenario)
        self.check_run(RANKSCOPE, "-q", "run", "--virtual", "--links", links, "-o", "misled", *command, environment=environment)
        # The model alone is too coarse to hand NCCL a table.
        advice = json.loads(self.check_run(RANKSCOPE, "-q", "recommend", "misled", "--format", "json").stdout)
        self.assertFalse(any(one["tuner_csv"] for one in advice["recommendations"] + advice["alternatives"]), advice)
        tables = world_tables.evidence(self, TWO_KINDS, scenario, ["allreduce"], "table")
        advice = json.loads(self.check_run(RANKSCOPE, "-q", "recommend", "misled", *tables, "--format", "json").stdout)
        table = next(one for one in advice["recommendations"] + advice["alternatives"] if one["tuner_csv"])
        self.check_run(RANKSCOPE, "-q", "recommend", "misled", *tables, "--format", "tuner-csv", "-o", "tuned.csv")
        written = (self.folder / "tuned.csv").read_text().splitlines()
        rows = [line for line in written if line and not line.startswith("#")]
        self.assertEqual({tuple(row.split(",")[-2:]) for row in rows}, {("1", "8"), ("2", "2")})
        # No variable does as much: what helps one kind of group is not what helps the other.
        others = [one for one in advice["recommendations"] + advice["alternatives"] if one["area"] == "algorithm" and not one["tuner_csv"]]
        self.assertTrue(others and all(one["predicted_saving_ns"] < 0.95 * table["predicted_saving_ns"] for one in others), others)
        for row in rows:
            self.assertRegex(written[written.index(row) - 1], r"^# \d+ a step over \d+ ranks on \d nodes?, all communicators: .* now, .* then \(.* to .*\)$")
        for name, shape in (("inside", ",1,8"), ("between", ",2,2")):
            (self.folder / f"{name}.csv").write_text("".join(row + "\n" for row in rows if row.endswith(shape)))
        runs = ("tuned", "inside", "between")
        for name in runs:
            self.check_run(RANKSCOPE, "-q", "run", "--virtual", "--tuner", f"{name}.csv", "-o", name, *command, environment=environment)
        step = {name: sorted(step["dur_ns"] for step in self.report(name)["steps"])[2] for name in ("misled", *runs)}
        measured, (low, high) = step["misled"] - step["tuned"], table["interval_ns"]
        print(f"tuner table: predicted {table['predicted_saving_ns'] / 1e3:.0f} us a step ({low / 1e3:.0f} to {high / 1e3:.0f}), measured {measured / 1e3:.0f} of {step['misled'] / 1e3:.0f}")
        self.assertTrue(low <= measured <= high, (low, measured, high))
        self.assertLessEqual(high - low, 0.1 * step["misled"])
        self.assertLessEqual(abs(measured - table["predicted_saving_ns"]), 0.03 * step["misled"])
        for alone in ("inside", "between"):  # each kind of group gains
            self.assertGreater(step[alone] - step["tuned"], 0.02 * step["misled"])

    @unittest.skipUnless(shutil.which("mpirun"), "mpirun is not installed (package openmpi-bin)")
    def test_both_shapes_of_mpirun_are_tuned(self):
        one_node = self.write_scenario(dict(HSDP, name="one-node", kind="ddp", cluster={"nodes": 1, "ranks_per_node": RANKS}))
        (self.folder / "rows.csv").write_text("allreduce,0,-1,ring,simple,-1,1,8\n")
        environment = dict(STEADY, RANKSCOPE_SCENARIO=str(one_node))
        run = [RANKSCOPE, "-q", "run", "--virtual", "--tuner", "rows.csv"]
        self.check_run(*run, "-o", "inside", "--", *MPIRUN, WORKLOAD, one_node, environment=environment)
        self.check_run(*MPIRUN, *run, "-o", "outside", "--", WORKLOAD, one_node, environment=environment)
        for name in ("inside", "outside"):
            self.assertEqual(self.used(name)["all_reduce", 8, 1], {("ring", "simple")})

    def refused(self, text, *command):
        (self.folder / "bad.csv").write_text(text)
        result = subprocess.run([RANKSCOPE, "run", "--virtual", "--tuner", "bad.csv", "-o", "never", "--", *(command or ("touch", "started"))], cwd=self.folder,
                                env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertFalse((self.folder / "started").exists())
        self.assertFalse((self.folder / "never").exists())
        return result.returncode, result.stderr

    def test_a_wrong_file_is_refused_before_the_job_starts(self):
        status, message = self.refused("allreduce,0,1,ring,ll,-1,-1,-1\nallgather,0,1,tree,ll,-1,-1,-1\n")
        self.assertEqual(status, 3)
        self.assertIn("bad.csv, line 2: allgather with tree", message)
        self.assertIn("exist for allreduce only", message)
        status, message = self.refused("allreduce,0,9,ring,ll,-1,-1,-1\nallreduce,5,20,tree,ll,-1,-1,-1\nallreduce,50,20,rings,ll,-1,-1,-1\n")
        self.assertEqual(status, 3)
        self.assertIn("line 2: overlaps line 1", message)
        self.assertIn("line 3: ", message)
        self.assertEqual(self.refused("")[0], 3)

    def test_ranks_on_other_hosts_that_would_choose_otherwise_are_refused(self):
        status, message = self.refused("allreduce,0,1,ring,ll,-1,-1,-1\n", "mpirun", "-H", "a,b", "touch", "started")
        self.assertEqual(status, 2)
        self.assertIn("-x RANKSCOPE_TUNER_ROWS", message)


if __name__ == "__main__":
    unittest.main()
