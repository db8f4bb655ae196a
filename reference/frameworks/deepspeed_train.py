# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed's ZeRO-1, 2 and 3: torchrun --standalone --nproc_per_node=2 reference/frameworks/deepspeed_train.py --zero 2

The options of ZeRO are those of its JSON file; --config FILE is merged over them."""
import json
import pathlib
import sys

import deepspeed
import torch
import torch.distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pytorch"))
import transformer  # noqa: E402  # beside this folder
from transformer import Transformer, batches, next_token_loss, nvtx_range, run_steps  # noqa: E402


def configuration(arguments) -> dict:
    result = {
        "train_micro_batch_size_per_gpu": arguments.micro_batch,
        "gradient_accumulation_steps": arguments.accumulate,
        "bf16": {"enabled": True},
        "zero_allow_untested_optimizer": True,
        "zero_optimization": {"stage": arguments.zero, "overlap_comm": not arguments.no_overlap, "contiguous_gradients": True,
                              "reduce_bucket_size": int(arguments.bucket_mb * 2**20 / 2), "allgather_bucket_size": int(arguments.bucket_mb * 2**20 / 2)},
        "steps_per_print": 1000,
    }
    if arguments.communicate:
        result["communication_data_type"] = arguments.communicate
    if arguments.config:
        result.update(json.loads(arguments.config.read_text()))
    return result


def main() -> None:
    options = transformer.parser(__doc__)
    options.add_argument("--zero", type=int, choices=(0, 1, 2, 3), default=2)
    options.add_argument("--bucket-mb", type=float, default=50, help="reduce_bucket_size and allgather_bucket_size, in MiB of bf16")
    options.add_argument("--no-overlap", action="store_true", help='"overlap_comm": false')
    options.add_argument("--communicate", choices=("fp16", "bf16", "fp32"), help="communication_data_type")
    options.add_argument("--config", type=pathlib.Path)
    arguments = options.parse_args()
    device = transformer.join_job(arguments)
    deepspeed.init_distributed(dist_backend=arguments.backend)
    with device:
        model = Transformer(arguments.layers, arguments.hidden, arguments.heads)
    engine, _, _, _ = deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(model.parameters(), lr=1e-4), config=configuration(arguments))
    data = batches(arguments, device, dist.get_rank())

    def one_step() -> float:
        for _ in range(arguments.accumulate):
            tokens = next(data)
            with nvtx_range("forward", device):
                loss = next_token_loss(engine(tokens[:, :-1]), tokens[:, 1:])
            with nvtx_range("backward", device):
                engine.backward(loss)
            with nvtx_range("optimizer", device):
                engine.step()
        return loss.item()

    loss = run_steps(arguments, device, one_step)
    if dist.get_rank() == 0:
        print(f"deepspeed: ZeRO-{arguments.zero}, {dist.get_world_size()} ranks, {arguments.steps} steps, loss {loss:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
