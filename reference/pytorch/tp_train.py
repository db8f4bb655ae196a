# SPDX-License-Identifier: Apache-2.0
"""Tensor parallelism by DTensor, the twin of the workload kinds tp and tp+sp: torchrun --standalone --nproc_per_node=2 reference/pytorch/tp_train.py

Every block's first projections are split by columns and its second ones by rows (Megatron-LM, arXiv:1909.08053): two all-reduces forward and two
backward; with --sequence-parallel (arXiv:2205.05198) norms work on a part of the sequence, and an all-gather and a reduce-scatter stand for each
all-reduce. Needs torch 2.4 or newer. Without a GPU: --device cpu --backend gloo."""
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

from transformer import Transformer, join_job, parser, train

PLAN = {"qkv": ColwiseParallel(), "projection": RowwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel()}
SEQUENCE_PLAN = {"norm1": SequenceParallel(), "norm2": SequenceParallel(),
                 "qkv": ColwiseParallel(input_layouts=Shard(1)), "projection": RowwiseParallel(output_layouts=Shard(1)),
                 "up": ColwiseParallel(input_layouts=Shard(1)), "down": RowwiseParallel(output_layouts=Shard(1))}
# What stands before and behind the blocks hands over, and takes, parts of the sequence then.
SEQUENCE_ENDS = {"embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)), "norm": SequenceParallel(),
                 "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sequence-parallel", action="store_true")
    options.add_argument("--tensor-ranks", type=int, default=0, metavar="N", help="split over N neighbours; the others are replicas, sharded by FSDP2. 0: over all ranks")
    options.add_argument("--tensor-outermost", action="store_true", help="the N are as far apart as they can be")
    arguments = options.parse_args()
    device = join_job(arguments)
    ranks = dist.get_world_size()
    tensor_ranks = arguments.tensor_ranks or ranks
    if arguments.heads % tensor_ranks:
        raise SystemExit(f"--heads {arguments.heads} cannot be split over {tensor_ranks} ranks")
    names, sizes = ("data", "tensor"), (ranks // tensor_ranks, tensor_ranks)
    if arguments.tensor_outermost:
        names, sizes = names[::-1], sizes[::-1]
    mesh = init_device_mesh(device.type, sizes, mesh_dim_names=names)
    with device:
        model = Transformer(arguments.layers, arguments.hidden, arguments.heads)
    if device.type == "cuda":
        model = model.to(torch.bfloat16)
    for block in model.blocks:
        parallelize_module(block, mesh["tensor"], SEQUENCE_PLAN if arguments.sequence_parallel else PLAN)
    if arguments.sequence_parallel:
        parallelize_module(model, mesh["tensor"], SEQUENCE_ENDS)
    if tensor_ranks < ranks:
        from torch.distributed.fsdp import fully_shard
        for block in model.blocks:
            fully_shard(block, mesh=mesh["data"])
        fully_shard(model, mesh=mesh["data"])
    # Parameters are DTensors where they are split and plain where they are not, which one fused update cannot take together.
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
    loss = train(model, optimizer, device, arguments, data_rank=mesh["data"].get_local_rank())  # one batch for the parts of one model
    if dist.get_rank() == 0:
        print(f"tp: {ranks} ranks, {arguments.steps} steps, loss {loss:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
