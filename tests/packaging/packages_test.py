#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel and the Debian packages of this build: what they hold, what they ask of a system, and that they work where nothing of the build is."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["RANKSCOPE_BUILD"])
NEWEST_PRELOADED_GLIBC = (2, 17)
TIMEOUT_S = 300


def run(*command, **options):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S, **options)


def check(*command, **options):
    result = run(*command, **options)
    if result.returncode != 0:
        raise AssertionError(f"{command}: status {result.returncode}\n{result.stdout}\n{result.stderr}")
    return result.stdout


def elf_files(folder):
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF":
            yield path


def versions(path, node):
    """Version nodes that a file asks for: of "GLIBC_2.34" the node is GLIBC."""
    text = run("readelf", "-VW", path).stdout.partition("Version needs section")[2]
    return [tuple(map(int, version.split("."))) for version in re.findall(rf"Name: {node}_([\d.]+)", text)]


def has(module):
    return run(sys.executable, "-c", f"import {module}").returncode == 0


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="rankscope-packages-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.wheel = pathlib.Path(check(sys.executable, ROOT / "packaging/make_wheel.py", BUILD, cls.folder).split()[-1])
        with zipfile.ZipFile(cls.wheel) as archive:
            archive.extractall(cls.folder / "content")
        [cls.content] = (cls.folder / "content").glob("*.data/data")

    def test_the_platform_tag_promises_what_the_files_ask_for(self):
        major, minor = map(int, re.search(r"manylinux_(\d+)_(\d+)_", self.wheel.name).groups())
        asked = [max(versions(path, "GLIBC"), default=(0, 0)) for path in elf_files(self.content)]
        self.assertGreater(len(asked), 15)
        self.assertLessEqual(max(asked)[:2], (major, minor))
        # What Ubuntu 22.04 has: the oldest system that is promised. RHEL 9 has 2.34.
        self.assertLessEqual((major, minor), (2, 35))
        libstdcxx = max((version for path in elf_files(self.content) for version in versions(path, "GLIBCXX")), default=(3, 4))
        self.assertLessEqual(libstdcxx, (3, 4, 30))

    def test_what_is_preloaded_into_jobs_loads_with_an_older_glibc(self):
        for name in ("librankscope_injector.so", "librankscope_tuner.so"):
            [path] = self.content.rglob(name)
            self.assertLessEqual(max(versions(path, "GLIBC"))[:2], NEWEST_PRELOADED_GLIBC, name)

    def test_every_library_is_there_or_promised_by_the_system(self):
        own = {path.name for path in elf_files(self.content)} | {path.name for path in self.content.rglob("*.so*")}
        promised = re.compile(r"lib(c|m|dl|pthread|rt|util|gcc_s|stdc\+\+)\.so\.\d+|ld-linux-.*")
        for path in elf_files(self.content):
            for name in re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", path).stdout):
                self.assertTrue(name in own or promised.fullmatch(name), f"{path.name} needs {name}")

    def test_nothing_in_it_is_a_link_or_debug_information(self):
        for path in elf_files(self.content):
            self.assertNotIn(".debug_info", run("readelf", "-SW", path).stdout, path)
        with zipfile.ZipFile(self.wheel) as archive:
            self.assertFalse([entry.filename for entry in archive.infolist() if (entry.external_attr >> 28) == 0xA])
        self.assertTrue(list(self.folder.glob("*-debug.tar.gz")))

    @unittest.skipUnless(has("venv") and has("ensurepip"), "no virtual environments here (package python3-venv)")
    def test_installed_into_a_clean_environment_it_runs_the_demo_and_leaves_again(self):
        environment = self.folder / "environment"
        check(sys.executable, "-m", "venv", environment)
        before = {path for path in environment.rglob("*") if path.is_file()}
        pip = [environment / "bin/python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
        check(*pip, "install", "--no-index", self.wheel)
        # A user's shell: nothing of this build in any variable.
        clean = {"PATH": f"{environment}/bin:/usr/bin:/bin", "HOME": str(self.folder)}
        report = check("rankscope", "demo", cwd=self.folder, env=clean)
        self.assertIn("RS301 straggler rank", report)
        self.assertNotIn(str(BUILD), check("rankscope", "doctor", cwd=self.folder, env=clean))
        for program in ("bin/rankscope", "libexec/rankscope/rankscope-health"):
            for name, path in re.findall(r"(\S+) => (/\S+)", check("ldd", environment / program)):
                bundled = (environment / "lib/rankscope/bundled" / name).exists()
                self.assertEqual(path.startswith(str(environment)), bundled, f"{program} loads {path}")
        licences = {path.stem for path in (environment / "lib/rankscope/bundled/licences").glob("*.txt") if path.stat().st_size > 100}
        for library in ("libfmt", "libsimdjson", "zlib"):
            self.assertTrue(any(name.startswith(library) for name in licences), f"{library} is passed on with its licence: {licences}")
        check(*pip, "uninstall", "--yes", "rankscope")
        left = {path for path in environment.rglob("*") if path.is_file()} - before
        self.assertEqual([path for path in left if "__pycache__" not in path.parts], [])

    @unittest.skipUnless(has("pip"), "pip is not here (package python3-pip)")
    def test_pip_refuses_it_on_other_platforms_and_says_so(self):
        for platform in ("musllinux_1_2_x86_64", "manylinux_2_35_ppc64le", "manylinux_2_17_x86_64"):
            result = run(sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-index", "--only-binary=:all:", "--platform", platform,
                         "--target", self.folder / "other", self.wheel)
            self.assertNotEqual(result.returncode, 0, platform)
            self.assertIn("is not a supported wheel on this platform", result.stderr)


@unittest.skipUnless(all(shutil.which(tool) for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps")), "no tools for Debian packages here (package dpkg-dev)")
class DebianPackages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="rankscope-packages-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        check("cpack", "-G", "DEB", "-B", cls.folder, cwd=BUILD)
        cls.packages = {path.name.split("_")[0]: path for path in cls.folder.glob("*.deb")}
        cls.root = cls.folder / "root"
        for package in cls.packages.values():
            check("dpkg-deb", "--extract", package, cls.root)

    def contents(self, package):
        return {line.split(None, 5)[5].split(" -> ")[0] for line in check("dpkg-deb", "--contents", self.packages[package]).splitlines() if not line.startswith("d")}

    def test_no_file_is_in_two_packages(self):
        with_window = (BUILD / "libexec/rankscope/rankscope-view").exists()
        mpis = {name for name in ("openmpi", "mpich") if (BUILD / f"lib/rankscope/librankscope_mpi_{name}.so").exists()}
        self.assertEqual(set(self.packages), {"rankscope"} | ({"rankscope-gui"} if with_window else set()) | {f"rankscope-{name}" for name in mpis})
        for name in mpis:
            self.assertIn(f"./usr/lib/rankscope/librankscope_mpi_{name}.so", self.contents(f"rankscope-{name}"))
            self.assertEqual(self.contents("rankscope") & self.contents(f"rankscope-{name}"), set())
        self.assertIn("./usr/bin/rankscope", self.contents("rankscope"))
        self.assertIn("./usr/share/man/man1/rankscope-run.1", self.contents("rankscope"))
        if with_window:
            self.assertIn("./usr/libexec/rankscope/rankscope-view", self.contents("rankscope-gui"))
            self.assertEqual(self.contents("rankscope") & self.contents("rankscope-gui"), set())

    def test_dependencies_are_libraries_that_distributions_have(self):
        depends = check("dpkg-deb", "--field", self.packages["rankscope"], "Depends")
        self.assertIn("libc6 (>= 2.3", depends)
        for word in ("nccl", "cuda", "qt6", "mpi"):
            self.assertNotIn(word, depends.lower())
        for name, library in (("openmpi", "libopenmpi"), ("mpich", "libmpich")):
            if f"rankscope-{name}" in self.packages:
                depends = check("dpkg-deb", "--field", self.packages[f"rankscope-{name}"], "Depends")
                self.assertIn(library, depends)
                self.assertIn("rankscope (= ", depends)

    def test_installed_under_a_root_it_runs_the_demo(self):
        clean = {"PATH": f"{self.root}/usr/bin:/usr/bin:/bin", "HOME": str(self.folder)}
        self.assertIn("RS301 straggler rank", check("rankscope", "demo", cwd=self.folder, env=clean))
        for path in elf_files(self.root):
            self.assertNotIn(".debug_info", run("readelf", "-SW", path).stdout, path)

    def test_debug_information_lies_beside(self):
        self.assertTrue([path for path in self.folder.glob("*.ddeb")])


if __name__ == "__main__":
    unittest.main()
