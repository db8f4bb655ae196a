#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may read a run, whose files a wrapper takes for its own, what of a job's secrets is kept, and input that is no file or has no end."""

import json
import os
import pathlib
import shutil
import signal
import stat
import time
import unittest

from run_contract_test import USES_A_GPU
from wrapped import RANKSCOPE, JobTest

SECRET = "c0ffee-hunter"
# In the environment: names that look harmless, begin as names that are recorded, or are those of other people's secrets.
PREFIXES = ("NCCL_", "CUDA_", "TORCH_", "TORCHELASTIC_", "PYTORCH_", "SLURM_", "PMI_", "PMIX_", "OMPI_MCA_", "RANKSCOPE_", "MASTER_", "HF_", "AWS_", "")
ENDINGS = ("SECRET", "TOKEN", "PASS", "PWD", "KEY", "DSN", "BEARER", "X")
OF_OTHERS = ("AWS_SESSION_TOKEN", "WANDB_API_KEY", "GITHUB_TOKEN", "DATABASE_URL", "SSH_AUTH_SOCK", "LS_COLORS", "nccl_proto", "NCCL_PROTOX", "XNCCL_PROTO")
# In the command.
ARGUMENTS = ["--password={}0", "--api-key", "{}1", "HF_TOKEN={}2", "--db=postgres://me:{}3@host/db", "-H", "Authorization: Bearer {}4", "--wandb-token", "{}5",
             "--auth.secret={}6", "https://{}7:x@host/"]


def texts_of(folder):
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path, path.read_bytes()


class Privacy(JobTest):
    def record(self, name, *options, environment=None, arguments=()):
        result = self.rankscope("-q", "run", "--virtual", "-o", name, *options, "--", "python3", "-c", USES_A_GPU, *arguments, environment=environment)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_none_of_a_hundred_secrets_is_in_any_file_or_report(self):
        names = [prefix + ending for prefix in PREFIXES for ending in ENDINGS] + list(OF_OTHERS)
        self.assertGreaterEqual(len(names), 100)
        environment = {name: SECRET + name for name in names} | {"NCCL_CONF_FILE": f"https://me:{SECRET}@host/nccl.conf", "NCCL_PROTO": "Simple"}
        self.record("a", environment=environment, arguments=[argument.format(SECRET) for argument in ARGUMENTS])
        for words in (["analyze", "a", "--format", "html", "-o", "a/report.html"], ["analyze", "a", "--format", "json", "-o", "a/report.json"],
                      ["export", "a", "--to", "tables", "-o", "a/tables"], ["export", "a", "--to", "perfetto", "-o", "a/a.pftrace"], ["baseline", "save", "a", "--dir", "a/baseline"]):
            self.rankscope(*words)  # of a job without steps some say that there is nothing to tell
        self.assertTrue((self.folder / "a/report.html").exists())
        found = [str(path) for path, content in texts_of(self.folder / "a") if SECRET.encode() in content]
        self.assertEqual(found, [])
        database = (self.folder / "a/trace.db").read_bytes()
        self.assertIn(b"https://***@host/nccl.conf", database)
        self.assertIn(b"NCCL_PROTO", database)

    def test_no_environment_leaves_none_of_it(self):
        marked = {"NCCL_PROTO": "marked-simple", "NCCL_SOCKET_IFNAME": "marked-eth0"}
        for options, found in (([], True), (["--no-environment"], False)):
            self.record("a", "--force", *options, "--env", "NCCL_ALGO=marked-ring", environment=marked)
            for value in ("marked-simple", "marked-eth0", "marked-ring"):
                with self.subTest(value=value, options=options):
                    self.assertEqual(any(value.encode() in content for path, content in texts_of(self.folder / "a")), found)

    def test_doctor_shows_what_would_be_recorded(self):
        told = self.rankscope("doctor", "--privacy", "--", "train.py", "--password", SECRET, environment={"NCCL_PROTO": f"https://me:{SECRET}@x", "MY_TOKEN": SECRET}).stdout.decode()
        self.assertIn("NCCL_PROTO=https://***@x", told)
        self.assertIn("train.py --password '***'", told)
        self.assertNotIn(SECRET, told)
        self.assertNotIn("MY_TOKEN", told)

    def modes(self, name):
        return {str(path.relative_to(self.folder)): stat.S_IMODE(path.stat().st_mode) for path in [self.folder / name, *(self.folder / name).rglob("*")]}

    def test_a_run_is_its_owners_alone_unless_it_is_shared(self):
        before = os.umask(0o022)
        try:
            self.record("own")
            self.record("shared", "--share")
            trace = {"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": [
                {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 10, "dur": 5, "args": {"device": 0, "stream": 7, "correlation": 1}}]}
            (self.folder / "k.json").write_text(json.dumps(trace))
            self.assertEqual(self.rankscope("import", "k.json", "-o", "imported").returncode, 0)
        finally:
            os.umask(before)
        for name in ("own", "imported"):
            # The virtual GPUs' sysfs is a part of the machine, not of the run.
            self.assertEqual([path for path, mode in self.modes(name).items() if mode & 0o077 and "/capture/sysfs" not in path], [])
        shared = self.modes("shared")
        self.assertEqual((shared["shared"], shared["shared/capture"], shared["shared/run.json"], shared["shared/trace.db"]), (0o755, 0o755, 0o644, 0o644))
        self.assertEqual([mode for path, mode in shared.items() if path.endswith(".cap")], [0o644])
        self.assertEqual(shared["shared/.members"], 0o600)  # who can open it can hold it

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to make a file another user's")
    def test_a_lock_of_somebody_elses_is_not_taken(self):
        folder = self.folder / "prepared"
        folder.mkdir()
        (folder / ".members").write_text("")
        os.chown(folder / ".members", 65534, 65534)
        result = self.rankscope("run", "-o", "prepared", "--", "true")
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn(b"is not a file of this run's owner", result.stderr)


class HostileInput(JobTest):
    TAKES_S = 20

    def refused(self, *words):
        begin = time.monotonic()
        result = self.rankscope(*words)
        self.assertIn(result.returncode, (2, 3), (words, result.stderr))
        self.assertIn(b"error: ", result.stderr)
        self.assertNotIn(b"internal error", result.stderr)
        self.assertLess(time.monotonic() - begin, self.TAKES_S)
        return result.stderr

    def test_pipes_and_devices_are_no_input(self):
        os.mkfifo(self.folder / "pipe")
        recorded = self.rankscope("-q", "run", "--virtual", "-o", "a", "--", "python3", "-c", USES_A_GPU)
        self.assertEqual(recorded.returncode, 0, recorded.stderr)
        for name in ("pipe", "/dev/zero"):
            for words in (["import", name, "-o", "i"], ["compare", "a", "a", "--config", name], ["tune", "--candidates", name, "-o", "t", "--", "true"],
                          ["analyze", "a", "--links-table", name], ["compare", name, "a"], ["run", "--tuner", name, "-o", "r", "--", "true"], ["analyze", name], ["reference", "run", name]):
                with self.subTest(words=words):
                    self.refused(*words)
        os.unlink(self.folder / "a/run.json")
        os.mkfifo(self.folder / "a/run.json")
        os.unlink(self.folder / "a/trace.db")
        collected = self.rankscope("collect", "a")
        self.assertEqual(collected.returncode, 0, collected.stderr)

    def test_json_of_any_depth_is_read_or_refused(self):
        deep = "[" * 1_000_000 + "]" * 1_000_000
        recorded = self.rankscope("-q", "run", "--virtual", "-o", "a", "--", "python3", "-c", USES_A_GPU)
        self.assertEqual(recorded.returncode, 0, recorded.stderr)
        for name, text in {"candidates.json": f'{{"recommendations": {deep}}}', "scenario.json": f'{{"name": "x", "kind": "ddp", "fixed": {{"model": {deep}}}}}',
                           "summary.json": f'{{"schema": "rankscope.run-summary/9", "x": {deep}}}', "map.json": f'{{"x": {deep}}}'}.items():
            (self.folder / name).write_text(text)
        self.refused("tune", "--candidates", "candidates.json", "-o", "t", "--", "true")
        self.refused("reference", "run", "scenario.json")
        self.refused("compare", "summary.json", "a")
        self.refused("import", "map.json", "--map", "map.json", "-o", "i")
        (self.folder / "a/run.json").write_text(f'{{"schema": "rankscope.run/1", "command": {deep}, "options": {deep}}}')
        for words in (["collect", "a"], ["analyze", "a"], ["top", "a", "--once"], ["trigger", "a"]):
            with self.subTest(words=words):
                result = self.rankscope(*words)
                self.assertIn(result.returncode, (0, 3), result.stderr)

    def test_the_name_of_a_scenario_is_no_path(self):
        (self.folder / "below").mkdir()
        for name in ("../escaped", "/tmp/escaped", "%q{HOME}", "..", ".hidden", "a b", "x\u001b[31m", ""):
            (self.folder / "below/s.json").write_text(json.dumps({"name": name, "kind": "ddp", "steps": 1}))
            before = sorted(os.listdir(self.folder))
            self.assertIn(b"name", self.refused("reference", "run", "below/s.json"))
            self.assertEqual(sorted(os.listdir(self.folder)), before)



class VirtualGpus(JobTest):
    """The memory that the virtual GPUs of a job share is a file in /dev/shm, which is everybody's."""

    PLACE = USES_A_GPU + "print({line.split()[-1] for line in open('/proc/self/maps') if '/dev/shm/rankscope-vgpu' in line}.pop())"

    def job(self, *limits, program=USES_A_GPU):
        limited = ["bash", "-c", "".join(f"ulimit {limit}; " for limit in limits) + 'exec "$@"', "-"]
        return self.run_plain(*limited, RANKSCOPE, "-q", "run", "--virtual", "--force", "-o", "a", "--", "python3", "-c", program,
                              environment={"RANKSCOPE_VGPU_JOB": self.folder.name})

    def test_a_file_of_somebody_elses_in_its_place_is_neither_used_nor_followed(self):
        place = pathlib.Path(self.job(program=self.PLACE).stdout.decode().strip())
        self.assertEqual((place.parent, place.exists()), (pathlib.Path("/dev/shm"), False))
        self.addCleanup(place.unlink, missing_ok=True)
        precious = self.folder / "precious"
        precious.write_text("as it was")
        for kind in ("link", "file"):
            with self.subTest(kind=kind):
                place.unlink(missing_ok=True)
                if kind == "link":
                    place.symlink_to(precious)
                else:
                    place.write_text("as it was")
                    place.chmod(0o666)
                    if os.geteuid() == 0:
                        os.chown(place, 65534, 65534)
                result = self.job(program=self.PLACE)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertNotEqual(result.stdout.decode().strip(), str(place))
                self.assertEqual(place.read_text(), "as it was")

    def test_a_limit_of_file_size_or_memory_below_that_of_all_devices_is_lifted_or_told(self):
        lifted = self.job("-S -f 100000")
        self.assertEqual(lifted.returncode, 0, lifted.stderr)
        for limit, told in (("-f 100000", b"ulimit -f"), ("-v 10000000", b"cannot map shared memory")):
            with self.subTest(limit=limit):
                refused = self.job(limit)
                self.assertNotIn(refused.returncode, (0, -signal.SIGXFSZ, 128 + signal.SIGXFSZ))
                self.assertIn(told, refused.stderr)


if __name__ == "__main__":
    unittest.main()
