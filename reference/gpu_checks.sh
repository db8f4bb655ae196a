#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Confirms on a machine with a GPU what the virtual GPUs can only assume. See docs/gpu-checks.md.
set -uo pipefail

usage() {
    cat <<'TEXT'
Usage: reference/gpu_checks.sh [run] [FOLDER]     builds, runs the checks, leaves a table and the recorded runs in FOLDER (default gpu-checks)
       reference/gpu_checks.sh vendor [FOLDER]    copies the libraries that the build needs out of this Debian or Ubuntu machine into FOLDER
                                                  (default build/vendor), for a machine that has neither them nor a network

The machine needs: one GPU, nvcc 13 with CUPTI and NVTX headers, NCCL's header and library (PyTorch's will do), g++, cmake, ninja, python3.
RANKSCOPE_VENDOR=FOLDER names the copied libraries; CUDA_HOME the CUDA toolkit.
TEXT
}

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 4
readonly source_folder="$PWD"
readonly vendored_packages=(libcli11-dev libfmt-dev libsqlite3-dev nlohmann-json3-dev libsimdjson-dev zlib1g-dev)

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

# --- the table ------------------------------------------------------------------------------------------------------------------------------

failures=0
row() {    # area, check, result, seen
    printf '| %s | %s | %s | %s |\n' "$1" "$2" "$3" "${4//|/\\|}" >>"$table"
    printf '%-8s %-7s %s: %s\n' "$1" "$3" "$2" "$4" >&2
    [ "$3" = FAILED ] && failures=$((failures + 1))
    return 0
}

expect() {    # area, check, seen, command…
    local area="$1" check="$2" seen="$3"
    shift 3
    if "$@"; then row "$area" "$check" ok "$seen"; else row "$area" "$check" FAILED "$seen"; fi
}

trace_rows() {    # area, run, expectations…
    local area="$1" run="$2" name result seen
    shift 2
    while IFS=$'\t' read -r name result seen; do
        row "$area" "$name" "$result" "$seen"
    done < <(python3 reference/gpu_checks.py "$run/trace.db" "$@" 2>&1)
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

# A job of two ranks on one GPU: plain, wrapped, and what the recording holds.
workload_checks() {    # kind, expectations…
    local kind="$1" scenario="$folder/$1.json" plain wrapped plain_status wrapped_status
    shift
    case "$kind" in
        ddp) printf '{"name": "gpu-ddp", "kind": "ddp", "steps": 6, "cluster": {"nodes": 1, "ranks_per_node": 2}, "parallel": {"dp": 2},
 "model": {"layers": 4, "hidden": 2048, "seq": 1024, "micro_batch": 2}}\n' >"$scenario" ;;
        fsdp) printf '{"name": "gpu-fsdp", "kind": "fsdp", "steps": 6, "cluster": {"nodes": 1, "ranks_per_node": 2}, "parallel": {"dp": 2},
 "model": {"layers": 4, "hidden": 2048, "seq": 1024, "micro_batch": 2}}\n' >"$scenario" ;;
        pp) printf '{"name": "gpu-pp", "kind": "pp", "steps": 6, "cluster": {"nodes": 1, "ranks_per_node": 2}, "parallel": {"dp": 1, "pp": 2, "micro_batches": 8},
 "model": {"layers": 4, "hidden": 2048, "seq": 1024, "micro_batch": 1}}\n' >"$scenario" ;;
    esac
    local job=(bash reference/launch_ranks.sh 2 bash reference/pytorch/one_gpu.sh "$build/libexec/rankscope/rankscope-workload" "$scenario")
    plain=$(timeout 100 "${job[@]}" 2>"$folder/$kind-plain.err"); plain_status=$?
    expect "$kind" "plain: exact results" "status $plain_status: $plain $(tail -n 1 "$folder/$kind-plain.err")" test "$plain_status" -eq 0
    wrapped=$(timeout 140 "$build/bin/rankscope" -q run -o "$folder/runs/$kind" --force -- "${job[@]}" 2>"$folder/$kind-wrapped.err"); wrapped_status=$?
    expect "$kind" "wrapped: same output and status" "status $wrapped_status: $wrapped" test "$plain/$plain_status" = "$wrapped/$wrapped_status"
    trace_rows "$kind" "$folder/runs/$kind" "$@"
    "$build/bin/rankscope" -q analyze "$folder/runs/$kind" >"$folder/$kind-report.txt" 2>&1
    expect "$kind" "analyze" "status $?; $kind-report.txt" test -s "$folder/$kind-report.txt"
}

torch_checks() {
    local script="$1" name="torch-$2" status
    local job=(torchrun --standalone --nproc_per_node=2 --no-python bash reference/pytorch/one_gpu.sh python3 "reference/pytorch/$script")
    timeout 140 "$build/bin/rankscope" -q run -o "$folder/runs/$name" --force -- "${job[@]}" >"$folder/$name.out" 2>&1; status=$?
    expect "$name" "wrapped torchrun ends well" "status $status: $(grep -E '^(ddp|fsdp):' "$folder/$name.out" | tail -n 1)" test "$status" -eq 0
    trace_rows "$name" "$folder/runs/$name" ranks sources kernels launches order nvtx steps calls joined hash plugin network loss
    "$build/bin/rankscope" -q analyze "$folder/runs/$name" >"$folder/$name-report.txt" 2>&1
    expect "$name" "analyze" "status $?; $name-report.txt" test -s "$folder/$name-report.txt"
}

run_checks() {
    folder="$(realpath -m "${1:-gpu-checks}")"
    build="$folder/build"
    table="$folder/checks.md"
    mkdir -p "$folder/runs"
    find_machine
    export LD_LIBRARY_PATH="$(dirname "$cudart_library"):$(dirname "$nccl_library")${cupti_library:+:$(dirname "$cupti_library")}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    say "building in $build"
    build_tools
    {
        printf '# Checks on a GPU, %s\n\n' "$(date -u +%Y-%m-%d)"
        printf -- '- GPU: %s\n' "$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>&1 | head -n 1)"
        printf -- '- CUDA: %s\n' "$("$cuda_root/bin/nvcc" --version | tail -n 2 | head -n 1)"
        printf -- '- NCCL: %s\n' "$(awk '/define NCCL_(MAJOR|MINOR|PATCH)/ { printf "%s%s", dot, $3; dot = "." }' "$nccl_header")"
        printf -- '- PyTorch: %s\n\n' "$(python3 -c 'import torch; print(torch.__version__, "NCCL", torch.cuda.nccl.version())' 2>/dev/null || echo none)"
        printf '| area | check | result | seen |\n| --- | --- | --- | --- |\n'
    } >"$table"
    "$build/bin/rankscope" doctor >"$folder/doctor.txt" 2>&1
    expect machine doctor "status $?; doctor.txt" test -s "$folder/doctor.txt"
    workload_checks ddp ranks sources kernels launches order nvtx steps calls joined hash plugin network loss
    workload_checks fsdp ranks sources kernels launches order steps calls joined hash plugin network loss
    workload_checks pp ranks sources kernels launches order steps calls hash loss
    if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
        torch_checks ddp_train.py ddp
        torch_checks fsdp_train.py fsdp
    else
        row torch "torchrun jobs" skipped "no PyTorch with CUDA here"
    fi
    # What is kept is small: captures and databases, no build.
    tar -C "$folder" -czf "$folder/runs.tar.gz" runs 2>/dev/null
    say "$table: $failures failed"
    [ "$failures" -eq 0 ]
}

case "${1:-run}" in
    vendor) vendor "${2:-}" ;;
    run) run_checks "${2:-}" ;;
    -h | --help) usage ;;
    -*) usage >&2; exit 2 ;;
    *) run_checks "$1" ;;
esac
