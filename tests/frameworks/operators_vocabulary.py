# SPDX-License-Identifier: Apache-2.0
"""Run by torchrun on virtual GPUs (operators_test.py): Megatron-core's tensor parallelism, whose loss is made of parts of the vocabulary, with logits that are a little too large to be computed.
Ends with 0, or says what is wrong."""
import math
import os

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
from megatron.core.transformer.transformer_config import TransformerConfig

VOCABULARY, SEQUENCE, BATCH = 100, 64, 8

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
parallel_state.initialize_model_parallel(dist.get_world_size())
model_parallel_cuda_manual_seed(1)
config = TransformerConfig(num_layers=1, hidden_size=16, num_attention_heads=4, tensor_model_parallel_size=dist.get_world_size(), use_cpu_initialization=True)
model = GPTModel(config, get_gpt_layer_local_spec(), VOCABULARY, SEQUENCE).cuda()
optimizer = torch.optim.Adam(model.parameters())
tokens = torch.randint(VOCABULARY, (BATCH, SEQUENCE + 1), generator=torch.Generator().manual_seed(2)).cuda()
positions = torch.arange(SEQUENCE, device="cuda").expand(BATCH, -1)
mask = torch.ones(1, 1, SEQUENCE, SEQUENCE, dtype=torch.bool, device="cuda").triu(1)
for step in range(3):
    optimizer.zero_grad()
    each = model(tokens[:, :-1], positions, mask, labels=tokens[:, 1:].contiguous())
    each.mean().backward()
    optimizer.step()
    losses = [None] * dist.get_world_size()
    dist.all_gather_object(losses, each.mean().item())
    assert len(set(losses)) == 1 and abs(losses[0] - math.log(VOCABULARY)) < 0.5, (step, losses)
    assert abs(each[0, 0].item() - math.log(VOCABULARY)) < 2, each[0]
dist.destroy_process_group()
