#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rankscope run` around single programs: the job's own end and output, and what happens when it cannot start."""

import json
import os
import re
import signal
import subprocess
import unittest

from wrapped import RANKSCOPE, JobTest

# What a profiler leaves of one kernel.
ONE_KERNEL = {"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1},
              "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 10, "dur": 5,
                               "args": {"device": 0, "stream": 7, "correlation": 1}}]}
# A process that works on a (virtual) GPU, and what it does next.
USES_A_GPU = """
import ctypes, signal
ctypes.CDLL("libcudart.so.13", mode=ctypes.RTLD_GLOBAL)
job = ctypes.CDLL(None)
memory = ctypes.c_void_p()
for _ in range(3):
    assert job.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(4096)) == 0
    assert job.cudaMemset(memory, 0, ctypes.c_size_t(4096)) == 0
    assert job.cudaDeviceSynchronize() == 0
"""
SPEAKS_AND_FAILS = "printf 'out\\0put\\n'; printf 'message\\n' >&2; exit 3"


class RunContract(JobTest):
    def test_output_and_exit_status_are_the_jobs(self):
        plain = self.run_plain("sh", "-c", SPEAKS_AND_FAILS)
        wrapped = self.wrapped("a", "sh", "-c", SPEAKS_AND_FAILS)
        self.assertEqual(wrapped.stdout, plain.stdout)
        self.assertTrue(wrapped.stderr.startswith(plain.stderr))
        self.assertEqual((wrapped.returncode, plain.returncode), (3, 3))

    def test_nothing_but_the_jobs_output_is_on_stdout_without_quiet(self):
        result = self.rankscope("run", "-o", "a", "--", "echo", "x")
        self.assertEqual(result.stdout, b"x\n")

    def test_a_job_that_recorded_nothing_is_told_why(self):
        result = self.rankscope("run", "-o", "a", "--", "true")
        self.assertIn(b"nothing was recorded", result.stderr)
        self.assertIn(b"CUDA, NCCL or NVTX", result.stderr)
        self.assertEqual(result.returncode, 0)

    def test_a_recording_that_found_no_place_is_no_job_without_cuda(self):
        # The job itself takes the place of the recording away: nothing can be created in /proc.
        result = self.rankscope("run", "-o", "a", "--", "sh", "-c", 'rmdir "$RANKSCOPE_DIR" && ln -s /proc "$RANKSCOPE_DIR"')
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr.decode(), r"nothing was recorded: no capture file can be made in .*/a/capture: \w+")
        self.assertNotIn(b"used CUDA", result.stderr)

    def test_a_capture_range_that_never_began_is_told(self):
        for options, told in ((["--capture-range", "nvtx:nope"], b"came to the capture range nvtx:nope"), (["--delay", "100000"], b"within the delay of 100000 s")):
            result = self.rankscope("run", "--virtual", "--force", "-o", "a", *options, "--", "python3", "-c", USES_A_GPU)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(told, result.stderr)
        whole = self.rankscope("run", "--virtual", "--force", "-o", "a", "--", "python3", "-c", USES_A_GPU)
        self.assertEqual(whole.returncode, 0, whole.stderr)
        self.assertNotIn(b"warning", whole.stderr)

    def test_times_that_the_virtual_gpus_cannot_answer_for_are_told_in_the_report(self):
        job = USES_A_GPU + """
import threading
def sleep_unseen():
    job.cudaMemset(memory, 0, ctypes.c_size_t(4096))
    job.syscall(35, (ctypes.c_long * 2)(2, 0), None)  # nanosleep, where nobody looks
thread = threading.Thread(target=sleep_unseen)
thread.start()
for _ in range(3):
    job.cudaMemset(memory, 0, ctypes.c_size_t(4096))
    job.cudaDeviceSynchronize()
thread.join()
"""
        told = self.rankscope("run", "--virtual", "-o", "a", "--env", "RANKSCOPE_VGPU_GIVE_UP_MS=300", "--", "python3", "-c", job)
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertIn(b"not reproducible", told.stderr)
        losses = [loss for loss in json.loads(self.rankscope("analyze", "a", "--format", "json").stdout)["loss"] if loss["kind"] == "virtual_times"]
        self.assertEqual([(loss["count"], "reproducible" in loss["what_it_means"]) for loss in losses], [(1, True)])

    def test_ranks_that_still_run_are_named_when_collecting(self):
        job = USES_A_GPU + "import os; print(os.getpid(), flush=True); signal.pause()"
        process = self.start(RANKSCOPE, "-q", "run", "--virtual", "-o", "a", "--", "python3", "-c", job)
        rank = process.stdout.readline().decode().strip()
        running = self.rankscope("collect", "a")
        os.kill(int(rank), signal.SIGKILL)
        process.communicate(timeout=60)
        self.assertEqual(running.returncode, 0, running.stderr)
        self.assertIn(f"still runs (pid {rank})", running.stderr.decode())
        ended = self.rankscope("collect", "a")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertNotIn(b"still run", ended.stderr)

    def test_what_a_killed_collect_left_goes_with_the_next_one(self):
        recorded = self.rankscope("run", "--virtual", "-o", "a", "--", "python3", "-c", USES_A_GPU)
        self.assertEqual(recorded.returncode, 0, recorded.stderr)
        with subprocess.Popen(["true"]) as gone:
            gone.wait()
        names = [f".trace.db.{gone.pid}.part", f".trace.db.{gone.pid}.part-journal"]
        keep = [f".trace.db.{os.getpid()}.part", f".trace.db.{gone.pid}.partly", ".trace.db.x.part"]  # of a process that lives; none of ours
        for name in names + keep:
            (self.folder / "a" / name).write_text("torn")
        self.assertEqual(self.rankscope("collect", "a").returncode, 0)
        self.assertEqual(sorted(path.name for path in (self.folder / "a").glob(".trace.db.*")), sorted(keep))
        # An import that was killed has made its folder already.
        (self.folder / "k.json").write_text(json.dumps(ONE_KERNEL))
        (self.folder / "imported").mkdir()
        (self.folder / "imported" / names[0]).write_text("torn")
        imported = self.rankscope("import", "k.json", "-o", "imported")
        self.assertEqual(imported.returncode, 0, imported.stderr)
        self.assertEqual(list((self.folder / "imported").glob(".trace.db.*")), [])

    def test_ranks_of_the_harness_do_not_outlive_it(self):
        scenario = {"name": "long", "kind": "ddp", "steps": 100000, "seed": 1, "cluster": {"nodes": 1, "ranks_per_node": 2},
                    "model": {"layers": 2, "hidden": 256, "seq": 128, "micro_batch": 1}, "parallel": {"dp": 2}}
        (self.folder / "long.json").write_text(json.dumps(scenario))
        process = self.start(RANKSCOPE, "reference", "run", "long.json", "-o", "a")
        while len(list(self.folder.glob("a/capture/*.ring"))) < 2:
            self.assertIsNone(process.poll())
        process.kill()
        process.communicate(timeout=60)  # ends when the last process that holds the pipes is gone

    def test_a_run_that_cannot_be_written_is_an_input_error(self):
        self.wrapped("a", "true")
        (self.folder / "a" / ".collecting").unlink()
        (self.folder / "a" / ".collecting").mkdir()
        result = self.rankscope("collect", "a")
        self.assertEqual(result.returncode, 3)
        self.assertIn(b"hint", result.stderr)
        self.assertNotIn(b"internal error", result.stderr)

    def test_dies_by_the_signal_of_the_job(self):
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM):
            result = self.wrapped("a", "sh", "-c", f"kill -{int(number)} $$", options=["--force"])
            self.assertEqual(result.returncode, -number)
            self.assertEqual(self.description("a")["signal"], number)

    def test_missing_command_is_127_and_leaves_nothing_behind(self):
        result = self.rankscope("run", "-o", "a", "--", "no-such-command-anywhere")
        self.assertEqual(result.returncode, 127)
        self.assertIn(b"no-such-command-anywhere", result.stderr)
        self.assertFalse((self.folder / "a").exists())

    def test_file_that_cannot_be_executed_is_126_and_leaves_nothing_behind(self):
        (self.folder / "text").write_text("no program")
        (self.folder / "text").chmod(0o644)
        result = self.rankscope("run", "-o", "a", "--", "./text")
        self.assertEqual(result.returncode, 126)
        self.assertFalse((self.folder / "a").exists())

    def test_existing_run_is_kept_unless_forced(self):
        self.wrapped("a", "true")
        refused = self.wrapped("a", "touch", "started")
        self.assertEqual(refused.returncode, 3)
        self.assertIn(b"--force", refused.stderr)
        self.assertFalse((self.folder / "started").exists())
        forced = self.wrapped("a", "sh", "-c", "exit 4", options=["--force"])
        self.assertEqual(forced.returncode, 4)
        self.assertEqual(self.description("a")["exit_status"], 4)

    def test_folder_that_is_no_run_is_never_touched(self):
        (self.folder / "mine").mkdir()
        (self.folder / "mine" / "thesis.txt").write_text("precious")
        result = self.wrapped("mine", "true", options=["--force"])
        self.assertEqual(result.returncode, 3)
        self.assertEqual(sorted(p.name for p in (self.folder / "mine").iterdir()), ["thesis.txt"])

    def import_one_kernel(self, name):
        (self.folder / "kernel.json").write_text(json.dumps(ONE_KERNEL))
        return self.rankscope("import", "kernel.json", "-o", name)

    def test_an_import_stays_out_of_a_folder_that_is_no_run(self):
        (self.folder / "mine").mkdir()
        (self.folder / "mine" / "thesis.txt").write_text("precious")
        self.assertEqual(self.import_one_kernel("mine").returncode, 3)
        self.assertEqual(self.rankscope("import", "kernel.json", "-o", "mine", "--force").returncode, 3)
        self.assertEqual([p.name for p in (self.folder / "mine").iterdir()], ["thesis.txt"])
        self.assertEqual(self.import_one_kernel("new").returncode, 0)
        self.assertEqual(self.import_one_kernel("new").returncode, 3)
        self.assertEqual(self.rankscope("import", "kernel.json", "-o", "new", "--force").returncode, 0)

    def test_a_report_that_cannot_be_written_is_an_error(self):
        self.assertEqual(self.import_one_kernel("a").returncode, 0)
        result = self.run_plain("sh", "-c", f"exec {RANKSCOPE} analyze a 1</dev/null")  # a stdout that is open for reading only
        self.assertEqual(result.returncode, 3)
        self.assertIn(b"stdout", result.stderr)

    def test_a_report_goes_into_a_pipe_and_through_a_link_without_replacing_them(self):
        self.assertEqual(self.import_one_kernel("a").returncode, 0)
        os.mkfifo(self.folder / "pipe")
        (self.folder / "target.txt").write_text("old")
        (self.folder / "link").symlink_to("target.txt")
        piped = self.run_plain("sh", "-c", f"cat pipe & {RANKSCOPE} -q analyze a -o pipe; wait")
        self.assertEqual(self.rankscope("-q", "analyze", "a", "-o", "link").returncode, 0)
        self.assertTrue((self.folder / "pipe").is_fifo())
        self.assertTrue((self.folder / "link").is_symlink())
        self.assertNotEqual(piped.stdout, b"")
        self.assertEqual((self.folder / "target.txt").read_bytes(), piped.stdout)

    def test_place_that_cannot_be_written_is_refused_before_the_job_starts(self):
        # /proc takes no folders, not even from root.
        result = self.wrapped("/proc/rankscope-run", "touch", "started")
        self.assertEqual(result.returncode, 3)
        self.assertIn(b"/proc/rankscope-run", result.stderr)
        self.assertFalse((self.folder / "started").exists())

    def test_name_patterns_are_expanded(self):
        result = self.wrapped("x-%q{FLAVOUR}-%h-%t", "true", environment={"FLAVOUR": "mint"})
        self.assertEqual(result.returncode, 0)
        names = [p.name for p in self.folder.iterdir()]
        self.assertEqual(len(names), 1)
        self.assertRegex(names[0], r"^x-mint-" + re.escape(os.uname().nodename) + r"-\d{8}-\d{6}$")

    def test_unnamed_runs_never_collide(self):
        for _ in range(3):
            self.assertEqual(self.rankscope("-q", "run", "--", "true").returncode, 0)
        self.assertEqual(len(list(self.folder.glob("rankscope-*/run.json"))), 3)

    def test_usage_errors_are_2(self):
        for arguments in (["run"], ["run", "--"], ["run", "--trace", "gpu", "--", "true"], ["run", "--max-size", "big", "--", "true"],
                          ["run", "-o", "x%z", "--", "true"],
                          ["run", "-o", "", "--", "true"], ["run", "--capture-range", "steps:9-2", "--", "true"],
                          ["run", "--links", "garbage", "--", "true"], ["run", "--links", "intra:gbps=-5", "--", "true"],
                          ["run", "--links", "intra:gbps=5;inter:alpha_us=2", "--", "true"], ["run", "--delay", "abc", "--", "true"], ["frobnicate"], ["analyze"], ["doctor", "--", "true"]):
            result = self.rankscope(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertEqual(result.stdout, b"", arguments)
            self.assertNotEqual(result.stderr, b"", arguments)
            self.assertNotRegex(result.stderr.decode(), r"\d{20}|internal error", arguments)

    def start_catcher(self, count, name="a", wait=True):
        """A wrapped job that catches every signal it can and ends after `count` of them; what it caught is in caught.txt."""
        job = f"""
import signal, sys
numbers = [n for n in signal.valid_signals() - {{signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}}]
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
with open('caught.txt', 'w') as file:
    print('ready', flush=True)
    for _ in range({count}):
        print(int(signal.sigwait(numbers)), file=file, flush=True)
sys.exit(7)
"""
        # In a session of its own, so that no signal reaches the job but through the wrapper.
        process = self.start(RANKSCOPE, "-q", "run", "-o", name, "--", "python3", "-c", job, start_new_session=True)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def test_every_signal_that_can_be_caught_reaches_the_job_and_none_ends_the_wrapper_first(self):
        stops = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
        numbers = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD} - stops)
        self.assertIn(signal.SIGUSR1, numbers)
        self.assertIn(signal.SIGRTMAX, numbers)
        process = self.start_catcher(len(numbers))
        for number in numbers:
            process.send_signal(number)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 7)
        caught = sorted(int(line) for line in (self.folder / "caught.txt").read_text().split())
        self.assertEqual(caught, [int(number) for number in numbers])
        self.assertEqual(self.description("a")["exit_status"], 7)

    def test_a_checkpoint_signal_is_caught_and_the_run_collected(self):
        # What Slurm and Lightning do before a time limit.
        job = USES_A_GPU + "import sys; signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0)); print('ready', flush=True); signal.pause()"
        process = self.start(RANKSCOPE, "-q", "run", "--virtual", "-o", "a", "--", "python3", "-c", job, start_new_session=True)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.send_signal(signal.SIGUSR1)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertTrue((self.folder / "a" / "trace.db").exists())

    def test_an_alarm_set_before_the_wrapper_was_executed_is_the_jobs(self):
        for command in (["sleep", "60"], [RANKSCOPE, "-q", "run", "-o", "a", "--", "sleep", "60"]):
            start = "import os, signal, sys; signal.setitimer(signal.ITIMER_REAL, 0.5); os.execvp(sys.argv[1], sys.argv[1:])"
            self.assertEqual(self.run_plain("python3", "-c", start, *command).returncode, -signal.SIGALRM, command)

    def test_a_signal_that_the_job_sends_to_its_own_group_does_not_come_back_to_it(self):
        job = ("import os, signal; count = []; signal.signal(signal.SIGUSR1, lambda *_: count.append(1)); os.kill(0, signal.SIGUSR1);"
               "signal.sigtimedwait([signal.SIGUSR2], 0.5); print(len(count))")
        result = self.run_plain("setsid", "--wait", RANKSCOPE, "-q", "run", "-o", "a", "--", "python3", "-c", job)
        self.assertEqual((result.returncode, result.stdout), (0, b"1\n"), result.stderr)

    def test_the_wrapper_stops_and_goes_on_with_the_job(self):
        process = self.start_catcher(2)
        process.send_signal(signal.SIGTSTP)
        # In a process group that has nobody to continue it the system does not stop on SIGTSTP; both must live on and catch what comes next.
        while (self.folder / "caught.txt").read_text() == "":
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 7)
        self.assertEqual((self.folder / "caught.txt").read_text().split(), [str(int(signal.SIGTSTP)), str(int(signal.SIGCONT))])

    def test_a_stopped_wrapper_is_seen_as_stopped(self):
        # The shell starts it in the background with job control: a process group of its own, whose parent can continue it.
        script = (f"set -m; {RANKSCOPE} -q run -o a -- sh -c 'echo $$ > pid; exec sleep 60' & wrapper=$!; for i in $(seq 300); do [ -s pid ] && break; sleep 0.1; done; kill -TSTP $wrapper;"
                  "for i in $(seq 300); do [ $(cut -d " " -f 3 /proc/$wrapper/stat) = T ] && break; sleep 0.1; done; kill -CONT $wrapper; kill -TERM $wrapper;"
                  "end=148; while [ $end = 148 ]; do wait $wrapper; end=$?; done; echo $end")  # 148: it was stopped
        result = self.run_plain("bash", "-c", script)
        self.assertEqual(result.stdout.split()[-1:], [b"143"], result.stderr)

    def test_a_signal_sent_to_the_wrapper_reaches_the_job_and_the_run_is_kept(self):
        job = "import signal,sys; signal.signal(signal.SIGINT, lambda *_: sys.exit(7)); print('ready', flush=True); signal.pause()"
        # In a session of its own, so that the signal does not reach the job but through the wrapper.
        process = self.start(RANKSCOPE, "-q", "run", "-o", "a", "--", "python3", "-c", job, start_new_session=True)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 7)
        self.assertEqual(self.description("a")["exit_status"], 7)

    def test_an_ignored_hangup_stays_ignored_in_the_job(self):
        show = "grep SigIgn /proc/self/status"
        plain = self.run_plain("sh", "-c", f"trap '' HUP; {show}")
        wrapped = self.run_plain("sh", "-c", f"trap '' HUP; {RANKSCOPE} -q run -o a -- {show}")
        self.assertEqual(wrapped.stdout, plain.stdout)

    def start_node(self, *options, job="J", name="a"):
        """One node of a job: a launcher inside a wrapper, which ends when the file `go` is there."""
        launcher = self.folder / "torchrun"
        launcher.write_text("#!/usr/bin/env python3\nimport os, time\nprint('ready', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)\n")
        launcher.chmod(0o755)
        return self.start(RANKSCOPE, "run", "-o", name, *options, "--", "./torchrun", "--nnodes=2", "--rdzv-id", job, "--rdzv-endpoint", "h0:29400", "train.py")

    def test_the_second_node_of_a_job_joins_the_run(self):
        first = self.start_node()
        self.assertEqual(first.stdout.readline(), b"ready\n")
        second = self.start_node()
        self.assertEqual(second.stdout.readline(), b"ready\n")
        (self.folder / "go").touch()
        for node in (first, second):
            _, errors = node.communicate(timeout=60)
            self.assertEqual(node.returncode, 0, errors)
        self.assertEqual(len((self.folder / "a" / ".members").read_text().splitlines()), 2)
        # The same rendezvous id again is a job of its own: that run has ended.
        third = self.start_node()
        _, errors = third.communicate(timeout=60)
        self.assertEqual(third.returncode, 3)
        self.assertIn(b"--force", errors)
        forced = self.start_node("--force")
        self.assertEqual((forced.communicate(timeout=60), forced.returncode)[1], 0)

    def test_a_run_whose_job_lives_is_neither_joined_by_another_job_nor_deleted(self):
        first = self.start_node()
        self.assertEqual(first.stdout.readline(), b"ready\n")
        before = (self.folder / "a" / "run.json").read_bytes()
        for options in ([], ["--force"]):
            other = self.start_node(*options, job="K")
            _, errors = other.communicate(timeout=60)
            self.assertEqual(other.returncode, 3, errors)
            self.assertIn(b"being recorded", errors)
        self.assertIn(f"pid {first.pid}".encode(), errors)
        self.assertEqual((self.folder / "a" / "run.json").read_bytes(), before)
        (self.folder / "go").touch()
        first.communicate(timeout=60)
        self.assertEqual(first.returncode, 0)

    def test_a_members_file_that_is_a_link_is_not_followed(self):
        (self.folder / "precious").write_text("precious")
        (self.folder / "a").mkdir()
        (self.folder / "a" / ".members").symlink_to("../precious")
        self.assertEqual(self.wrapped("a", "true").returncode, 3)
        self.assertEqual((self.folder / "precious").read_text(), "precious")

    def test_quiet_is_silent_also_where_nothing_was_recorded(self):
        self.assertEqual(self.wrapped("a", "true").stderr, b"")

    def test_a_list_of_sources_without_the_devices_is_warned_of(self):
        result = self.rankscope("run", "-o", "a", "--trace", "nccl,nvtx", "--", "true")
        self.assertIn(b"leaves the devices out", result.stderr)
        self.assertNotIn(b"leaves the devices out", self.rankscope("run", "-o", "b", "--", "true").stderr)

    def test_typos_are_answered_by_what_was_meant(self):
        for arguments, answer in ((["analize", "a"], "did you mean analyze?"), (["analyze", "a", "--fromat", "json"], "did you mean --format?"), (["--versoin"], "did you mean --version?"),
                                  (["run", "-o", "a", "torchrun", "--nproc", "2", "t.py"], "is missing in front of the job's command"), (["explian"], "did you mean explain?")):
            result = self.rankscope(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn("rankscope: error: ", result.stderr.decode())
            self.assertIn(answer, result.stderr.decode(), arguments)
        self.assertIn(b"analyze", self.rankscope("help").stdout)
        self.assertEqual(self.rankscope("version").stdout, self.rankscope("--version").stdout)

    def test_a_dash_as_output_is_stdout(self):
        self.assertEqual(self.import_one_kernel("a").returncode, 0)
        for arguments in (["analyze", "a", "--format", "json"], ["export", "a", "--to", "csv"], ["recommend", "a"]):
            to_stdout = self.rankscope("-q", *arguments, "-o", "-")
            self.assertEqual(to_stdout.returncode, 0, to_stdout.stderr)
            self.assertEqual(self.rankscope("-q", *arguments, "-o", "file").returncode, 0)
            self.assertEqual(to_stdout.stdout, (self.folder / "file").read_bytes())
        self.assertFalse((self.folder / "-").exists())

    def test_options_of_the_user_reach_the_job(self):
        result = self.wrapped("a", "env", options=["--env", "COLOUR=red", "--max-size", "3M", "--trace", "nccl,nvtx", "--delay", "1.5"],
                              environment={"LD_PRELOAD": "libm.so.6"})
        lines = result.stdout.decode().splitlines()
        self.assertIn("COLOUR=red", lines)
        self.assertIn("RANKSCOPE_MAX_BYTES=3145728", lines)
        self.assertIn("RANKSCOPE_TRACE=nccl,nvtx", lines)
        self.assertIn("RANKSCOPE_DELAY_S=1.5", lines)
        self.assertIn(f"RANKSCOPE_DIR={self.folder}/a/capture", lines)
        preload = next(line for line in lines if line.startswith("LD_PRELOAD="))
        self.assertRegex(preload, r"^LD_PRELOAD=/.*/librankscope_injector\.so:libm\.so\.6$")


if __name__ == "__main__":
    unittest.main()
