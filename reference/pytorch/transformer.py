# SPDX-License-Identifier: Apache-2.0
"""A small decoder-only transformer, and what every training script here has in common."""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

from turns import Turns

VOCABULARY = 1024


class Block(nn.Module):
    def __init__(self, hidden: int, heads: int):
        super().__init__()
        self.head_size = hidden // heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.projection = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def attention(self, x):
        batch, seq, _ = x.shape
        # Head by head, so that a share of the projection's rows is a share of the heads (tensor parallelism).
        q, k, v = (part.transpose(1, 2) for part in self.qkv(x).view(batch, seq, -1, 3, self.head_size).unbind(3))
        if hasattr(functional, "scaled_dot_product_attention"):  # torch 2
            out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            mask = torch.ones(seq, seq, dtype=torch.bool, device=x.device).triu(1)
            scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(mask, float("-inf"))
            out = scores.softmax(-1) @ v
        return self.projection(out.transpose(1, 2).reshape(batch, seq, -1))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, layers: int, hidden: int, heads: int, vocabulary: int = VOCABULARY, features: int = 0):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.patches = nn.Linear(features, hidden) if features else None
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, tokens, features=None):
        x = self.embedding(tokens)
        if features is not None:
            x = x + self.patches(features.to(x.dtype))
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
    result.add_argument("--lengths", type=lambda text: [int(length) for length in text.split(",")], metavar="SEQ,SEQ,…",
                        help="the sequence length of each rank's share of the data, where documents are not mixed (instead of --seq)")
    result.add_argument("--loader-ms", type=float, default=0, metavar="MS", help="batches come from a DataLoader whose storage takes this long")
    result.add_argument("--loader-workers", type=int, default=0, metavar="N", help="processes that load these batches (DataLoader's num_workers)")
    result.add_argument("--features", type=int, default=0, metavar="N", help="a batch brings N such numbers per token besides (frames, patches): the input of a model of sound or images")
    result.add_argument("--pageable", action="store_true", help="batches are copied from ordinary memory, not from pinned")
    result.add_argument("--watch-layers", action="store_true", help="hooks read the mean output of every norm and projection back to the host, as in hunting for NaNs")
    result.add_argument("--empty-cache", action="store_true", help="torch.cuda.empty_cache() at the end of each step")
    result.add_argument("--no-ranges", action="store_true", help="no NVTX ranges: a script that nobody annotated")
    result.add_argument("--step-times", type=pathlib.Path, metavar="FILE", help="rank 0 writes the wall-clock time of every step, in ms, as a JSON list")
    result.add_argument("--turns", type=Turns.of, metavar="FOLDER:STEPS", help="takes turns of so many steps with other jobs (turns.py)")
    result.add_argument("--profile", type=pathlib.Path, metavar="FOLDER", help="every rank runs torch.profiler over its steps and leaves rank<N>.json there")
    result.add_argument("--kill", metavar="RANK:STEP", help="this rank is killed (SIGKILL) when this step begins")
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
    global annotated
    annotated = not arguments.no_ranges
    return device


annotated = True  # whether nvtx_range() does anything


@contextlib.contextmanager
def nvtx_range(name: str, device: torch.device):
    """A range on the timeline, where there is a GPU to look at."""
    if device.type != "cuda" or not annotated:
        yield
        return
    torch.cuda.nvtx.range_push(name)
    try:
        yield
    finally:
        torch.cuda.nvtx.range_pop()


@contextlib.contextmanager
def profiled(folder):
    """torch.profiler around all steps, where a folder for its trace is given."""
    if folder is None:
        yield
        return
    kinds = [torch.profiler.ProfilerActivity.CPU] + ([torch.profiler.ProfilerActivity.CUDA] if torch.cuda.is_available() else [])
    with torch.profiler.profile(activities=kinds) as profiler:
        yield
    folder.mkdir(parents=True, exist_ok=True)
    profiler.export_chrome_trace(str(folder / f"rank{dist.get_rank()}.json"))


def run_steps(arguments, device, one_step) -> float:
    """Calls `one_step()`, which returns the loss as a number, for every step. Returns the last loss."""
    killed_rank, killed_step = (int(part) for part in arguments.kill.split(":")) if arguments.kill else (-1, -1)
    times, value = [], 0.0
    with profiled(arguments.profile):
        for step in range(arguments.steps):
            if (dist.get_rank(), step) == (killed_rank, killed_step):
                os.kill(os.getpid(), signal.SIGKILL)
            if arguments.turns:
                arguments.turns.before(step)
            begin = time.perf_counter()
            with nvtx_range(f"ProfilerStep#{step}", device):
                value = one_step()
                if arguments.empty_cache and device.type == "cuda":
                    torch.cuda.empty_cache()
            times.append((time.perf_counter() - begin) * 1e3)
            if arguments.turns:
                arguments.turns.after(step)
    if arguments.step_times and dist.get_rank() == 0:
        arguments.step_times.write_text(json.dumps(times))
    return value


def drawn_tokens(generator, arguments, device):
    """A micro-batch: tokens of shape (micro_batch, seq + 1)."""
    tokens = torch.randint(VOCABULARY, (arguments.micro_batch, arguments.seq + 1), generator=generator)
    return moved(tokens, arguments, device)


def moved(batch, arguments, device):
    """The batch on the device."""
    if device.type != "cuda":
        return batch
    return batch.to(device) if arguments.pageable else batch.pin_memory().to(device, non_blocking=True)  # once: a pinned one stays


class Documents(torch.utils.data.Dataset):
    """Sequences of tokens on a slow disk."""

    def __init__(self, arguments, rank: int):
        self.arguments, self.rank = arguments, rank

    def __len__(self):
        return self.arguments.steps * self.arguments.accumulate * self.arguments.micro_batch

    def __getitem__(self, index: int):
        time.sleep(self.arguments.loader_ms / 1e3 / self.arguments.micro_batch)
        generator = torch.Generator().manual_seed(self.arguments.seed + self.rank * len(self) + index)
        return torch.randint(VOCABULARY, (self.arguments.seq + 1,), generator=generator)


def batches(arguments, device, data_rank: int):
    """Tokens of one micro-batch after the other, on the device; with --features a pair of tokens and features."""
    if arguments.lengths:
        arguments.seq = arguments.lengths[data_rank % len(arguments.lengths)]
    generator = torch.Generator().manual_seed(arguments.seed + data_rank)
    loader = None
    if arguments.loader_ms > 0:
        loader = iter(torch.utils.data.DataLoader(Documents(arguments, data_rank), batch_size=arguments.micro_batch, num_workers=arguments.loader_workers,
                                                  pin_memory=arguments.loader_workers > 0 and not arguments.pageable))
    features = torch.empty(arguments.micro_batch, arguments.seq, arguments.features) if arguments.features else None
    while True:
        tokens = drawn_tokens(generator, arguments, device) if loader is None else moved(next(loader), arguments, device)
        yield tokens if features is None else (tokens, moved(features, arguments, device))


class with_amp:  # noqa: N801  # used like a function
    """A model whose forward pass computes in bf16 wherever autocast thinks that it may."""

    def __init__(self, model):
        self.model = model

    def __call__(self, *inputs):
        with torch.autocast(inputs[0].device.type, dtype=torch.bfloat16):
            return self.model(*inputs)

    def named_modules(self):
        return self.model.named_modules()


def watch_layers(model):
    """Keeps the mean output of each norm and projection of the last forward pass, as a number."""
    seen = {}
    for name, layer in model.named_modules():
        if isinstance(layer, (nn.Linear, nn.LayerNorm)):
            layer.register_forward_hook(lambda module, given, result, name=name: seen.__setitem__(name, result.detach().mean().item()))
    return seen


def next_token_loss(logits, following):
    return functional.cross_entropy(logits.flatten(0, 1).float(), following.flatten())


def train(model, optimizer, device, arguments, synchronise_only_when=lambda last: contextlib.nullcontext(), data_rank=None) -> float:
    """Runs all steps; `synchronise_only_when(last)` is a context in which gradients are reduced only if `last`; `data_rank` tells ranks with
    different data apart (default: all differ). Returns the last loss."""
    data = batches(arguments, device, dist.get_rank() if data_rank is None else data_rank)
    if arguments.watch_layers:
        watch_layers(model)

    def one_step() -> float:
        for micro in range(arguments.accumulate):
            batch = next(data)
            tokens, *features = batch if arguments.features else (batch,)
            with synchronise_only_when(micro + 1 == arguments.accumulate):
                with nvtx_range("forward", device):
                    loss = next_token_loss(model(tokens[:, :-1], *features), tokens[:, 1:])
                with nvtx_range("backward", device):
                    (loss / arguments.accumulate).backward()
        with nvtx_range("optimizer", device):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return loss.item()

    return run_steps(arguments, device, one_step)
