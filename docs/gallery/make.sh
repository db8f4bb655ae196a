#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the pictures of this folder anew: make.sh [RANKSCOPE]. They are drawn without a display, and alike on every machine with the same fonts.
set -euo pipefail
rankscope=$(readlink -f "${1:-$(dirname "$0")/../../build/bin/rankscope}")
gallery=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# picture FILE RUN [option…]
picture() {
    local file="$gallery/$1"
    shift
    "$rankscope" -q view "$@" --screenshot "$file"
}

record() { "$rankscope" -q reference run "$1" -o "$2" "${@:3}" >/dev/null; }

record fsdp-slow-rank slow
record fsdp-slow-rank repaired --fixed
record pp-few-micro-batches pipeline
picture straggler.png slow --goto RS301
picture straggler-dark.png slow --goto RS301 --dark
picture pipeline.png pipeline --goto RS101 --panel pipeline
picture differences.png slow repaired --panel differences
