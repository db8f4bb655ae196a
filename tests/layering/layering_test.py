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

# For each folder the folders or files of other rooms that its sources may include. The longest matching folder decides; its own files are always allowed.
ALLOWED = {
    "injector": ["injector"],
    "injector/capture_format": [],
    "injector/machine": ["injector/capture_format/records.h", "injector/text.h"],
    "collector": ["collector", "injector/capture_format"],
    "collector/store": [],
    "analyzer": ["analyzer", "collector/store"],
    "analyzer/cli": ["analyzer", "collector/store", "collector/collect.h", "collector/importers/import.h", "collector/importers/import_error.h",
                     "injector/machine", "reference/score/score.h", "reference/score/compare_score.h"],
    "gui": ["gui", "collector/store", "analyzer/detectors", "analyzer/report", "analyzer/timeline/operation.h"],
    "reference": ["reference"],
    "reference/vgpu": [],  # the virtual GPUs know neither the workloads nor the profiler
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


def below(path, folder):
    return path == folder or path.startswith(folder + "/")


def rule_for(path):
    folders = [folder for folder in ALLOWED if below(path, folder)]
    return max(folders, key=len) if folders else None


def forbidden_include(path, included):
    """True when the file `path` may not include `included`; both relative to the root."""
    folder = rule_for(path)
    if folder is None:
        return False
    return not any(below(included, allowed) for allowed in [folder, *ALLOWED[folder]])


class Layering(unittest.TestCase):
    def test_the_rules_tell_a_wrong_edge_from_a_right_one(self):
        self.assertTrue(forbidden_include("injector/hooks/nccl.cpp", "collector/store/writer.h"))
        self.assertTrue(forbidden_include("reference/vgpu/engine.cpp", "injector/capture_format/records.h"))
        self.assertTrue(forbidden_include("analyzer/timeline/x.cpp", "collector/ingest/y.h"))
        self.assertTrue(forbidden_include("injector/capture_format/reader.cpp", "injector/record/ring.h"))
        self.assertFalse(forbidden_include("injector/record/ring.cpp", "injector/capture_format/records.h"))
        self.assertTrue(forbidden_include("injector/machine/nvml.cpp", "injector/entry/session.h"))
        self.assertFalse(forbidden_include("analyzer/cli/collect_step.cpp", "collector/collect.h"))

    def test_includes_stay_inside_the_allowed_edges(self):
        wrong = []
        for path in sources(CODE):
            for included in INCLUDE.findall(text_of(path)):
                if included.split("/")[0] in ROOMS and forbidden_include(str(path), included):
                    wrong.append(f"{path} includes {included}")
        self.assertEqual(wrong, [])

    def test_included_project_headers_exist(self):
        missing = []
        for path in sources(CODE):
            for included in INCLUDE.findall(text_of(path)):
                if included.split("/")[0] in ROOMS and not (ROOT / included).exists():
                    missing.append(f"{path} includes {included}")
        self.assertEqual(missing, [])

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
