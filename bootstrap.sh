#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh checkout to working tools: installs what is missing, builds, runs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
    cat <<'TEXT'
Usage: ./bootstrap.sh demo | test | lint | fuzz | build | package | bench | frameworks

  demo    build all but the timeline, profile a faulty 8-rank FSDP job on the built-in virtual GPUs, print the diagnosis
  test    build and run the whole test suite
  fuzz    build the fuzz targets and fuzz each for 30 s; FUZZ_SECONDS=N: for N
  lint    compile every file by itself; a warning is an error
  build   leave all tools, the timeline with them, in build/bin/
  package build the tools, and make of them in build/packages: Debian packages (rankscope, rankscope-gui), a wheel for pip, what belongs into an
          image (Containerfile), and the debug information beside
  frameworks  build the tools, and install PyTorch, DeepSpeed, Megatron-core and Accelerate from PyPI into build/frameworks, to run on virtual
          GPUs: 3 GB to fetch, 5 GB on disk, in ~/.cache/rankscope, where all checkouts share them; what was fetched is kept when it is interrupted
  bench   build and run the benchmarks: what recording, collecting, importing, analysing and advising cost, each beside its yardstick

Installs missing packages of packages.txt with apt-get (as root or through sudo). Where CUDA 13 with CUPTI, NVTX and NCCL is not installed,
its compiler and headers are fetched from PyPI into build/cuda; no GPU is needed.
RANKSCOPE_IGNORE_CUDA=1 ignores an installed CUDA. JOBS=N sets the number of parallel compilations.
TEXT
}

# What is preloaded into a job speaks with glibc, and the virtual GPUs with one machine's calling convention.
refuse_other_platforms() {
    [ "$(uname -s)" = Linux ] || fail "Rankscope records Linux jobs; this is $(uname -s)"
    case "$(uname -m)" in
        x86_64 | aarch64) ;;
        *) fail "Rankscope runs on x86_64 and aarch64; this is $(uname -m)" ;;
    esac
    # musl's ldd knows no --version, says who it is, and ends with 1.
    if [[ "$(ldd --version 2>&1 || true)" == *[Mm]usl* ]]; then
        fail "this system's libc is musl (Alpine): CUDA's libraries, and with them Rankscope, need glibc; use an image of Debian or Ubuntu"
    fi
}

readonly jobs="${JOBS:-$(nproc)}"
readonly fetched_cuda="$PWD/build/cuda"
# One release, so that everybody builds with the same headers.
readonly cuda_wheels=(nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85
                      nvidia-cuda-cupti==13.0.85 nvidia-nvtx==13.0.85 nvidia-nccl-cu13==2.28.9)

# Checkouts share the compiler's cache: nothing in a result depends on where the checkout lies but debug paths.
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1

# One set of releases, so that the jobs of the suite `frameworks` are the same everywhere.
readonly no_pypi=75  # exit status of `frameworks` then: a temporary failure (sysexits.h)
readonly framework_packages=(torch==2.15.0 numpy==2.4.6 megatron-core==0.16.1 deepspeed==0.19.8 accelerate==1.15.0)

say() { printf '== %s\n' "$*" >&2; }
fail() { printf 'bootstrap.sh: %s\n' "$*" >&2; exit 1; }

packages_for() { awk -v when="$1" '$1 == when { print $2 }' packages.txt; }

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null)" = 'ii ' ]; }

lists_are_fresh=
update_lists() {
    [ -n "$lists_are_fresh" ] && return
    as_root apt-get update -qq
    lists_are_fresh=1
}

is_offered() {
    local policy
    policy=$(apt-cache policy "$1" 2>/dev/null) && [[ "$policy" == *'Candidate: '[!\(]* ]]
}

# A package may have several names, one for each distribution: first|second.
is_any_installed() {
    local name
    for name in ${1//|/ }; do is_installed "$name" && return; done
    return 1
}

# Prints the first of its names that is offered; else all of them, and fails.
offered_name() {
    local name
    for name in ${1//|/ }; do is_offered "$name" && { echo "$name"; return; }; done
    echo "${1//|/ or }"
    return 1
}

is_optional() { [[ " jobs mpi format gui guitest fuzz reporttest packagetest slurm " == *" $1 "* ]]; }

without_it() {
    case "$1" in
        mpi) echo "collect and analyze are not shared out under its mpirun" ;;
        gui) echo "the timeline is built only where Qt 6 with Widgets and Svg is found" ;;
        fuzz) echo "the fuzz targets need clang with libFuzzer" ;;
        *) echo "its tests will be skipped" ;;
    esac
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

install_packages() {
    local when package missing=()
    command -v dpkg-query >/dev/null || { say "not a Debian or Ubuntu system: the packages of packages.txt are expected to be here"; return; }
    for when in "$@"; do
        for package in $(packages_for "$when"); do
            is_any_installed "$package" && continue
            # What needs it is left out, and says so, where the distribution has no such package.
            if is_optional "$when"; then
                update_lists
                package=$(offered_name "$package") || { say "no package $package here: $(without_it "$when")"; continue; }
            fi
            missing+=("$package")
        done
    done
    [ ${#missing[@]} -eq 0 ] && return
    [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null || fail "these packages are missing, and neither root nor sudo is available: ${missing[*]}"
    say "installing: ${missing[*]}"
    update_lists
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# True for a folder that holds CUDA 13 or newer with everything that the build includes.
is_complete_cuda() {
    local root="$1" header version
    [ -x "$root/bin/nvcc" ] || return 1
    for header in cuda_runtime_api.h cupti.h nvtx3/nvToolsExt.h nccl.h; do
        [ -e "$root/include/$header" ] || [ -e "$root/extras/CUPTI/include/$header" ] || [ -e "/usr/include/$header" ] || return 1
    done
    [ -e "$root/include/nv/target" ] || [ -e "$root/include/cccl/nv/target" ] || return 1  # cuda_fp16.h, which nccl.h includes, needs it
    version=$(awk '$2 == "CUDART_VERSION" { print $3; exit }' "$root/include/cuda_runtime_api.h")
    [ "${version:-0}" -ge 13000 ]
}

fetch_cuda() {
    is_complete_cuda "$fetched_cuda" && return
    install_packages cuda
    say "fetching the CUDA 13.0 compiler and headers from PyPI (about 300 MB) into build/cuda"
    rm -rf "$fetched_cuda" "$fetched_cuda.new"
    mkdir -p "$fetched_cuda.new/wheels"
    python3 -m pip download --quiet --no-deps --disable-pip-version-check --dest "$fetched_cuda.new/wheels" "${cuda_wheels[@]}"
    python3 - "$fetched_cuda.new" <<'PYTHON'
import os, pathlib, shutil, sys, zipfile

root = pathlib.Path(sys.argv[1])
for wheel in sorted((root / "wheels").glob("*.whl")):
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            parts = pathlib.PurePosixPath(entry.filename).parts
            # nvidia/<package>/{bin,include,lib,nvvm}/… becomes {bin,include,lib,nvvm}/…
            if entry.is_dir() or len(parts) < 4 or parts[0] != "nvidia" or parts[2] not in ("bin", "include", "lib", "nvvm"):
                continue
            target = root.joinpath(*parts[2:])
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as source, open(target, "wb") as copy:
                shutil.copyfileobj(source, copy)
            if "bin" in parts:
                os.chmod(target, 0o755)
shutil.rmtree(root / "wheels")
# nvcc looks for lib64 and links -lcudart, the wheels have lib and libcudart.so.13.
(root / "lib64").symlink_to("lib")
for library in (root / "lib").glob("lib*.so.*"):
    short = library.with_name(library.name.split(".so.")[0] + ".so")
    if not short.exists():
        short.symlink_to(library.name)
PYTHON
    mv "$fetched_cuda.new" "$fetched_cuda"
    is_complete_cuda "$fetched_cuda" || fail "the fetched CUDA in $fetched_cuda is not complete"
}

# Sets cuda_root to an installed CUDA, or fetches one.
find_cuda() {
    local nvcc candidates=()
    if [ -z "${RANKSCOPE_IGNORE_CUDA:-}" ]; then
        candidates=("${CUDA_HOME:-}" "${CUDA_PATH:-}")
        if nvcc=$(command -v nvcc); then candidates+=("$(dirname "$(dirname "$(readlink -f "$nvcc")")")"); fi
        candidates+=(/usr/local/cuda)
        for cuda_root in "${candidates[@]}"; do
            if [ -n "$cuda_root" ] && is_complete_cuda "$cuda_root"; then return; fi
        done
    fi
    fetch_cuda
    cuda_root="$fetched_cuda"
}

# Prints the GB that are free where the folder $1 is, or will be.
free_gb() {
    local folder="$1"
    until [ -d "$folder" ]; do folder=$(dirname "$folder"); done
    df -Pk "$folder" | awk 'NR == 2 { print int($4 / 1e6) }'
}

# Prints the folder of the frameworks' Python environment: one for each set of releases and Python version.
frameworks_folder() {
    local key
    key=$(printf '%s\n' "${framework_packages[@]}" "$(python3 -c 'import sys; print(sys.version_info[:2])')" | sha256sum | cut -c 1-10)
    echo "${XDG_CACHE_HOME:-$HOME/.cache}/rankscope/frameworks-$key"
}

# Leaves the frameworks in the folder $1. The file `complete` in it says that nothing is missing.
fetch_frameworks() {
    local folder="$1" wheels="$1.wheels" free
    # 5.5 GB installed, and 3 GB of what was fetched until then.
    free=$(free_gb "$folder")
    [ "$free" -ge 9 ] || fail "the frameworks need 9 GB while they are installed, and 5.5 GB later: $folder has $free GB"
    install_packages frameworks
    mkdir -p "$wheels"
    say "installing ${framework_packages[*]} from PyPI into $folder (3 GB to fetch; log: build/bootstrap-frameworks.log)"
    [ -x "$folder/bin/python" ] || python3 -m venv "$folder" || fail "python3 cannot make a virtual environment in $folder"
    # The small one first: whether PyPI answers shows at once.
    PIP_CACHE_DIR="$wheels" "$folder/bin/python" -m pip install --disable-pip-version-check --no-deps "${framework_packages[-1]}" >build/bootstrap-frameworks.log 2>&1 ||
        { tail -n 5 build/bootstrap-frameworks.log >&2; say "PyPI does not answer, or has no ${framework_packages[-1]} for this Python"; exit $no_pypi; }
    # What was fetched stays in $wheels when this is interrupted, and is not fetched again.
    PIP_CACHE_DIR="$wheels" "$folder/bin/python" -m pip install --disable-pip-version-check "${framework_packages[@]}" >>build/bootstrap-frameworks.log 2>&1 ||
        { tail -n 20 build/bootstrap-frameworks.log >&2; fail "the installation stopped; the same command goes on from here"; }
    rm -rf "$wheels"
    # What prices PyTorch's operators is compiled against the headers just installed, so that no job has to wait for it.
    build/lib/rankscope/frameworks/torch/build_library.sh "$(echo "$folder"/lib/python3.*/site-packages/torch)" >>build/bootstrap-frameworks.log ||
        fail "the library of PyTorch's operators could not be compiled: see build/bootstrap-frameworks.log"
    touch "$folder/complete"
}

frameworks() {
    local folder
    build_tools_for_demo
    # A link of the user's own to an environment of theirs is left alone.
    if [ -L build/frameworks ] && [ -x build/frameworks/bin/torchrun ] && [ "$(readlink build/frameworks)" != "$(frameworks_folder)" ]; then
        say "build/frameworks is $(readlink build/frameworks): left as it is"
        return
    fi
    folder=$(frameworks_folder)
    mkdir -p "$(dirname "$folder")"
    # Another checkout may be at it.
    exec 9>"$folder.lock"
    flock 9
    [ -e "$folder/complete" ] || fetch_frameworks "$folder"
    exec 9>&-
    ln -sfn "$folder" build/frameworks
    say "the frameworks are in build/frameworks; next: build/bin/rankscope reference run torch-ddp-straggler -o slow, or your own script:"
    say "build/bin/rankscope run --virtual -o mine -- build/frameworks/bin/torchrun --standalone --nproc-per-node 8 train.py"
}

# build_preset PRESET [cmake options]: configures and builds; the output of a build that works stays out of sight.
build_preset() {
    local preset="$1"
    shift
    build_target "$preset" "" "$@"
}

# build_target PRESET TARGET [cmake options]: the same for what one target needs; an empty TARGET stands for the preset's own.
build_target() {
    local preset="$1" target="$2" log
    shift 2
    mkdir -p build
    log="build/bootstrap-$preset.log"
    say "building ($preset, $jobs at a time; log: $log)"
    if ! { cmake --preset "$preset" "-DRANKSCOPE_CUDA_ROOT=$cuda_root" "$@" && cmake --build --preset "$preset" -j "$jobs" ${target:+--target "$target"}; } >"$log" 2>&1; then
        tail -n 60 "$log" >&2
        fail "the build failed; the whole log is in $log"
    fi
}

# Without tests at first; a tree that was built with them keeps them.
tests_option() { [ -e build/CMakeCache.txt ] || echo -DRANKSCOPE_TESTS=OFF; }

build_tools() {
    install_packages build gui
    find_cuda
    # shellcheck disable=SC2046  # nothing or one word
    build_preset dev $(tests_option)
}

build_tools_for_demo() {
    install_packages build
    find_cuda
    # shellcheck disable=SC2046
    build_target dev rankscope_demo $(tests_option)
}

demo() {
    build_tools_for_demo
    say "build/bin/rankscope reference run fsdp-slow-rank -o demo-run --force"
    build/bin/rankscope -q reference run fsdp-slow-rank -o demo-run --force
    say "build/bin/rankscope analyze demo-run"
    build/bin/rankscope -q analyze demo-run
    # The finding named in the report, so that the next command is about what was just read.
    local finding
    finding=$(build/bin/rankscope -q analyze demo-run --format json | grep -o '"id": *"RS[0-9]*"' | head -n 1 | grep -o 'RS[0-9]*' || true)
    printf '\nnext: build/bin/rankscope explain %s\n' "${finding:-RS301}"
}

package() {
    install_packages package
    build_tools
    rm -rf build/packages
    say "packing (log: build/bootstrap-package.log)"
    { (cd build && cpack -G DEB) && rm -rf build/packages/_CPack_Packages && python3 packaging/make_wheel.py build build/packages &&
        cp packaging/Containerfile build/packages/; } >build/bootstrap-package.log 2>&1 || { tail -n 30 build/bootstrap-package.log >&2; fail "packing failed"; }
    say "in build/packages: $(cd build/packages && echo *)"
}

# run_tests PRESET [ctest options]
run_tests() {
    local preset="$1" log status=0
    shift
    log="build/bootstrap-$preset-tests.log"
    say "testing ($preset)"
    ctest --preset "$preset" -j $((jobs + 1)) "$@" >"$log" 2>&1 || status=$?
    if [ $status -ne 0 ]; then cat "$log"; else grep -A 1000 'tests passed' "$log" || tail -n 5 "$log"; fi
    return $status
}

test_all() {
    local failed=0
    install_packages build gui test format jobs mpi guitest reporttest packagetest slurm
    find_cuda
    # Unit tests of the offline rooms, the injector's and the window's run once, in the sanitized builds.
    build_preset dev-plain
    run_tests dev-plain --label-exclude window || failed=1
    build_preset dev-asan
    run_tests dev-asan || failed=1
    build_preset dev-tsan
    run_tests dev-tsan || failed=1
    [ $failed -eq 0 ] || fail "tests failed"
    say "all tests passed"
}

# What is compiled in units elsewhere: each file includes what it uses, and the compiler has nothing to say about it.
lint() {
    install_packages build gui test
    find_cuda
    build_preset lint
    say "each file compiles by itself, without a warning"
}

# Each target for FUZZ_SECONDS; what they find goes to build/fuzz/tests/fuzz/NAME, a crash with its input into the log.
fuzz() {
    install_packages build test fuzz
    cuda_root="$fetched_cuda"  # nothing here needs one
    build_preset fuzz "-DRANKSCOPE_FUZZ_SECONDS=${FUZZ_SECONDS:-30}"
    run_tests fuzz
    say "no target crashed, hung or took more than 2 GiB"
}

# run_benchmark NAME [ARGUMENT…]
run_benchmark() {
    local program="rankscope_bench_$1"
    shift
    cmake --build --preset dev -j "$jobs" --target "$program" >>build/bootstrap-dev.log 2>&1 || fail "the build failed; the whole log is in build/bootstrap-dev.log"
    say "build/tests/bench/$program $*"
    "build/tests/bench/$program" "$@"
}

bench() {
    local program
    install_packages build test bench
    find_cuda
    build_preset dev -DRANKSCOPE_TESTS=ON
    for program in recording collecting importing; do run_benchmark "$program"; done
    build/bin/rankscope -q reference run 3d-none-sixteen --force -o build/bench-run
    for program in analysing replay; do run_benchmark "$program" build/bench-run; done
    build/bin/rankscope -q reference run zero1-none-sixteen --force -o build/bench-buckets
    run_benchmark advising build/bench-run build/bench-buckets
}

case "${1:-}" in
    -h | --help | '') ;;
    *) refuse_other_platforms ;;
esac
case "${1:-}" in
    demo) demo ;;
    bench) bench ;;
    frameworks) frameworks ;;
    package) package ;;
    test) test_all ;;
    lint) lint ;;
    fuzz) fuzz ;;
    build)
        build_tools
        say "the tools are in build/bin; next: build/bin/rankscope doctor"
        ;;
    -h | --help) usage ;;
    *) usage >&2; exit 2 ;;
esac
