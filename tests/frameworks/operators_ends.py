# SPDX-License-Identifier: Apache-2.0
"""Run by torchrun on virtual GPUs (operators_test.py): a rank that ends when all is done, without a word to the others as most scripts do, is no error of those whose watchdogs still ask."""
import os
import time

import torch
import torch.distributed as dist

LOOKED_S = 3  # watchdogs ask several times a second, by the virtual clock as sleeps


def runs(process):
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
processes = [None] * dist.get_world_size()
dist.all_gather_object(processes, os.getpid())
value = torch.ones(1 << 20, device="cuda")
dist.all_reduce(value)
torch.cuda.synchronize()
if rank == 0:
    while any(runs(process) for process in processes[1:]):
        time.sleep(0.1)
    time.sleep(LOOKED_S)
