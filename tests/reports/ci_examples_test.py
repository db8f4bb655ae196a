#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/ci: their shell steps are taken out of them and run, in their order, on virtual runs: first as the main branch, then as a change that is as fast, then as one that is
slower. Needs no service; what the services do themselves (caches, uploads) is a folder here."""

import http.server
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
import xml.etree.ElementTree

try:
    import yaml
except ImportError:
    yaml = None

RANKSCOPE = pathlib.Path(os.environ.get("RANKSCOPE_BINARY", "rankscope")).resolve()
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "docs/ci"
RANKS = 4
JOB = {"name": "job", "kind": "ddp", "steps": 10, "seed": 1, "noise": 0.005, "cluster": {"nodes": 1, "ranks_per_node": RANKS},
       "model": {"layers": 3, "hidden": 1024, "seq": 512, "micro_batch": 2}, "parallel": {"dp": RANKS}, "faults": []}
SLOW = dict(JOB, faults=[{"kind": "straggler", "rank": 1, "factor": 1.5}])


class Example(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rankscope-ci-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        # `torchrun …` is a job of a few virtual ranks, each run with a seed of its own; `rankscope run` gets --virtual, and is otherwise the real one.
        self.script("torchrun", f"""\
            runs=$(cat runs 2>/dev/null || echo 0); runs=$((runs + 1)); echo $runs > runs
            sed "s/SEED/$runs/" job.json > scenario.json
            export RANKSCOPE_SCENARIO="$PWD/scenario.json" WORLD_SIZE={RANKS} LOCAL_WORLD_SIZE={RANKS} MASTER_ADDR=localhost MASTER_PORT=29500 TORCHELASTIC_RUN_ID=ci-$runs
            pids=
            for rank in $(seq 0 {RANKS - 1}); do RANK=$rank LOCAL_RANK=$rank {RANKSCOPE.parents[1]}/libexec/rankscope/rankscope-workload scenario.json & pids="$pids $!"; done
            for pid in $pids; do wait $pid || exit 1; done""")
        self.script("rankscope", f"""\
            [ "$1 $2" = "-q run" ] || exec {RANKSCOPE} "$@"
            shift 2; exec {RANKSCOPE} -q run --virtual "$@" """)
        (self.folder / "ci").mkdir()
        shutil.copy(EXAMPLES / "comment.py", self.folder / "ci")
        outer = ("OMPI_", "PMIX_", "PMI_", "SLURM_", "RANK", "LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC_", "LD_PRELOAD", "GITHUB_", "CI_")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
        self.environment["PATH"] = f"{self.folder}/bin:{self.environment['PATH']}"

    def script(self, name, text):
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/bash\n" + textwrap.dedent(text) + "\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def code_is(self, scenario):
        (self.folder / "job.json").write_text(json.dumps(scenario).replace('"seed": 1', '"seed": SEED'))

    def shell(self, script, environment):
        """As the services run a step: stopped by the first command that fails."""
        result = subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=self.folder, env=dict(self.environment, **environment), stdin=subprocess.DEVNULL, capture_output=True,
                                text=True, timeout=240)
        self.assertIn(result.returncode, (0, 1), result.stdout + result.stderr)
        return result

    def load(self, name):
        return yaml.safe_load((EXAMPLES / name).read_text())

    def assert_reports(self, folder, *suffixes):
        for suffix in suffixes:
            found = list((self.folder / folder).glob("*" + suffix))
            self.assertTrue(found and found[0].stat().st_size > 100, suffix)


@unittest.skipUnless(yaml, "python3-yaml is not here")
class GitHubActions(Example):
    commit = 1

    def build(self, event):
        """Runs the steps that the event asks for; the status of the first that fails, with what all of them say."""
        workflow = self.load("github-actions.yml")
        summary = self.folder / "summary.md"
        summary.write_text("")
        environment = {**workflow["env"], "GITHUB_STEP_SUMMARY": str(summary), "COMMIT": f"{self.commit:040x}"}
        failed, out, errors = None, "", ""
        for step in workflow["jobs"]["step-time"]["steps"]:
            if "run" not in step or not self.is_asked(step.get("if", ""), event, failed):
                continue
            self.assertNotIn("${{", step["run"], "an expression in a script is a way in for names of branches")
            result = self.shell(step["run"], environment)
            out, errors = out + result.stdout, errors + result.stderr
            if result.returncode != 0:
                failed = failed or result
        return subprocess.CompletedProcess([], failed.returncode if failed else 0, out, errors)

    def is_asked(self, condition, event, failed):
        """What GitHub makes of the conditions that the example uses."""
        if failed and "always()" not in condition:
            return False
        files = [not list(self.folder.glob(pattern)) for pattern in re.findall(r"hashFiles\('([^']*)'\) != ''", condition)]
        here = re.findall(r"github.event_name == '(\w+)'", condition)
        elsewhere = re.findall(r"github.event_name != '(\w+)'", condition)
        return not any(files) and (not here or event in here) and event not in elsewhere

    def baseline(self):
        return sorted(path.name for path in (self.folder / "rankscope-baseline").glob("*.json"))

    def test_steps_say_what_a_change_did(self):
        self.code_is(JOB)
        first = self.build("pull_request")
        self.assertEqual(first.returncode, 0, "no baseline yet: a notice, not a failure\n" + first.stdout + first.stderr)
        self.assertIn("::notice ", first.stdout)
        self.assertEqual(self.build("push").returncode, 0)
        self.assertTrue(list((self.folder / "rankscope-baseline").iterdir()))

        same = self.build("pull_request")
        self.assertEqual(same.returncode, 0, same.stdout + same.stderr)
        self.assertNotIn("::error", same.stdout)

        self.code_is(SLOW)
        self.commit += 1
        slower = self.build("pull_request")
        self.assertEqual(slower.returncode, 1, slower.stdout + slower.stderr)
        self.assertFalse(list(self.folder.glob("rankscope-runs/*")), "recordings are deleted, after a failed gate, too")
        self.assertRegex(slower.stdout, "(?m)^::error title=Rankscope%3A regression%2C 000000000 against 000000000::")
        self.assertIn("RS301", slower.stdout)
        self.assertIn("rank 1", (self.folder / "summary.md").read_text())
        self.assert_reports("rankscope-report", ".sarif", ".html", ".json")
        self.assertEqual(json.loads((self.folder / "rankscope-report/step-time.json").read_text())["gate"]["failed"], True)

    def test_a_slower_main_fails_and_stays_out_of_the_baseline_until_it_is_accepted(self):
        self.code_is(JOB)
        self.assertEqual(self.build("push").returncode, 0)
        before = self.baseline()
        self.code_is(SLOW)
        self.commit += 1
        self.assertEqual(self.build("push").returncode, 1)
        self.assertEqual(self.baseline(), before)
        accepted = self.build("workflow_dispatch")
        self.assertEqual(accepted.returncode, 0, accepted.stdout + accepted.stderr)
        self.assertEqual(len(self.baseline()), len(before) + 3)
        self.commit += 1
        again = self.build("push")
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        self.assert_reports("rankscope-report", "trend.html", ".svg")

    def test_base_and_head_in_turn_need_no_baseline(self):
        workflow = self.load("github-interleaved.yml")
        summary = self.folder / "summary.md"
        environment = {**workflow["env"], "GITHUB_STEP_SUMMARY": str(summary)}
        for side, job in (("base", JOB), ("head", SLOW)):
            (self.folder / side).mkdir()
            self.code_is(job)
            shutil.move(self.folder / "job.json", self.folder / side / "job.json")
        results = {step["name"]: self.shell(step["run"], environment) for step in workflow["jobs"]["step-time"]["steps"] if "run" in step}
        self.assertEqual(results["Record"].returncode, 0, results["Record"].stderr)
        self.assertEqual(results["Compare"].returncode, 1, results["Compare"].stderr)
        self.assertIn("rank 1", summary.read_text())
        self.assertFalse(list(self.folder.glob("base-*")) + list(self.folder.glob("head-*")))

    def test_files_that_are_uploaded_are_those_that_are_written(self):
        steps = self.load("github-actions.yml")["jobs"]["step-time"]["steps"]
        uploads = [step["with"] for step in steps if "upload" in step.get("uses", "")]
        scripts = "\n".join(step.get("run", "") for step in steps)
        self.assertEqual([upload.get("path", upload.get("sarif_file")) for upload in uploads], ["rankscope-report", "rankscope-report/step-time.sarif"])
        self.assertIn("sarif=rankscope-report/step-time.sarif", scripts)
        # A failed gate must not keep the report back.
        self.assertTrue(all("always()" in step["if"] for step in steps if "upload" in step.get("uses", "")))


@unittest.skipUnless(yaml, "python3-yaml is not here")
class GitLab(Example):
    def build(self, branch, **variables):
        document = self.load("gitlab-ci.yml")
        environment = {**document["variables"], "CI_COMMIT_BRANCH": branch, "CI_DEFAULT_BRANCH": "main", "CI_COMMIT_SHORT_SHA": "01234567", **variables}
        return self.shell("\n".join(document["step-time"]["script"]), environment)

    def test_script_says_what_a_change_did(self):
        self.code_is(JOB)
        self.assertEqual(self.build("main").returncode, 0)
        self.code_is(SLOW)
        slower = self.build("a-change")
        self.assertEqual(slower.returncode, 1, slower.stdout + slower.stderr)
        reports = self.load("gitlab-ci.yml")["step-time"]["artifacts"]["reports"]
        suite = xml.etree.ElementTree.parse(self.folder / reports["junit"]).getroot().find("testsuite")
        self.assertGreaterEqual(int(suite.get("failures")), 2)
        self.assertTrue((self.folder / reports["metrics"]).read_text().endswith("# EOF\n"))
        self.assert_reports("rankscope-report", ".html", ".md")
        summaries = list((self.folder / "rankscope-baseline").glob("*.json"))
        self.assertEqual(self.build("main").returncode, 1, "what fails on the default branch")
        self.assertEqual(list((self.folder / "rankscope-baseline").glob("*.json")), summaries, "stays out of the baseline")
        self.assertEqual(self.build("main", STEP_TIME_ACCEPT="yes", CI_COMMIT_SHORT_SHA="89abcdef").returncode, 0)
        again = self.build("main", CI_COMMIT_SHORT_SHA="89abcdf0")
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)

    def test_merge_requests_read_the_baseline_of_the_default_branch(self):
        job = self.load("gitlab-ci.yml")["step-time"]
        self.assertIn("rankscope-runs", job["after_script"][-1], "recordings are deleted, after a failed gate, too")
        self.assertIs(job["cache"].get("unprotect"), True, "protected branches have caches of their own")
        policies = [rule["variables"][job["cache"]["policy"].lstrip("$")] for rule in job["rules"]]
        self.assertEqual(policies, ["pull", "pull-push"], [rule["if"] for rule in job["rules"]])


class Jenkins(Example):
    STAGE = re.compile(r"stage\('([^']*)'\)(.*?)(?=stage\('|\Z)", re.DOTALL)

    def pipeline(self):
        text = re.sub(r"(?m)^\s*//.*$", "", (EXAMPLES / "Jenkinsfile").read_text())
        stages = {name: re.search(r"sh '''(.*?)'''", body, re.DOTALL)[1] for name, body in self.STAGE.findall(text)}
        variables = dict(re.findall(r"(\w+) = '([^']*)'", text))
        return text, stages, variables

    def test_shell_steps_say_what_a_change_did(self):
        _, stages, variables = self.pipeline()
        environment = {**variables, "BASELINE": str(self.folder / "baseline"), "GIT_COMMIT": "0123456789abcdef"}
        self.code_is(JOB)
        for stage in ("Record", "Add to the baseline"):
            result = self.shell(stages[stage], environment)
            self.assertEqual(result.returncode, 0, result.stderr)
        self.code_is(SLOW)
        self.assertEqual(self.shell(stages["Record"], environment).returncode, 0)
        slower = self.shell(stages["Compare"], environment)
        self.assertEqual(slower.returncode, 1, slower.stdout + slower.stderr)
        self.assertGreaterEqual(int(xml.etree.ElementTree.parse(self.folder / "rankscope-report/step-time.xml").getroot().get("failures")), 2)
        self.assert_reports("rankscope-report", ".html", ".json")

    def test_blocks_are_balanced_and_the_results_named_are_written(self):
        text, stages, _ = self.pipeline()
        bare = re.sub(r"'''.*?'''|'[^'\n]*'", "''", text, flags=re.DOTALL)
        for left, right in ("{}", "()"):
            self.assertEqual(bare.count(left), bare.count(right))
        self.assertEqual(list(stages), ["Record", "Compare", "Add to the baseline"])
        self.assertIn("testResults: 'rankscope-report/step-time.xml'", text)
        self.assertIn("junit=rankscope-report/step-time.xml", stages["Compare"])


class Forge(http.server.BaseHTTPRequestHandler):
    """Holds comments as GitHub and GitLab do, as far as comment.py asks."""

    def answer(self, rows, status=200):
        data = json.dumps(rows).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self):
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]

    def do_GET(self):
        page = int(re.search(r"[?&]page=(\d+)", self.path)[1])
        self.answer(self.server.comments[100 * (page - 1):100 * page])

    def do_POST(self):
        if self.server.is_read_only:
            self.answer({}, 403)
            return
        self.server.comments.append({"id": 1000 + len(self.server.comments), "body": self.body()})
        self.answer(self.server.comments[-1], 201)

    def rewrite(self):
        [row] = [row for row in self.server.comments if row["id"] == int(self.path.rsplit("/", 1)[1])]
        row["body"] = self.body()
        self.answer(row)

    do_PATCH = do_PUT = rewrite

    def log_message(self, *_):
        pass


class Comment(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rankscope-comment-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forge)
        self.server.comments, self.server.is_read_only = [{"id": i, "body": "words of a person"} for i in range(130)], False
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        address = f"http://127.0.0.1:{self.server.server_address[1]}"
        event = self.folder / "event.json"
        event.write_text(json.dumps({"pull_request": {"number": 7}}))
        self.services = {"GitHub": {"GITHUB_API_URL": address, "GITHUB_REPOSITORY": "a/b", "GITHUB_EVENT_PATH": str(event), "GITHUB_TOKEN": "t"},
                         "GitLab": {"CI_API_V4_URL": address, "CI_PROJECT_ID": "4", "CI_MERGE_REQUEST_IID": "7", "RANKSCOPE_COMMENT_TOKEN": "t"}}

    def comment(self, text, environment):
        (self.folder / "step-time.md").write_text(text)
        result = subprocess.run([sys.executable, EXAMPLES / "comment.py", self.folder / "step-time.md"], env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr

    def ours(self):
        return [row["body"] for row in self.server.comments if "words of a person" not in row["body"]]

    def test_many_pushes_leave_one_comment(self):
        for name, environment in self.services.items():
            with self.subTest(name):
                del self.server.comments[130:]
                for text in ("slower", "no change"):
                    self.assertEqual(self.comment(text, environment), "")
                self.assertEqual(len(self.ours()), 1)
                self.assertIn("no change", self.ours()[0])

    def test_what_is_too_long_for_a_comment_is_cut_with_a_word(self):
        self.comment("| a line of a table |\n" * 10_000, self.services["GitHub"])
        self.assertLess(len(self.ours()[0]), 65_537)
        self.assertIn("The rest is in the report", self.ours()[0])

    def test_a_comment_that_cannot_be_written_fails_no_build(self):
        without_token = {name: value for name, value in self.services["GitHub"].items() if name != "GITHUB_TOKEN"}
        self.assertIn("GITHUB_TOKEN is not set", self.comment("text", without_token))
        self.assertIn("neither GitHub nor GitLab", self.comment("text", {}))
        self.server.is_read_only = True
        self.assertIn("403", self.comment("text", self.services["GitHub"]))
        self.assertEqual(self.ours(), [])


class Readme(unittest.TestCase):
    def test_names_the_examples_and_their_formats(self):
        text = (EXAMPLES / "README.md").read_text()
        for path in EXAMPLES.iterdir():
            self.assertTrue(path.name == "README.md" or f"]({path.name})" in text, path.name)
        said = re.search(r"FILE` writes others beside it: (.*?)Names of kernels", text, re.DOTALL)[1]
        help_text = subprocess.run([RANKSCOPE, "compare", "--help"], check=True, capture_output=True, text=True).stdout
        for form in ("text", "json", "md", "junit", "sarif", "github", "benchmark", "openmetrics", "html"):
            self.assertIn(f"`{form}`", said)
            self.assertIn(form, help_text)


if __name__ == "__main__":
    if not (RANKSCOPE.parents[1] / "libexec/rankscope/rankscope-workload").exists():
        print("skipped: the virtual job is not built")
        sys.exit(77)
    unittest.main()
