# SPDX-License-Identifier: Apache-2.0
"""A pipeline by torch.distributed.pipelining, the twin of the workload kind pp: torchrun --standalone --nproc_per_node=2 reference/pytorch/pp_train.py

One stage a rank; needs torch 2.5 or newer. Without a GPU: --device cpu --backend gloo."""
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from transformer import Transformer, drawn_tokens, join_job, next_token_loss, nvtx_range, parser, run_steps

SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}


class Stage(nn.Module):
    """A rank's share of a model's blocks, with the embedding on the first rank and the head on the last."""

    def __init__(self, whole: Transformer, rank: int, ranks: int):
        super().__init__()
        count = len(whole.blocks)
        self.embedding = whole.embedding if rank == 0 else nn.Identity()
        self.blocks = nn.ModuleList(whole.blocks[count * rank // ranks : count * (rank + 1) // ranks])
        self.norm, self.head = (whole.norm, whole.head) if rank == ranks - 1 else (nn.Identity(), nn.Identity())

    def forward(self, x):
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--schedule", choices=sorted(SCHEDULES), default="1f1b")
    options.add_argument("--micro-batches", type=int, default=8)
    arguments = options.parse_args()
    device = join_job(arguments)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if arguments.layers < ranks:
        raise SystemExit(f"--layers {arguments.layers} are fewer than {ranks} stages")
    module = Stage(Transformer(arguments.layers, arguments.hidden, arguments.heads), rank, ranks).to(device)
    if device.type == "cuda":
        module = module.to(torch.bfloat16)
    schedule = SCHEDULES[arguments.schedule](PipelineStage(module, rank, ranks, device), n_microbatches=arguments.micro_batches, loss_fn=next_token_loss)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4)
    generator = torch.Generator().manual_seed(arguments.seed)
    arguments.micro_batch *= arguments.micro_batches  # what a schedule takes is the whole batch

    def one_step() -> float:
        tokens, losses = drawn_tokens(generator, arguments, device), []
        before, after = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
        with nvtx_range("pipeline", device):
            if rank == 0:
                schedule.step(before)
            elif rank == ranks - 1:
                schedule.step(target=after, losses=losses)
            else:
                schedule.step()
        with nvtx_range("optimizer", device):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return sum(loss.item() for loss in losses) / len(losses) if losses else 0.0

    loss = run_steps(arguments, device, one_step)
    if rank == ranks - 1:
        print(f"pp: {ranks} ranks, {arguments.steps} steps, loss {loss:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
