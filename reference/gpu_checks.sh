#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Confirms on a machine with a GPU what the virtual GPUs can only assume. See docs/gpu-checks.md.
set -uo pipefail

usage() {
    cat <<'TEXT'
Usage: reference/gpu_checks.sh [run] [FOLDER [--only AREA…]]
                                                  builds, runs the checks, leaves a table and the recorded runs in FOLDER (default gpu-checks)
       reference/gpu_checks.sh vendor [FOLDER]    copies the libraries that the build needs out of this Debian or Ubuntu machine into FOLDER
                                                  (default build/vendor), for a machine that has neither them nor a network

The machine needs: one GPU, nvcc 13 with CUPTI and NVTX headers, NCCL's header and library (PyTorch's will do), g++, cmake, ninja, python3.
RANKSCOPE_VENDOR=FOLDER names the copied libraries; CUDA_HOME the CUDA toolkit.
TEXT
}

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 4
readonly source_folder="$PWD"
readonly vendored_packages=(libcli11-dev libfmt-dev libsqlite3-dev nlohmann-json3-dev libsimdjson-dev zlib1g-dev libtomlplusplus-dev)

say() { printf '== %s\n' "$*" >&2; }
fail() { printf 'gpu_checks.sh: %s\n' "$*" >&2; exit "${2:-1}"; }

# --- vendor ---------------------------------------------------------------------------------------------------------------------------------

# The files of a package and of the shared libraries it links against, as installed here; documentation left out.
vendor() {
    local target="${1:-build/vendor}" package file
    local packages=()
    command -v dpkg-query >/dev/null || fail "vendor needs a Debian or Ubuntu machine" 3
    for package in "${vendored_packages[@]}"; do
        dpkg-query -L "$package" >/dev/null 2>&1 || fail "$package is not installed here: apt-get install ${vendored_packages[*]}" 3
        packages+=("$package")
        for file in $(dpkg-query -W -f '${Depends}' "$package" | tr ',' '\n' | awk '{ print $1 }' | grep -E '^(libfmt|libsqlite3|libsimdjson|zlib1g)'); do
            packages+=("$file")
        done
    done
    mkdir -p "$target"
    dpkg-query -L "${packages[@]}" | sort -u | grep -vE '/share/(doc|man|info)/' | while read -r file; do
        if [ -f "$file" ] || [ -L "$file" ]; then
            # /lib is /usr/lib where packages still name the old place.
            mkdir -p "$target/$(dirname "${file/#\/lib\///usr/lib/}")"
            cp -P "$file" "$target/${file/#\/lib\///usr/lib/}"
        fi
    done
    say "libraries of ${packages[*]} are in $target ($(du -sh "$target" | cut -f1)); carry the folder along, and set RANKSCOPE_VENDOR to it"
}

# --- what the machine has -------------------------------------------------------------------------------------------------------------------

# First existing file of a glob list.
first_of() {
    local file
    for file in "$@"; do
        if [ -e "$file" ]; then printf '%s\n' "$file"; return; fi
    done
    return 1
}

# Folders of the CUDA pieces that pip installs beside PyTorch: nvidia/<package>/{include,lib}.
pip_nvidia_folders() {
    python3 - <<'PYTHON' 2>/dev/null
import importlib.util, pathlib
spec = importlib.util.find_spec("nvidia")
for root in (spec.submodule_search_locations if spec else []):
    for package in sorted(pathlib.Path(root).iterdir()):
        if package.is_dir():
            print(package)
PYTHON
}

find_machine() {
    local candidate pip_folders
    cuda_root=""
    for candidate in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda "$(dirname "$(dirname "$(readlink -f "$(command -v nvcc || echo /none/none)")")")"; do
        if [ -n "$candidate" ] && [ -x "$candidate/bin/nvcc" ]; then cuda_root="$candidate"; break; fi
    done
    [ -n "$cuda_root" ] || fail "no nvcc found: set CUDA_HOME" 3
    mapfile -t pip_folders < <(pip_nvidia_folders)
    nccl_header=$(first_of "$cuda_root/include/nccl.h" /usr/include/nccl.h "${pip_folders[@]/%//include/nccl.h}") || fail "no nccl.h found" 3
    nccl_library=$(first_of "$cuda_root"/lib64/libnccl.so.2 /usr/lib/*/libnccl.so.2 "${pip_folders[@]/%//lib/libnccl.so.2}") || fail "no libnccl.so.2 found" 3
    cudart_library=$(first_of "$cuda_root"/lib64/libcudart.so.13 "${pip_folders[@]/%//lib/libcudart.so.13}") || fail "no libcudart.so.13 found" 3
    cupti_library=$(first_of "$cuda_root"/extras/CUPTI/lib64/libcupti.so.13 "$cuda_root"/lib64/libcupti.so.13 "${pip_folders[@]/%//lib/libcupti.so.13}") || cupti_library=""
}

# --- the checks -----------------------------------------------------------------------------------------------------------------------------

build_tools() {
    local vendor="${RANKSCOPE_VENDOR:-$source_folder/build/vendor}" options=()
    [ -d "$vendor/usr" ] && options+=("-DCMAKE_PREFIX_PATH=$vendor/usr")
    if ! { cmake -S . -B "$build" -G Ninja -DRANKSCOPE_TESTS=OFF "-DRANKSCOPE_ROOMS=injector;collector;analyzer;reference" \
               "-DRANKSCOPE_CUDA_ROOT=$cuda_root" "-DRANKSCOPE_NVCC=$cuda_root/bin/nvcc" "-DRANKSCOPE_NCCL_INCLUDE=$(dirname "$nccl_header")" \
               "-DRANKSCOPE_CUDART=$cudart_library" "${options[@]}" &&
               cmake --build "$build"; } >"$folder/build.log" 2>&1; then
        tail -n 30 "$folder/build.log" >&2
        fail "the build failed ($folder/build.log); where libraries are missing, see 'reference/gpu_checks.sh vendor'" 3
    fi
}

run_checks() {    # FOLDER, options of reference/gpu_checks…
    folder="$(realpath -m "${1:-gpu-checks}")"
    build="$folder/build"
    mkdir -p "$folder"
    find_machine
    export LD_LIBRARY_PATH="$(dirname "$cudart_library"):$(dirname "$nccl_library")${cupti_library:+:$(dirname "$cupti_library")}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    export PATH="$cuda_root/bin:$PATH"
    say "building in $build"
    build_tools
    nccl_version=$(awk '/define NCCL_(MAJOR|MINOR|PATCH)/ { printf "%s%s", dot, $3; dot = "." }' "$nccl_header")
    python3 reference/gpu_checks --build "$build" --out "$folder" --nccl "$nccl_version" "${@:2}"
    local status=$?
    # What is kept is small: captures and databases, no build.
    tar -C "$folder" --exclude ./build -czf "$folder/reports.tar.gz" --exclude ./runs --exclude ./golden --exclude './kineto-*' --exclude './*.tar.gz' . 2>/dev/null
    tar -C "$folder" -czf "$folder/golden.tar.gz" golden 2>/dev/null
    tar -C "$folder" -czf "$folder/runs.tar.gz" runs 2>/dev/null
    return "$status"
}

case "${1:-run}" in
    vendor) vendor "${2:-}" ;;
    run) run_checks "${@:2}" ;;
    -h | --help) usage ;;
    -*) usage >&2; exit 2 ;;
    *) run_checks "$@" ;;
esac
