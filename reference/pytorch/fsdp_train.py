# SPDX-License-Identifier: Apache-2.0
"""FSDP2 (ZeRO-3), the twin of the workload kind fsdp: torchrun --standalone --nproc_per_node=2 reference/pytorch/fsdp_train.py

Needs torch 2.6 or newer. Without a GPU: --device cpu --backend gloo."""
import contextlib

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from transformer import Transformer, join_job, parser, train


@contextlib.contextmanager
def reduced_only_when(model, last: bool):
    model.set_requires_gradient_sync(last)
    yield


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--prefetch", type=int, default=1, help="layers gathered ahead of the one in use; 0 leaves it to FSDP")
    options.add_argument("--keep-gathered", action="store_true", help="do not free a layer between forward and backward")
    options.add_argument("--fp32-reduce", action="store_true", help="reduce_dtype=torch.float32 while layers compute in bf16")
    options.add_argument("--reduce-every-micro-step", action="store_true", help="no set_requires_gradient_sync(False): every micro-step of --accumulate is reduced")
    options.add_argument("--shard-ranks", type=int, default=0, metavar="N", help="HSDP: shard over N neighbours, replicate over the others; 0: shard over all")
    arguments = options.parse_args()
    device = join_job(arguments)
    ranks = dist.get_world_size()
    mesh = None
    if arguments.shard_ranks:
        mesh = init_device_mesh(device.type, (ranks // arguments.shard_ranks, arguments.shard_ranks), mesh_dim_names=("replicate", "shard"))
    with device:
        model = Transformer(arguments.layers, arguments.hidden, arguments.heads, features=arguments.features)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32 if arguments.fp32_reduce else torch.bfloat16)
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy, reshard_after_forward=not arguments.keep_gathered)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    if arguments.prefetch:
        blocks = list(model.blocks)
        for i, block in enumerate(blocks):
            block.set_modules_to_forward_prefetch(blocks[i + 1 : i + 1 + arguments.prefetch])
            block.set_modules_to_backward_prefetch(blocks[max(0, i - arguments.prefetch) : i][::-1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loss = train(model, optimizer, device, arguments, lambda last: reduced_only_when(model, last or arguments.reduce_every_micro_step))
    if dist.get_rank() == 0:
        print(f"fsdp: {dist.get_world_size()} ranks, {arguments.steps} steps, loss {loss:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
