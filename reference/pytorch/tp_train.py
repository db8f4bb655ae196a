# SPDX-License-Identifier: Apache-2.0
"""Tensor parallelism by DTensor, the twin of the workload kind tp: torchrun --standalone --nproc_per_node=2 reference/pytorch/tp_train.py

Every block's first projections are split by columns and its second ones by rows (Megatron-LM, arXiv:1909.08053): two all-reduces forward and two
backward. Needs torch 2.4 or newer. Without a GPU: --device cpu --backend gloo."""
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from transformer import Transformer, join_job, parser, train

PLAN = {"qkv": ColwiseParallel(), "projection": RowwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel()}


def main() -> None:
    arguments = parser(__doc__).parse_args()
    device = join_job(arguments)
    if arguments.heads % dist.get_world_size():
        raise SystemExit(f"--heads {arguments.heads} cannot be split over {dist.get_world_size()} ranks")
    model = Transformer(arguments.layers, arguments.hidden, arguments.heads).to(device)
    if device.type == "cuda":
        model = model.to(torch.bfloat16)
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for block in model.blocks:
        parallelize_module(block, mesh, PLAN)
    # Parameters are DTensors where they are split and plain where they are not, which one fused update cannot take together.
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
    loss = train(model, optimizer, device, arguments, data_rank=0)  # one batch: the ranks hold parts of one model
    if dist.get_rank() == 0:
        print(f"tp: {dist.get_world_size()} ranks, {arguments.steps} steps, loss {loss:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
