# SPDX-License-Identifier: Apache-2.0
"""A small decoder-only transformer, and what every training script here has in common."""
import argparse
import contextlib
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, hidden: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.projection = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def attention(self, x):
        batch, seq, hidden = x.shape
        q, k, v = (part.view(batch, seq, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        if hasattr(functional, "scaled_dot_product_attention"):  # torch 2
            out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            mask = torch.ones(seq, seq, dtype=torch.bool, device=x.device).triu(1)
            scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(mask, float("-inf"))
            out = scores.softmax(-1) @ v
        return self.projection(out.transpose(1, 2).reshape(batch, seq, hidden))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, layers: int, hidden: int, heads: int, vocabulary: int = 1024):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def parser(description: str) -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(description=description)
    result.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    result.add_argument("--backend", choices=("nccl", "gloo"), default="nccl")
    result.add_argument("--steps", type=int, default=8)
    result.add_argument("--layers", type=int, default=4)
    result.add_argument("--hidden", type=int, default=512)
    result.add_argument("--heads", type=int, default=8)
    result.add_argument("--seq", type=int, default=256)
    result.add_argument("--micro-batch", type=int, default=4)
    result.add_argument("--accumulate", type=int, default=1)
    result.add_argument("--seed", type=int, default=7)
    return result


def join_job(arguments) -> torch.device:
    """Joins the process group that torchrun describes. Ranks beyond the number of GPUs share them (see README.md)."""
    if arguments.device == "cpu" and arguments.backend == "nccl":
        raise SystemExit("--device cpu needs --backend gloo")
    device = torch.device("cpu")
    if arguments.device == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    dist.init_process_group(arguments.backend)
    torch.manual_seed(arguments.seed)
    return device


@contextlib.contextmanager
def nvtx_range(name: str, device: torch.device):
    """A range on the timeline, where there is a GPU to look at."""
    if device.type != "cuda":
        yield
        return
    torch.cuda.nvtx.range_push(name)
    try:
        yield
    finally:
        torch.cuda.nvtx.range_pop()


def train(model, optimizer, device, arguments, synchronise_only_when) -> float:
    """Runs all steps; `synchronise_only_when(last)` is a context in which gradients are reduced only if `last`. Returns the last loss."""
    generator = torch.Generator().manual_seed(arguments.seed + dist.get_rank())
    value = 0.0
    for step in range(arguments.steps):
        with nvtx_range(f"ProfilerStep#{step}", device):
            for micro in range(arguments.accumulate):
                tokens = torch.randint(1024, (arguments.micro_batch, arguments.seq + 1), generator=generator)
                if device.type == "cuda":
                    tokens = tokens.pin_memory().to(device, non_blocking=True)
                with synchronise_only_when(micro + 1 == arguments.accumulate):
                    with nvtx_range("forward", device):
                        logits = model(tokens[:, :-1])
                        loss = functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
                    with nvtx_range("backward", device):
                        (loss / arguments.accumulate).backward()
            with nvtx_range("optimizer", device):
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            value = loss.item()
    return value
