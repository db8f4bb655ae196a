# SPDX-License-Identifier: Apache-2.0
"""A training loop by Accelerate, replicated or sharded (FSDP2): torchrun --standalone --nproc_per_node=2 reference/frameworks/accelerate_train.py"""
import pathlib
import sys

import torch
from accelerate import Accelerator, DataLoaderConfiguration, DistributedDataParallelKwargs, FullyShardedDataParallelPlugin
from torch.utils.data import DataLoader, Dataset

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pytorch"))
import transformer  # noqa: E402  # beside this folder
from transformer import VOCABULARY, Transformer, next_token_loss  # noqa: E402


class Sentences(Dataset):
    def __init__(self, count: int, seq: int, loader_ms: float):
        self.count, self.seq, self.loader_s = count, seq, loader_ms / 1e3

    def __len__(self):
        return self.count

    def __getitem__(self, index: int):
        transformer.time.sleep(self.loader_s)
        return torch.randint(VOCABULARY, (self.seq + 1,), generator=torch.Generator().manual_seed(index))


def plugins(arguments) -> dict:
    if not arguments.fsdp:
        return {"kwargs_handlers": [DistributedDataParallelKwargs(bucket_cap_mb=arguments.bucket_mb, gradient_as_bucket_view=True)]}
    return {"fsdp_plugin": FullyShardedDataParallelPlugin(fsdp_version=2, auto_wrap_policy="transformer_based_wrap", transformer_cls_names_to_wrap=["Block"],
                                                          reshard_after_forward=not arguments.keep_gathered)}


def main() -> None:
    options = transformer.parser(__doc__)
    options.add_argument("--fsdp", action="store_true")
    options.add_argument("--keep-gathered", action="store_true")
    options.add_argument("--bucket-mb", type=int, default=25)
    options.add_argument("--reduce-every-micro-step", action="store_true", help="a loop without accumulate()")
    arguments = options.parse_args()
    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=arguments.accumulate,
                              dataloader_config=DataLoaderConfiguration(non_blocking=not arguments.pageable), **plugins(arguments))
    transformer.annotated = not arguments.no_ranges
    torch.manual_seed(arguments.seed)
    with accelerator.device:
        model = Transformer(arguments.layers, arguments.hidden, arguments.heads)
    sentences = Sentences(arguments.steps * arguments.accumulate * arguments.micro_batch * accelerator.num_processes, arguments.seq,
                          arguments.loader_ms / arguments.micro_batch)
    loader = DataLoader(sentences, batch_size=arguments.micro_batch, pin_memory=not arguments.pageable)
    model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-4), loader)
    data = iter(loader)

    def micro_step():
        tokens = next(data)
        loss = next_token_loss(model(tokens[:, :-1]), tokens[:, 1:])
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    def one_step() -> float:
        for micro in range(arguments.accumulate):
            if arguments.reduce_every_micro_step:
                tokens = next(data)
                loss = next_token_loss(model(tokens[:, :-1]), tokens[:, 1:])
                accelerator.backward(loss)
                if micro + 1 == arguments.accumulate:
                    optimizer.step()
                    optimizer.zero_grad()
            else:
                with accelerator.accumulate(model):
                    loss = micro_step()
        return loss.item()

    loss = transformer.run_steps(arguments, accelerator.device, one_step)
    if accelerator.is_main_process:
        print(f"accelerate: {accelerator.num_processes} ranks, {arguments.steps} steps, loss {loss:.6f}", flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
