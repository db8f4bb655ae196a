#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one rank of a job whose ranks share one GPU: one_gpu.sh COMMAND… under torchrun or mpirun.
# NCCL takes ranks with the same host and bus for a mistake, so each claims a host of its own; between "hosts" only sockets are left.
export NCCL_HOSTID="rank-${RANK:-${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-0}}}"
export CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-0}"
export NCCL_NET=Socket NCCL_IB_DISABLE=1 NCCL_SOCKET_IFNAME=lo GLOO_SOCKET_IFNAME=lo
export NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_MNNVL_ENABLE=0 NCCL_NVLS_ENABLE=0 NCCL_RAS_ENABLE=0
export NCCL_MAX_CTAS="${NCCL_MAX_CTAS:-2}" NCCL_PROTO="${NCCL_PROTO:-Simple}"
exec "$@"
