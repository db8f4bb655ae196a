#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_wheel.py BUILD OUTPUT: a wheel of what a build tree holds but for the timeline, and its debug information beside it.

The wheel lays the installed tree into the environment itself (bin/rankscope, lib/rankscope, …), so that `rankscope` is the program and no script
in front of it. It brings the libraries along that manylinux does not promise. Its platform tag says what its files ask for, no less."""

import argparse
import base64
import hashlib
import os
import pathlib
import platform
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
COMPONENTS = ("rankscope", "documentation")
BUNDLED = "lib/rankscope/bundled"
# What every system of a manylinux tag has (PEP 600, and auditwheel's policies): glibc and the compiler's libraries.
PROMISED = re.compile(r"^(lib(c|m|dl|pthread|rt|util|gcc_s|stdc\+\+)\.so\.\d+|ld-linux-.*)$")
# The oldest glibc beside which a distribution ships that libstdc++: GCC 11's with RHEL 9 (2.34), GCC 12's with Ubuntu 22.04 (2.35).
GLIBC_OF_GLIBCXX = ((29, (2, 34)), (30, (2, 35)))
FIXED_TIME = (1980, 1, 1, 0, 0, 0)  # the same files give the same wheel


def output_of(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def is_elf(path):
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def needed_by(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-dW", path))


def soname_of(path):
    found = re.search(r"\(SONAME\).*\[(.*)\]", output_of("readelf", "-dW", path))
    return found.group(1) if found else path.name


def glibc_needed_by(path):
    """The oldest glibc with which this file can be loaded, by the versions of the symbols that it asks for."""
    nodes = output_of("readelf", "-VW", path)
    nodes = nodes[nodes.find("Version needs section"):] if "Version needs section" in nodes else ""
    versions = [tuple(map(int, version.split("."))) for version in re.findall(r"Name: GLIBC_([\d.]+)", nodes)]
    for version in re.findall(r"Name: GLIBCXX_3\.4\.(\d+)", nodes):
        newer = [glibc for most, glibc in GLIBC_OF_GLIBCXX if int(version) <= most]
        if not newer:
            sys.exit(f"make_wheel.py: {path} asks for GLIBCXX_3.4.{version}: of no system is known that it has it")
        versions.append(newer[0])
    return max(versions, default=(2, 0))[:2]


def loaded_path(path, name):
    """Where the loader finds the library `name` that `path` asks for, directly or not."""
    for line in output_of("ldd", path).splitlines():
        found = re.match(rf"\s*{re.escape(name)} => (/\S+)", line)
        if found:
            return pathlib.Path(found.group(1))
    sys.exit(f"make_wheel.py: {path} needs {name}, which is not on this machine")


def replace_links(stage):
    """A wheel has no links. One beside the virtual GPUs is a library's name: the library of that name says the same, and is loaded once."""
    by_name = {}
    for path in sorted(stage.rglob("preload/*.so")):
        by_name[soname_of(path)] = path
    for path in sorted(stage.rglob("*")):
        if path.is_symlink():
            source = by_name.get(path.name, path.resolve())
            path.unlink()
            shutil.copy2(source, path)


def bundle(stage):
    own = {path.name for path in stage.rglob("*") if is_elf(path)}
    folder = stage / BUNDLED
    folder.mkdir(parents=True)
    sources = {}
    open_files = [path for path in sorted(stage.rglob("*")) if is_elf(path)]
    while open_files:
        path = open_files.pop()
        for name in needed_by(path):
            if PROMISED.match(name) or name in own:
                continue
            own.add(name)
            source = pathlib.Path(loaded_path(path, name))  # from here on the loader finds our copy
            shutil.copy2(source, folder / name)
            sources[name] = source
            open_files.append(folder / name)
    licences = folder / "licences"
    licences.mkdir()
    for name, source in sorted(sources.items()):
        text = copyright_of(source)
        if text is None:
            sys.exit(f"make_wheel.py: the licence of {name} ({source}) is not found: a wheel does not pass a library on without it")
        shutil.copy2(text, licences / f"{text.parent.name}.txt")


def copyright_of(library):
    """The licence of the Debian package that owns a library; None where no package says that it does."""
    for path in (library, library.resolve()):
        for known_as in (str(path), str(path).removeprefix("/usr")):  # /lib is a link to /usr/lib, and packages name either
            owner = subprocess.run(["dpkg-query", "-S", known_as], capture_output=True, text=True)
            text = pathlib.Path(f"/usr/share/doc/{owner.stdout.split(':')[0]}/copyright")
            if owner.returncode == 0 and text.exists():
                return text
    return None


def split_debug_information(stage, debug):
    for path in sorted(stage.rglob("*")):
        if not is_elf(path) or BUNDLED in str(path):
            continue
        target = debug / path.relative_to(stage).with_name(path.name + ".debug")
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["objcopy", "--only-keep-debug", path, target], check=True)
        subprocess.run(["strip", "--strip-unneeded", path], check=True)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={target}", path], check=True)


def project_version():
    return re.search(r"project\(rankscope VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def metadata(version):
    return (f"Metadata-Version: 2.1\nName: rankscope\nVersion: {version}\n"
            "Summary: Finds out what holds the ranks of a distributed training job back, and what to change\n"
            "License: Apache-2.0\nRequires-Python: >=3.8\nClassifier: License :: OSI Approved :: Apache Software License\n"
            "Classifier: Operating System :: POSIX :: Linux\nDescription-Content-Type: text/markdown\n\n" + (ROOT / "README.md").read_text())


class Wheel:
    """Writes entries with their hashes, and RECORD in the end."""

    def __init__(self, path):
        self.archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.records = []

    def add(self, name, content, mode=0o644):
        entry = zipfile.ZipInfo(name, FIXED_TIME)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (stat.S_IFREG | mode) << 16
        self.archive.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.records.append(f"{name},sha256={digest},{len(content)}")

    def close(self, record):
        self.add(record, ("\n".join([*self.records, f"{record},,", ""])).encode())
        self.archive.close()


def write_wheel(stage, output, version):
    if platform.libc_ver()[0] != "glibc":
        sys.exit("make_wheel.py: what is built here is bound to another libc than glibc: no manylinux tag is true of it")
    files = [path for path in sorted(stage.rglob("*")) if path.is_file()]
    glibc = max(glibc_needed_by(path) for path in files if is_elf(path))
    tag = f"py3-none-manylinux_{glibc[0]}_{glibc[1]}_{platform.machine()}"
    wheel = Wheel(output / f"rankscope-{version}-{tag}.whl")
    for path in files:
        mode = 0o755 if os.access(path, os.X_OK) else 0o644
        wheel.add(f"rankscope-{version}.data/data/{path.relative_to(stage)}", path.read_bytes(), mode)
    information = f"rankscope-{version}.dist-info"
    wheel.add(f"{information}/METADATA", metadata(version).encode())
    wheel.add(f"{information}/WHEEL", f"Wheel-Version: 1.0\nGenerator: rankscope\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    wheel.add(f"{information}/LICENSE", (ROOT / "LICENSE").read_bytes())
    wheel.close(f"{information}/RECORD")
    return output / f"rankscope-{version}-{tag}.whl"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    version = project_version()
    with tempfile.TemporaryDirectory() as folder:
        stage, debug = pathlib.Path(folder, "stage"), pathlib.Path(folder, "debug")
        for component in COMPONENTS:
            output_of("cmake", "--install", arguments.build, "--component", component, "--prefix", stage)
        replace_links(stage)
        split_debug_information(stage, debug)
        bundle(stage)
        wheel = write_wheel(stage, arguments.output, version)
        with tarfile.open(wheel.with_name(wheel.name.removesuffix(".whl") + "-debug.tar.gz"), "w:gz") as archive:
            archive.add(debug, arcname=f"rankscope-{version}-debug")
    print(wheel)


if __name__ == "__main__":
    main()
