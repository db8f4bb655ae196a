# SPDX-License-Identifier: Apache-2.0
"""Run by torchrun on virtual GPUs (operators_test.py): objects travel, tensors are redistributed, replicas stay equal. Ends with 0, or says what is wrong."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

rank = int(os.environ["LOCAL_RANK"])
dist.init_process_group("nccl")
ranks = dist.get_world_size()

# A job may name its device with each tensor and set none: its values are in the order of that device's stream all the same.
mine = torch.device("cuda", rank)
store = dist.distributed_c10d._get_default_store()
number = torch.full((1,), 113 if rank == 0 else 0, device=mine)
exchange = dist.isend if rank == 0 else dist.irecv
for _ in range(2 if rank < 2 else 0):  # the first one makes the communicator
    if rank == 0:
        number += 1
        store.wait(["asked"] if number.item() == 115 else [])
    dist.batch_isend_irecv([dist.P2POp(exchange, number, 1 - rank)]).pop().wait()
if rank == 1:
    total = torch.sum(number)
    store.set("asked", "")
    assert total.item() == 115, total
torch.cuda.set_device(rank)

told = [{"of": rank, "text": "x" * (9000 + rank)}]
dist.broadcast_object_list(told, 0)
assert told[0]["of"] == 0 and len(told[0]["text"]) == 9000, told
heard = [None] * ranks
dist.all_gather_object(heard, (rank, "y" * (rank * 500)))
assert [(number, len(text)) for number, text in heard] == [(number, number * 500) for number in range(ranks)], heard
if rank == 0:
    dist.send_object_list([{"numbers": list(range(2000))}], 1)
elif rank == 1:
    got = [None]
    dist.recv_object_list(got, 0)
    assert got[0]["numbers"][-1] == 1999

# A rank that waits for a store's answer holds up nobody: rank 1 answers when its device is through with what rank 0 has sent before.
store = dist.TCPStore(os.environ["MASTER_ADDR"], 0, is_master=True) if rank == 0 else None
told = [store.port if rank == 0 else None]
dist.broadcast_object_list(told, 0)
store = store or dist.TCPStore(os.environ["MASTER_ADDR"], told[0])
sent = torch.ones(1000, device="cuda")
dist.broadcast(sent, 0)
if rank == 0:
    store.wait(["received"])
elif rank == 1:
    torch.cuda.synchronize()
    store.set("received", "")

mesh = init_device_mesh("cuda", (ranks,))
torch.manual_seed(1)
full = torch.randn(8, 6)
rows = distribute_tensor(full.cuda(), mesh, [Shard(0)])
assert torch.allclose(rows.redistribute(mesh, [Replicate()]).to_local().cpu(), full)
assert torch.allclose(rows.redistribute(mesh, [Shard(1)]).full_tensor().cpu(), full)
assert abs(rows.sum().full_tensor().item() - full.sum().item()) < 1e-4


def assert_replicas_agree(model):
    for name, parameter in model.named_parameters():
        low, high = parameter.detach().clone(), parameter.detach().clone()
        dist.all_reduce(low, dist.ReduceOp.MIN)
        dist.all_reduce(high, dist.ReduceOp.MAX)
        assert torch.equal(low, high), (name, low, high)


def small_model():
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))


# Ranks that start from different weights take those of rank 0, and train as one process does with all their data.
torch.manual_seed(3 + rank)
model = DistributedDataParallel(small_model().cuda(), device_ids=[rank])
torch.manual_seed(3)
whole = small_model()
optimizer, whole_optimizer = (torch.optim.AdamW(m.parameters(), lr=1e-2) for m in (model, whole))
generator = torch.Generator().manual_seed(9)
for step in range(5):
    inputs, labels = torch.randn(ranks, 4, 16, generator=generator), torch.randint(4, (ranks, 4), generator=generator)
    optimizer.zero_grad()
    loss = functional.cross_entropy(model(inputs[rank].cuda()), labels[rank].cuda())
    loss.backward()
    optimizer.step()
    whole_optimizer.zero_grad()
    expected = sum(functional.cross_entropy(whole(inputs[r]), labels[r]) for r in range(ranks)) / ranks
    expected.backward()
    whole_optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    assert abs(mean.item() / ranks - expected.item()) < 1e-4, (step, mean.item() / ranks, expected.item())
assert_replicas_agree(model)

# Buckets of which not all moves: replicas still agree, and nothing is infinite.
torch.manual_seed(5)
model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 512), nn.LayerNorm(512), nn.Linear(512, 512), nn.Linear(512, 8)).cuda(), device_ids=[rank])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(4):
    optimizer.zero_grad()
    loss = model((torch.randn(4, 64, generator=generator) + rank).cuda()).square().mean()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
    optimizer.step()
    assert torch.isfinite(loss).item()
assert_replicas_agree(model)
dist.destroy_process_group()
