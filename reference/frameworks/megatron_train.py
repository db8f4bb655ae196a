# SPDX-License-Identifier: Apache-2.0
"""A GPT by Megatron-core, tensor x pipeline x data parallel, with experts or without: torchrun --standalone --nproc_per_node=4
reference/frameworks/megatron_train.py --tensor 2 --pipeline 2

Layers are Megatron's own ones without Transformer Engine."""
import pathlib
import sys

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.pipeline_parallel.schedules import get_forward_backward_func
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
from megatron.core.transformer.moe import moe_utils
from megatron.core.transformer.transformer_config import TransformerConfig

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pytorch"))
import transformer  # noqa: E402  # beside this folder
from transformer import VOCABULARY, moved, run_steps  # noqa: E402

# megatron-core 0.16 asks for it in every router, and defines it only where Transformer Engine is installed.
moe_utils.te_general_gemm = getattr(moe_utils, "te_general_gemm", None)


def options():
    result = transformer.parser(__doc__)
    result.add_argument("--tensor", type=int, default=1)
    result.add_argument("--pipeline", type=int, default=1)
    result.add_argument("--virtual-stages", type=int, default=1, metavar="N", help="parts of the model on each stage (interleaved schedule)")
    result.add_argument("--split", type=lambda text: [int(count) for count in text.split(",")], metavar="FIRST,LAST", help="layers of the first and the last stage (default: the same everywhere)")
    result.add_argument("--sequence-parallel", action="store_true")
    result.add_argument("--experts", type=int, default=0)
    result.add_argument("--expert-ranks", type=int, default=1)
    result.add_argument("--micro-batches", type=int, default=8)
    result.add_argument("--bucket-mb", type=float, default=0, help="0: Megatron's own choice")
    result.add_argument("--no-overlap", action="store_true", help="overlap_grad_reduce=False, overlap_param_gather=False")
    result.add_argument("--fp32-reduce", action="store_true", help="grad_reduce_in_fp32=True")
    result.add_argument("--distributed-optimizer", action="store_true")
    return result


def transformer_config(arguments) -> TransformerConfig:
    split = {}
    if arguments.split:
        split = {"num_layers_in_first_pipeline_stage": arguments.split[0], "num_layers_in_last_pipeline_stage": arguments.split[1]}
    experts = {}
    if arguments.experts:
        experts = {"num_moe_experts": arguments.experts, "moe_router_topk": 2, "moe_router_pre_softmax": True, "moe_token_dispatcher_type": "alltoall",
                   "moe_router_load_balancing_type": "none",
                   "moe_router_force_load_balancing": True, "add_bias_linear": False}
    return TransformerConfig(num_layers=arguments.layers, hidden_size=arguments.hidden, num_attention_heads=arguments.heads, bf16=True,
                             params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16, tensor_model_parallel_size=arguments.tensor,
                             pipeline_model_parallel_size=arguments.pipeline,
                             virtual_pipeline_model_parallel_size=arguments.virtual_stages if arguments.virtual_stages > 1 else None,
                             sequence_parallel=arguments.sequence_parallel, expert_model_parallel_size=arguments.expert_ranks,
                             attention_dropout=0.0, hidden_dropout=0.0, gradient_accumulation_fusion=False, masked_softmax_fusion=False,
                             bias_activation_fusion=False, bias_dropout_fusion=False, persist_layer_norm=False, deallocate_pipeline_outputs=True, **split, **experts)


def built(config: TransformerConfig, arguments):
    """This rank's part of the model, or its parts, each reduced by Megatron's own DistributedDataParallel."""
    gradients = DistributedDataParallelConfig(overlap_grad_reduce=not arguments.no_overlap, grad_reduce_in_fp32=arguments.fp32_reduce,
                                              use_distributed_optimizer=arguments.distributed_optimizer,
                                              overlap_param_gather=arguments.distributed_optimizer and not arguments.no_overlap,
                                              bucket_size=int(arguments.bucket_mb * 2**20 / 2) if arguments.bucket_mb else None)
    layers = get_gpt_layer_local_spec(num_experts=arguments.experts or None, moe_grouped_gemm=False)
    parts = []
    for part in range(arguments.virtual_stages):
        where = {"vp_stage": part} if arguments.virtual_stages > 1 else {}
        gpt = GPTModel(config=config, transformer_layer_spec=layers, vocab_size=VOCABULARY, max_sequence_length=arguments.seq, share_embeddings_and_output_weights=False,
                       pre_process=parallel_state.is_pipeline_first_stage(ignore_virtual=False, **where),
                       post_process=parallel_state.is_pipeline_last_stage(ignore_virtual=False, **where), **where)
        parts.append(DistributedDataParallel(config, gradients, gpt.cuda().bfloat16(), disable_bucketing=part > 0 and not arguments.bucket_mb))
    config.finalize_model_grads_func = finalize_model_grads
    config.grad_scale_func = None
    if not arguments.no_overlap:
        config.no_sync_func = [part.no_sync for part in parts] if len(parts) > 1 else parts[0].no_sync
    return parts


def micro_batches(arguments, device):
    """Endless: what a forward step takes."""
    generator = torch.Generator().manual_seed(arguments.seed + parallel_state.get_data_parallel_rank())
    positions = torch.arange(arguments.seq, device=device).expand(arguments.micro_batch, -1)
    mask = torch.ones(1, 1, arguments.seq, arguments.seq, dtype=torch.bool, device=device).triu(1)
    while True:
        tokens = moved(torch.randint(VOCABULARY, (arguments.micro_batch, arguments.seq + 1), generator=generator), arguments, device)
        yield tokens[:, :-1], tokens[:, 1:].contiguous(), positions, mask


def mean_loss(losses):
    loss = losses.float().mean()
    return loss, {"loss": loss.detach()}


def forward_step(data, model):
    tokens, labels, positions, mask = next(data)
    return model(tokens, positions, mask, labels=labels), mean_loss


def main() -> None:
    arguments = options().parse_args()
    device = transformer.join_job(arguments)
    parallel_state.initialize_model_parallel(arguments.tensor, arguments.pipeline, arguments.virtual_stages if arguments.virtual_stages > 1 else None,
                                             expert_model_parallel_size=arguments.expert_ranks)
    model_parallel_cuda_manual_seed(arguments.seed)
    config = transformer_config(arguments)
    parts = built(config, arguments)
    optimizer = get_megatron_optimizer(OptimizerConfig(optimizer="adam", lr=1e-4, bf16=True, params_dtype=torch.bfloat16, clip_grad=0.0,
                                                       use_distributed_optimizer=arguments.distributed_optimizer,
                                                       overlap_param_gather=arguments.distributed_optimizer and not arguments.no_overlap), parts)
    schedule = get_forward_backward_func()
    data = micro_batches(arguments, device)
    iterators = [data] * len(parts) if len(parts) > 1 else data

    def one_step() -> float:
        for part in parts:
            part.zero_grad_buffer()
        optimizer.zero_grad()
        losses = schedule(forward_step_func=forward_step, data_iterator=iterators, model=parts, num_microbatches=arguments.micro_batches,
                          seq_length=arguments.seq, micro_batch_size=arguments.micro_batch, forward_only=False)
        optimizer.step()
        return sum(loss["loss"].item() for loss in losses) / len(losses) if losses else 0.0

    loss = run_steps(arguments, device, one_step)
    if parallel_state.is_pipeline_last_stage() and parallel_state.get_tensor_model_parallel_rank() == 0 and parallel_state.get_data_parallel_rank() == 0:
        print(f"megatron: tp {arguments.tensor} pp {arguments.pipeline} dp {parallel_state.get_data_parallel_world_size()}, {arguments.steps} steps, loss {loss:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
