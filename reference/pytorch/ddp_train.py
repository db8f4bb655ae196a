# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel, the twin of the workload kind ddp: torchrun --standalone --nproc_per_node=2 reference/pytorch/ddp_train.py

Without a GPU: --device cpu --backend gloo."""
import contextlib

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

from transformer import Transformer, join_job, parser, train, with_amp


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--bucket-mb", type=float, default=25)
    options.add_argument("--reduce-every-micro-step", action="store_true", help="no no_sync(): every micro-step of --accumulate is reduced")
    options.add_argument("--amp", action="store_true", help="fp32 parameters under autocast: gradients are fp32, too")
    options.add_argument("--compress", action="store_true", help="gradients are reduced in bf16 by DDP's own hook")
    options.add_argument("--no-overlap", action="store_true", help="one bucket: its all-reduce can only start after backward")
    arguments = options.parse_args()
    device = join_job(arguments)
    with device:
        model = Transformer(arguments.layers, arguments.hidden, arguments.heads, features=arguments.features)
    if device.type == "cuda" and not arguments.amp:
        model = model.to(torch.bfloat16)
    model = DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None, gradient_as_bucket_view=True,
                                    bucket_cap_mb=1 << 14 if arguments.no_overlap else arguments.bucket_mb)
    if arguments.compress:
        model.register_comm_hook(None, default_hooks.bf16_compress_hook)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loss = train(with_amp(model) if arguments.amp else model, optimizer, device, arguments,
                 lambda last: contextlib.nullcontext() if last or arguments.reduce_every_micro_step else model.no_sync())
    # Replicas must agree: the smallest and the largest sum of parameters over the ranks are the same number.
    total = sum(parameter.detach().double().sum() for parameter in model.parameters()).to(device)
    low, high = total.clone(), total.clone()
    dist.all_reduce(low, dist.ReduceOp.MIN)
    dist.all_reduce(high, dist.ReduceOp.MAX)
    if dist.get_rank() == 0:
        print(f"ddp: {dist.get_world_size()} ranks, {arguments.steps} steps, loss {loss:.6f}", flush=True)
    same = low.item() == high.item()
    dist.destroy_process_group()
    if not same:
        raise SystemExit("the replicas' parameters differ")


if __name__ == "__main__":
    main()
