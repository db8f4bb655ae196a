#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build_library.sh TORCH: compiles the library of PyTorch's operators against the installed torch in the folder TORCH, once for each version of torch
# and of these sources, and prints where it lies. On failure the last line printed says why.
set -eu
torch=$1
here=$(cd "$(dirname "$0")" && pwd)
fail() { echo "$1"; exit 1; }

version=$(sed -n "s/^__version__ = '\(.*\)'/\1/p" "$torch/version.py" 2>/dev/null) || true
[ -n "$version" ] || fail "$torch/version.py does not tell a version"
compiler=${CXX:-g++}
command -v "$compiler" >/dev/null || fail "there is no compiler $compiler"
[ -e "$torch/include/ATen/record_function.h" ] || fail "torch $version has no headers in $torch/include"

cache=${RANKSCOPE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/rankscope}
mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] || fail "$cache cannot be written"
print_identity() {
    cat "$here"/reference/vgpu/frameworks/torch/*.h "$here"/reference/vgpu/frameworks/torch/*.cpp "$here"/reference/vgpu/engine/operator_api.h "$here/build_library.sh"
    stat -L -c %s "$torch/lib/libtorch_cpu.so"
    "$compiler" --version
}
library=$cache/librankscope_torch-$version-$(print_identity | sha256sum | cut -c1-16).so

if [ ! -e "$library" ]; then
    # The ranks of a job come here together: one compiles, the others wait for it.
    exec 9>"$library.lock"
    flock 9
    if [ ! -e "$library" ]; then
        [ "${RANK:-0}" != 0 ] || echo "rankscope virtual GPUs: compiling the library of operators for torch $version (once, about half a minute)" >&2
        # NDEBUG as torch itself: its classes have further members without it.
        for source in "$here"/reference/vgpu/frameworks/torch/*.cpp; do echo "#include \"$source\""; done |
            nice "$compiler" -std=c++20 -O1 -DNDEBUG -fPIC -shared -fvisibility=hidden -w -x c++ - -x none -I "$here" -isystem "$torch/include" -L "$torch/lib" -ltorch_cpu -lc10 -o "$library.$$" \
                >"$library.log" 2>&1 || fail "$compiler could not compile it for torch $version, see $library.log"
        mv "$library.$$" "$library"
        rm -f "$library.log"
    fi
fi
echo "$library"
