#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# launch_ranks.sh N COMMAND…: starts N ranks of a job on this machine with the variables that torchrun sets, for machines without a launcher.
# Ends with the first rank that fails, and with its status.
set -uo pipefail
if [ $# -lt 2 ]; then
    echo "Usage: launch_ranks.sh N COMMAND…" >&2
    exit 2
fi
readonly ranks="$1"
shift
export WORLD_SIZE="$ranks" LOCAL_WORLD_SIZE="$ranks" MASTER_ADDR=localhost MASTER_PORT="${MASTER_PORT:-$((20000 + $$ % 20000))}"
children=()
for ((rank = 0; rank < ranks; rank++)); do
    RANK=$rank LOCAL_RANK=$rank "$@" &
    children+=($!)
done
trap 'kill "${children[@]}" 2>/dev/null' INT TERM
status=0
for ((ended = 0; ended < ranks; ended++)); do
    wait -n
    result=$?
    if [ "$result" -ne 0 ] && [ "$status" -eq 0 ]; then
        status=$result
        kill "${children[@]}" 2>/dev/null
    fi
done
exit "$status"
