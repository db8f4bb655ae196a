#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the rules of the source tree: who may include whom, licence lines, and headers that can be found and included twice."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("injector", "collector", "analyzer", "gui", "reference", "tests")
CODE = {".h", ".hpp", ".c", ".cpp", ".cu", ".cuh"}
SCRIPTS = {".py", ".sh", ".cmake", ".sql"}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
LIBRARY = re.compile(r'^\s*#\s*include\s*<((?!cuda|sys/)[^>]*[/.][^>]*)>', re.MULTILINE)  # neither the language's (no dot), nor CUDA's, nor the system's

def analyzer(*names):
    return [f"analyzer/{name}" for name in names]


def gui(*names):
    return [f"gui/{name}" for name in names]


STORE = "collector/store"
TEAM = "collector/team"  # several processes for one command
BELOW_DIAGNOSE = [STORE, *analyzer("text", "facts", "costs", "replay", "job", "edits")]
IMPORT = ["collector/importers/import.h", "collector/importers/import_error.h"]
CAPTURE, RECORD, SESSION = "injector/capture_format", "injector/record", "injector/session"
# What every source of the injector may know, wherever it stands.
INJECTOR = [f"injector/{name}.h" for name in ("config", "export", "glibc_compat", "loaded_libraries", "process_identity", "real_symbol", "recordable_variables", "text")]

# For each folder with sources the folders and files that these may include, beside its own; room by room, from the ground up.
ALLOWED = {
    "injector/capture_format": [],
    "injector/record": [CAPTURE],
    "injector": [RECORD],
    "injector/machine": ["injector/capture_format/records.h", "injector/text.h"],  # doctor reads the machine, too
    "injector/cupti": [RECORD, *INJECTOR],
    "injector/light": [CAPTURE, RECORD, "injector/text.h"],
    "injector/session": [CAPTURE, RECORD, "injector/machine", "injector/cupti", "injector/light", *INJECTOR],
    "injector/hooks": [CAPTURE, RECORD, SESSION, *INJECTOR],
    "injector/nvtx": [RECORD, SESSION, *INJECTOR],
    "injector/nccl_plugin": [CAPTURE, SESSION, *INJECTOR],
    "injector/nccl_tuner": [RECORD, *INJECTOR],
    "injector/entry": [RECORD, SESSION, "injector/hooks", "injector/nvtx", "injector/nccl_plugin", *INJECTOR],
    "collector/store": [],
    "collector/team/mpi": [],  # libraries of their own, in C
    "collector/team": [STORE, "collector/team/mpi"],
    "collector/ingest": [STORE, TEAM, CAPTURE],
    "collector/importers": [STORE, "collector/ingest"],
    "collector": [STORE, TEAM, "collector/ingest"],
    "analyzer/text": [STORE],
    "analyzer/facts": [STORE, *analyzer("text")],
    "analyzer/costs": [STORE, *analyzer("text", "facts")],
    "analyzer/replay": [STORE, *analyzer("text", "facts")],
    "analyzer/job": [STORE, TEAM, *analyzer("text", "facts", "costs", "replay")],
    "analyzer/edits": [STORE, *analyzer("text", "facts", "costs", "replay", "job")],
    "analyzer/diagnose": [TEAM, *BELOW_DIAGNOSE],
    "analyzer/report": [TEAM, *BELOW_DIAGNOSE, *analyzer("diagnose")],
    "analyzer/report/html": [*BELOW_DIAGNOSE, *analyzer("diagnose", "report")],
    "analyzer/recommend": [TEAM, *BELOW_DIAGNOSE, *analyzer("diagnose")],
    "analyzer/compare": [*BELOW_DIAGNOSE, *analyzer("diagnose", "report", "report/html")],  # its pages are made of the report's parts
    "analyzer/export": [STORE, *analyzer("text", "facts", "replay")],
    "analyzer/stats": [STORE, *analyzer("text")],
    "analyzer/cli/command_line": analyzer("text"),  # what the command line says of itself and of mistakes in it
    "analyzer/cli/console": [STORE, *analyzer("text", "costs", "recommend", "compare")],
    "analyzer/cli/job": [STORE, TEAM, *analyzer("cli/console", "text", "compare"), "collector/collect.h", "injector/capture_format/watch_counters.h"],
    "analyzer/cli/stacks": [STORE, *analyzer("cli/console", "cli/job", "text"), *(f"injector/capture_format/{name}.h" for name in ("stack_file", "watch_counters"))],  # reads what ranks stand in beside their captures
    "analyzer/cli/health": [STORE, *analyzer("cli/job", "cli/stacks"), CAPTURE, "injector/machine"],  # a program of its own, beside the job
    "analyzer/cli/live": [STORE, *analyzer("cli/console", "cli/job", "text", "facts", "costs", "job", "report"), "collector/collect.h", "injector/capture_format/capture_tail.h"],
    "analyzer/cli/tune": [STORE, *analyzer("cli/console", "cli/job", "text", "facts", "report", "recommend")],
    "analyzer/cli/doctor": [*analyzer("cli/console", "cli/job", "text"), "injector/machine", *(f"injector/{name}.h" for name in ("recordable_names", "recordable_variables", "text"))],
    "analyzer/cli/verbs": [STORE, TEAM, *analyzer("cli/command_line", "cli/console", "cli/job", "cli/stacks", "cli/live", "cli/tune", "cli/doctor", "text", "edits", "diagnose", "report", "recommend", "compare", "export", "stats"), *IMPORT, "reference/score/score.h",
                           "reference/score/compare_score.h"],
    "analyzer/cli": [*analyzer("cli/command_line", "cli/console", "cli/verbs", "text"), "collector/store/error.h", TEAM],
    "gui/timeline": [],
    "gui/charts/series": [STORE, *gui("timeline"), *analyzer("text", "facts", "costs")],
    "gui/session": [STORE, *gui("timeline"), *analyzer("text", "facts", "diagnose", "compare")],
    "gui/view": [*gui("timeline", "session"), *analyzer("text", "report")],
    "gui/findings": [*gui("timeline", "session", "view"), *analyzer("text")],
    "gui/run": [STORE, *gui("timeline", "session", "view")],
    "gui/charts": gui("timeline", "view", "run", "charts/series"),
    "gui/table": gui("timeline", "session", "view", "run"),
    "gui/pane": gui("session", "view", "findings", "run", "charts", "table"),
    "gui/compare": [*gui("timeline", "session", "view", "table", "pane"), *analyzer("text", "compare")],  # says what `rankscope compare` says
    "gui/shell": [*gui("timeline", "session", "view", "table", "pane", "compare"), *analyzer("text")],
    "reference/gpu_checks": [],  # clients of CUPTI alone
    "reference/frameworks": ["reference/score"],  # the jobs of a file, written out
    "reference/vgpu/engine": [],  # the virtual GPUs know neither the workloads nor the profiler
    "reference/vgpu/device": ["reference/vgpu/engine"],
    "reference/vgpu/frameworks/torch": ["reference/vgpu/engine/operator_api.h"],  # compiled against PyTorch, where a job has it
    "reference/vgpu/plugins": ["reference/vgpu/engine"],
    "reference/vgpu/cudart": ["reference/vgpu/device"],
    "reference/vgpu/cuda12": [],  # passes on to the runtime, by its functions alone
    "reference/vgpu/driver": ["reference/vgpu/engine", "reference/vgpu/device"],
    "reference/vgpu/math": ["reference/vgpu/device"],  # libraries of their own: of the device they know how to refuse
    "reference/vgpu/threads": ["reference/vgpu/device"],  # what libc calls mean to the clocks of threads
    "reference/vgpu/symbols": [],  # lists, and what makes sources of them
    "reference/vgpu/cupti": ["reference/vgpu/device"],
    "reference/vgpu/nvml": ["reference/vgpu/device"],
    "reference/vgpu/nccl": ["reference/vgpu/engine", "reference/vgpu/device", "reference/vgpu/plugins"],
    "reference/workloads": [],
    "reference/score": [],
}


def sources(suffixes):
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            if path.is_file() and path.suffix in suffixes:
                yield path.relative_to(ROOT)


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8")


def forbidden_include(path, included):
    """True when the file `path` may not include `included`; both relative to the root."""
    folder = str(pathlib.PurePath(path).parent)
    if folder.split("/")[0] == "tests":
        return False
    if str(pathlib.PurePath(included).parent) == folder:
        return False
    return not any(included == allowed or str(pathlib.PurePath(included).parent) == allowed for allowed in ALLOWED.get(folder, []))


# Help and error texts with an id as an example.
EXAMPLES = {"analyzer/compare/gate.cpp", "gui/shell/command_line.cpp", *(f"analyzer/cli/verbs/verb_{name}.cpp" for name in ("compare", "explain", "view"))}


def circles(edges):
    """The sets of folders that reach one another; `edges`: folder to folders it includes (Tarjan's algorithm)."""
    number, low, stack, found = {}, {}, [], []

    def visit(folder):
        number[folder] = low[folder] = len(number)
        stack.append(folder)
        for other in edges.get(folder, {}):
            if other not in number:
                visit(other)
                low[folder] = min(low[folder], low[other])
            elif other in stack:
                low[folder] = min(low[folder], number[other])
        if low[folder] == number[folder]:
            members = stack[stack.index(folder):]
            del stack[stack.index(folder):]
            if len(members) > 1:
                found.append(sorted(members))

    for folder in sorted(edges):
        if folder not in number:
            visit(folder)
    return found


class Layering(unittest.TestCase):
    maxDiff = None

    def test_the_rules_tell_a_wrong_edge_from_a_right_one(self):
        self.assertTrue(forbidden_include("injector/hooks/nccl.cpp", "collector/store/writer.h"))
        self.assertTrue(forbidden_include("injector/capture_format/reader.cpp", "injector/record/ring.h"))
        self.assertTrue(forbidden_include("injector/machine/nvml.cpp", "injector/session/session.h"))
        self.assertTrue(forbidden_include("reference/vgpu/engine/engine.cpp", "injector/capture_format/records.h"))
        self.assertTrue(forbidden_include("analyzer/facts/x.cpp", "collector/ingest/y.h"))
        self.assertTrue(forbidden_include("analyzer/costs/x.cpp", "analyzer/job/y.h"))
        self.assertTrue(forbidden_include("analyzer/report/html/x.cpp", "analyzer/compare/y.h"))
        self.assertFalse(forbidden_include("injector/record/ring.cpp", "injector/capture_format/records.h"))
        self.assertFalse(forbidden_include("analyzer/job/x.cpp", "analyzer/costs/y.h"))
        self.assertFalse(forbidden_include("analyzer/cli/job/run_input.cpp", "collector/collect.h"))

    def test_every_folder_has_a_rule(self):
        folders = {str(path.parent) for path in sources(CODE) if path.parts[0] != "tests"}
        self.assertEqual(folders, set(ALLOWED))

    def test_includes_stay_inside_the_allowed_edges(self):
        wrong = []
        for path in sources(CODE):
            for included in INCLUDE.findall(text_of(path)):
                if included.split("/")[0] in ROOMS and forbidden_include(str(path), included):
                    wrong.append(f"{path} includes {included}")
        self.assertEqual(wrong, [])

    def test_folders_include_one_another_in_no_circle(self):
        edges = {}
        for path in sources(CODE):
            if path.parts[0] == "tests":
                continue
            folder = str(path.parent)
            for included in INCLUDE.findall(text_of(path)):
                other = str(pathlib.PurePath(included).parent)
                if included.split("/")[0] in ROOMS and other != folder:
                    edges.setdefault(folder, {}).setdefault(other, f"{path} includes {included}")
        self.assertEqual(circles(edges), [])

    def test_a_circle_is_told(self):
        self.assertEqual(circles({"a": {"b": ""}, "b": {"c": ""}, "d": {"a": "", "c": ""}}), [])
        self.assertEqual(circles({"a": {"b": ""}, "b": {"c": ""}, "c": {"a": "", "d": ""}}), [["a", "b", "c"]])

    def test_headers_are_included_by_their_path_from_the_root(self):
        hidden = re.compile(r'^\s*#\s*include\s*(?:"\.|<(?:' + "|".join(ROOMS) + ")/)", re.MULTILINE)
        self.assertEqual([str(path) for path in sources(CODE) if hidden.search(text_of(path))], [])

    def test_included_project_headers_exist(self):
        missing = []
        for path in sources(CODE):
            for included in INCLUDE.findall(text_of(path)):
                if included.split("/")[0] in ROOMS and not (ROOT / included).exists():
                    missing.append(f"{path} includes {included}")
        self.assertEqual(missing, [])

    def test_the_id_of_a_diagnosis_stands_in_its_own_file_only(self):
        # Texts of one diagnosis may name others, and help texts give an example.
        wrong = []
        for path in sources(CODE):
            if path.parts[0] not in ("analyzer", "gui"):
                continue
            own = re.match(r"rs(\d\d\d)_", path.name) if path.parent == pathlib.Path("analyzer/diagnose") else None
            for number, line in enumerate(text_of(path).splitlines(), 1):
                for literal in re.findall(r'"((?:\\.|[^"\\])*)"', re.sub(r"(^|\s)//.*", "", line)):
                    for digits in re.findall(r"\bRS(\d\d\d)\b", literal):
                        whole = literal == f"RS{digits}"
                        if own and (own.group(1) == digits or not whole):
                            continue
                        if not whole and str(path) in EXAMPLES:
                            continue
                        wrong.append(f"{path}, line {number}: {line.strip()}")
        self.assertEqual(wrong, [])

    def test_what_nvcc_compiles_needs_no_library(self):
        # nvcc is told of the source tree alone: where a machine keeps its libraries elsewhere, it would not find them.
        waiting, seen, wrong = [str(path) for path in sources({".cu", ".cuh"}) if path.parts[0] != "tests"], set(), []
        while waiting:
            path = waiting.pop()
            if path in seen:
                continue
            seen.add(path)
            waiting += [included for included in INCLUDE.findall(text_of(path)) if included.split("/")[0] in ROOMS]
            wrong += [f"{path} includes <{name}>" for name in LIBRARY.findall(text_of(path))]
        self.assertEqual(wrong, [])

    def test_sources_carry_the_licence_line(self):
        files = list(sources(CODE | SCRIPTS | {".txt"})) + [pathlib.Path("bootstrap.sh"), pathlib.Path("CMakeLists.txt"), pathlib.Path(".ci/run")]
        files = [path for path in files if path.suffix != ".txt" or path.name == "CMakeLists.txt"]
        without = [str(path) for path in files if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(text_of(path).splitlines()[:3])]
        self.assertEqual(without, [])

    def test_headers_are_guarded_and_open_no_namespace(self):
        wrong = []
        for path in sources({".h", ".hpp", ".cuh"}):
            text = text_of(path)
            if "#pragma once" not in text:
                wrong.append(f"{path}: no #pragma once")
            if re.search(r"^\s*using namespace ", text, re.MULTILINE):
                wrong.append(f"{path}: using namespace")
        self.assertEqual(wrong, [])

    def test_no_file_names_a_folder_of_one_machine(self):
        private = re.compile(r"/(?:home|root|Users|work)/\w")
        documents = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "bootstrap.sh", "CMakeLists.txt", "CMakePresets.json")]
        wrong = []
        for path in [*sources(CODE | SCRIPTS | {".md", ".txt"}), *(d.relative_to(ROOT) for d in documents if d.exists())]:
            if path.parent == pathlib.Path("tests/layering"):
                continue  # this rule itself
            for number, line in enumerate(text_of(path).splitlines(), 1):
                if private.search(line):
                    wrong.append(f"{path}, line {number}: {line.strip()}")
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
