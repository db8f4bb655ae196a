# SPDX-License-Identifier: Apache-2.0
"""A pipeline by torch.distributed.pipelining, the twin of the workload kind pp: torchrun --standalone --nproc_per_node=2 reference/pytorch/pp_train.py

A stage a rank, or --virtual-stages of them; needs torch 2.5 or newer. Without a GPU: --device cpu --backend gloo."""
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B

from transformer import Transformer, drawn_tokens, join_job, next_token_loss, nvtx_range, parser, run_steps

SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B, "interleaved": ScheduleInterleaved1F1B}


class Stage(nn.Module):
    """Some of a model's blocks, with the embedding in the first stage and the head in the last."""

    def __init__(self, whole: Transformer, blocks: range, is_first: bool, is_last: bool):
        super().__init__()
        self.embedding = whole.embedding if is_first else nn.Identity()
        self.blocks = nn.ModuleList(whole.blocks[blocks.start : blocks.stop])
        self.norm, self.head = (whole.norm, whole.head) if is_last else (nn.Identity(), nn.Identity())

    def forward(self, x):
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def shares(layers: int, stages: int, asked):
    """The blocks of each stage: as asked for, else evenly."""
    counts = asked or [layers * (stage + 1) // stages - layers * stage // stages for stage in range(stages)]
    if len(counts) != stages or sum(counts) != layers or min(counts) < 1:
        raise SystemExit(f"{layers} layers cannot be dealt out as {counts} to {stages} stages")
    return [range(sum(counts[:stage]), sum(counts[: stage + 1])) for stage in range(stages)]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--schedule", choices=sorted(SCHEDULES), default="1f1b")
    options.add_argument("--micro-batches", type=int, default=8)
    options.add_argument("--virtual-stages", type=int, default=1, metavar="N", help="stages of each rank; more than one needs --schedule interleaved")
    options.add_argument("--split", type=lambda text: [int(count) for count in text.split(",")], metavar="LAYERS,…", help="layers of each stage (default: the same)")
    arguments = options.parse_args()
    device = join_job(arguments)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    stages = ranks * arguments.virtual_stages
    parts = shares(arguments.layers, stages, arguments.split)
    with device:
        whole = Transformer(arguments.layers, arguments.hidden, arguments.heads)
    if device.type == "cuda":
        whole = whole.to(torch.bfloat16)
    mine = [Stage(whole, parts[stage], stage == 0, stage == stages - 1) for stage in range(rank, stages, ranks)]
    del whole
    pipeline = [PipelineStage(module, rank + i * ranks, stages, device) for i, module in enumerate(mine)]
    schedule = SCHEDULES[arguments.schedule](pipeline if arguments.virtual_stages > 1 else pipeline[0], n_microbatches=arguments.micro_batches, loss_fn=next_token_loss)
    parameters = [parameter for module in mine for parameter in module.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4)
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
